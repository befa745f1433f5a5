// SPDX-License-Identifier: Apache-2.0
// Format: what a file of tensors is, as a value. Everything that is known about a format (its names, how it
// is told from others, how it is read and written, what it can hold) is a row; formats Ballast does not know
// can be handed to open() and save() in the same way.
//
// Throws: Errc::invalid_argument for names that are none, and what the functions say. Owns: rows and names
// are constants; a row of your own must live as long as what was opened as it. Threads: every function may be
// called from several at once, those of a row of your own too. Costs: a look into the table; no file is
// touched.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/byte_source.h"
#include "ballast/dtype.h"

#pragma GCC visibility push(default)

namespace ballast {

class Checkpoint;
struct OpenOptions;
struct SaveOptions;

/// What tells formats apart: the first bytes (512 at least, unless the file is smaller), and for what those
/// leave open the name.
struct FileHead {
  std::span<const std::byte> bytes;  ///< from the start of the file
  std::uint64_t size = 0;            ///< of the whole file
  std::string_view name;             ///< the path, or what else it is called by

  /// The bytes as text, valid as long as those.
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// How sure a format is that a file is its own. The surest is asked to open it, of equals the first.
enum class Likeness : std::uint8_t { none, last_resort, doubtful, likely, certain };

/// THE row of a format: everything that is known of it.
struct FormatRow {
  std::string_view name;                            ///< "safetensors": for --to, JSON, SaveOptions
  std::array<std::string_view, 6> extensions = {};  ///< ".pt"; save() goes by those of Ballast's own
  /// Null for what another format's reader finds out (a record is a Safetensors file that says so).
  Likeness (*recognise)(const FileHead& head) = nullptr;
  /// Never null where `recognise` is not. Format and path of the checkpoint are filled in by ballast::open(),
  /// and `io` and `writable` are the source's already; `expansion` is the reader's to keep to. Tensors are
  /// views of Storage::of(source, …). Those that must be computed keep the source
  /// (source.shared_from_this(), Storage::deferred()), and ask source.check_unchanged() when they have read.
  Checkpoint (*open)(const ByteSource& source, const OpenOptions& options) = nullptr;
  /// Atomic, and refuses to replace a file unless options.overwrite (save_pieces() does both); calls
  /// options.progress, and refuses tensors without data. ballast::save() has compared checksums and asked
  /// `holds` before. Null where Ballast only reads.
  void (*save)(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) = nullptr;
  /// Whether a tensor of this dtype can be written; save() is Errc::not_representable for all others. Null
  /// where Ballast only reads.
  bool (*holds)(DType dtype) = nullptr;
  /// Whose names and layouts the tensors have when the file does not say.
  std::string_view layout = "pytorch";
  bool holds_metadata = false;  ///< text by key, where ties, quantization and the layout are said
  bool holds_layout = false;    ///< whose names and layouts the tensors have
  bool holds_ties = false;      ///< one tensor under two names is there once
  bool holds_tree = false;      ///< other values than tensors, nested
  bool holds_strides = false;   ///< tensors that are not row-major stay so
  bool is_program = false;      ///< its tree is a program's, and no state dict
  bool has_checksums = false;   ///< check_integrity() has something to compare
};

/// A format, or none: a row by its address. Cheap to copy and to compare.
class Format {
 public:
  constexpr Format() noexcept = default;

  /// The row must live as long as anything that was opened as it: a constant.
  // NOLINTNEXTLINE(google-explicit-constructor): a row is a format, wherever one is asked for
  constexpr Format(const FormatRow& row) noexcept : row_(&row) {}

  /// False for none: "whatever the extension says", or a checkpoint that was made by hand.
  constexpr explicit operator bool() const noexcept { return row_ != nullptr; }

  /// Must not be none.
  constexpr const FormatRow* operator->() const noexcept { return row_; }

  /// Empty for none; lives as long as the row.
  [[nodiscard]] constexpr std::string_view name() const noexcept {
    return row_ == nullptr ? std::string_view() : row_->name;
  }

  friend constexpr bool operator==(Format, Format) noexcept = default;
  friend std::ostream& operator<<(std::ostream& out, Format format);

 private:
  const FormatRow* row_ = nullptr;
};

std::ostream& operator<<(std::ostream& out, Format format);  // here too: a friend alone is not exported

/// Those Ballast knows. The first two are part of ballast::core, the others of ballast::import.
namespace formats {
/// Hugging Face's; the reference's verdicts.
extern const FormatRow safetensors;
/// Safetensors with checksums and a stated layout.
extern const FormatRow record;
extern const FormatRow torch_zip;     ///< torch.save() since 1.6.
extern const FormatRow torch_legacy;  ///< torch.save() before that.
extern const FormatRow torch_tar;     ///< torch.save() before 0.1.10.
extern const FormatRow torchscript;   ///< torch.jit.save(); its weights.
/// A pickle without a container.
extern const FormatRow pickle;
/// Burn's Burnpack.
extern const FormatRow bpk;
/// Burn's NamedMpk.
extern const FormatRow mpk;
/// The same, in gzip.
extern const FormatRow mpk_gz;
/// Several NumPy arrays.
extern const FormatRow npz;
/// One NumPy array.
extern const FormatRow npy;
/// ONNX models; their weights.
extern const FormatRow onnx;
/// An index and its shards.
extern const FormatRow sharded;
}  // namespace formats

/// All of them, in the order in which they are asked whether a file is theirs: constants. Part of
/// ballast::import, as all that follows.
[[nodiscard]] std::span<const Format> all_formats() noexcept;

/// Those that save() writes.
[[nodiscard]] std::vector<Format> writable_formats();

/// Errc::invalid_argument, with the names there are, for a name that is none.
[[nodiscard]] Format format_named(std::string_view name);

/// What save() would write: `format` itself when there is one, else what the extension says.
/// A ".age" behind it is left out. Errc::invalid_argument for an extension that says nothing, unsupported for
/// ".onnx", which weights alone are not. The path need not be there.
[[nodiscard]] Format format_for(const std::string& path, Format format = {});

/// How tensors are made smaller inside Safetensors files and records, without loss
/// (docs/formats/packed.md). Reading undoes it by itself.
enum class Pack : std::uint8_t {
  none,
  fast,   ///< BF16 and F32, unpacked at the speed of memory
  small,  ///< F16 and F8 too; the smallest size
};

/// "none", "fast", "small": constants.
[[nodiscard]] std::string_view name(Pack pack) noexcept;

/// Errc::invalid_argument for a name that is none.
[[nodiscard]] Pack pack_named(std::string_view name);

}  // namespace ballast

#pragma GCC visibility pop
