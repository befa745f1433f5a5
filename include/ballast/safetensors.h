// SPDX-License-Identifier: Apache-2.0
// The Safetensors format: read with the reference implementation's exact verdicts, written byte for byte as
// it writes, streamed, and edited without rewriting the data. docs/formats/safetensors.md describes the
// bytes. Part of ballast::core.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what the functions say, each before it has changed anything that others see.
// Owns: what is read keeps its file or memory as long as a tensor of it lives; a StreamWriter its unfinished
// file. Threads: every function may be called from several at once, writers for different paths,
// StreamWriter::write() of one writer too. Costs: reading takes what the header takes, writing streams each
// byte once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/detail/file_options.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast::safetensors {

/// The largest header: the reference's own limit.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// Header checked whole, data left where it is: tensors are views of the mapped file and keep it alive.
/// Errc::file_not_found, unknown_format, truncated, bad_json, size_mismatch, overlap, …
/// (docs/formats/safetensors.md) for what the reference would refuse, duplicate_key where `strict`, bad_crc
/// with `verify`. Safe to
/// call from several threads. Of the options it knows mode, io, writable, verify; others are
/// Errc::invalid_argument.
[[nodiscard]] Checkpoint open(const std::string& path, const OpenOptions& options = {});
/// The same for a file that lies in memory; tensors are views of it. Errc::invalid_argument for null.
[[nodiscard]] Checkpoint parse(std::shared_ptr<const Storage> bytes, const OpenOptions& options = {});

/// Atomic. Tensors in the reference's order: dtype, then name; whatever their strides, they are written
/// row-major. Memory stays flat whatever the size; a source file that changed meanwhile is
/// Errc::file_changed, and nothing is written under `path`, which may be a source itself.
/// Errc::not_representable for dtypes the format has not and tensors without data, unsupported for those on
/// another device, size_overflow beyond 64 bits and misaligned for ones of 4 or 6 bits that end inside a
/// byte; bad_name, bad_utf8 and duplicate_key for names, header_too_large, already_exists, file_not_found,
/// no_space, io_error. Of the options it knows pack and durable, beside overwrite and progress; others are
/// invalid_argument.
void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});
/// The same bytes, in memory: as many as the file would have. The same refusals, but those of a path.
[[nodiscard]] std::vector<std::byte> serialize(const Checkpoint& checkpoint);

/// Writes tensors that do not exist yet, or do not fit into memory: declare all of them, then bring their
/// bytes in any order, from any thread. finish() checks that every byte came exactly once and gives the file
/// its name.
class StreamWriter {
 public:
  /// A tensor that is to come.
  struct Declaration {
    std::string name;  ///< its key
    DType dtype;       ///< of its elements
    Shape shape;       ///< of the whole
  };

  /// Writes the header. Knows none but what all know of the options. Errc::already_exists,
  /// Errc::duplicate_key and what save() refuses.
  StreamWriter(const std::string& path, std::vector<Declaration> tensors,
               std::optional<Metadata> metadata = {}, const SaveOptions& options = {});
  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) noexcept;
  ~StreamWriter();  ///< without finish(): nothing remains

  /// Bytes [offset, offset + bytes.size()) of the tensor's row-major form. Errc::overlap when some of them
  /// came before, not_found for a name that was not declared, offset_out_of_range outside it,
  /// invalid_argument after finish().
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);
  /// All of a tensor; Errc::bad_dtype and shape_mismatch unless they are the declared ones, invalid_argument
  /// without data.
  void write(std::string_view name, const Tensor& tensor);
  /// Waits for the disk. Errc::gap, naming tensor and bytes, when some never came; io_error when a write
  /// failed before, invalid_argument while another is under way. Nothing may be called after it
  /// (Errc::invalid_argument).
  void finish();

 private:
  struct State;
  [[nodiscard]] State& live() const;
  std::unique_ptr<State> state_;  // null when finished
};

/// What changes in a header.
struct HeaderEdit {
  std::optional<Metadata> metadata = {};  ///< replaces all of it
  std::optional<Metadata> replaces = {};  ///< what it was made of: Errc::file_changed when it is not so now
  bool remove_metadata = false;           ///< so that the file has none at all
  std::vector<std::pair<std::string, std::string>> rename =
      {};  ///< exact old name, new name; all at once, so that two may be swapped
  /// Spaces behind the metadata, which every reader skips, are room for later edits: what fits into it does
  /// not move the data, and where `in` is `out`, nothing but one sector of 512 bytes changes, that sector is
  /// written and nothing else. A header without room, or with too little, gets some.
  bool spare = false;
};

/// A copy of `in` with another header; the data stays in its order and goes from file to file inside the
/// kernel. `in` and `out` may be one file: whatever happens, it is the old or the new one, and of two
/// edits at once one comes after the other (Errc::file_changed when that would take long). Errc::not_found
/// for a name to be changed that is not there, duplicate_key when two tensors would have one name,
/// invalid_argument to replace the metadata and remove it, and what open() and save() refuse. True when only
/// a sector was written (HeaderEdit::spare), in the file itself, which readers that have it open then see. Of
/// the options it knows durable.
bool edit(const std::string& in, const std::string& out, const HeaderEdit& change,
          const SaveOptions& options = {});

}  // namespace ballast::safetensors

#pragma GCC visibility pop
