// SPDX-License-Identifier: Apache-2.0
// The Safetensors format: read with the reference implementation's exact verdicts, written byte for byte as
// it writes, streamed, and edited without rewriting the data. docs/formats/safetensors.md describes the
// bytes. Part of ballast::core.
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
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

/// How tensors are made smaller inside a Safetensors file, without loss (docs/formats/packed.md). Reading
/// undoes it by itself.
enum class Pack : std::uint8_t {
  none,
  fast,   ///< BF16 and F32, unpacked at the speed of memory
  small,  ///< F16 and F8 too; the smallest size
};

/// "none", "fast", "small".
[[nodiscard]] std::string_view name(Pack pack) noexcept;

/// Errc::invalid_argument for a name that is none.
[[nodiscard]] Pack pack_named(std::string_view name);

}  // namespace ballast

namespace ballast::safetensors {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

enum class Mode : std::uint8_t {
  strict,     ///< what the specification says: duplicate keys, NUL in names and dimensions beyond 63 bits are
              ///< refused too
  reference,  ///< exactly what the reference implementation accepts; packed tensors are bytes, as to it
};

struct ReadOptions {
  Mode mode = Mode::strict;
  Io io = Io::automatic;  ///< how tensors come into memory
  bool writable = false;  ///< tensors may be written; the file never changes, nor does what others see of it
  bool verify = false;    ///< records, packed tensors: compare all checksums, which reads all; Errc::bad_crc
};

/// Header checked whole, data left where it is.
[[nodiscard]] Checkpoint open(const std::string& path, const ReadOptions& options = {});
/// The same for a file that lies in memory; tensors are views of it.
[[nodiscard]] Checkpoint parse(std::shared_ptr<const Storage> bytes, const ReadOptions& options = {});

struct SaveOptions {
  Pack pack = Pack::none;  ///< tensors that gain less than 3 % by it stay as they are
  bool overwrite = false;
  bool durable = true;  ///< false: save() does not wait for the disk; a power cut may leave a damaged file
  Progress progress = {};
};

/// Atomic. Tensors in the reference's order: dtype, then name; whatever their strides, they are written
/// row-major. Memory stays flat whatever the size; a source file that changed meanwhile is
/// Errc::file_changed, and nothing is written under `path`, which may be a source itself.
void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});
/// The same bytes, in memory.
[[nodiscard]] std::vector<std::byte> serialize(const Checkpoint& checkpoint);

/// Writes tensors that do not exist yet, or do not fit into memory: declare all of them, then bring their
/// bytes in any order, from any thread. finish() checks that every byte came exactly once and gives the file
/// its name.
class StreamWriter {
 public:
  struct Declaration {
    std::string name;
    DType dtype;
    Shape shape;
  };

  StreamWriter(const std::string& path, std::vector<Declaration> tensors,
               std::optional<Metadata> metadata = {}, const SaveOptions& options = {});
  StreamWriter(StreamWriter&&) noexcept;
  StreamWriter& operator=(StreamWriter&&) noexcept;
  ~StreamWriter();  ///< without finish(): nothing remains

  /// Bytes [offset, offset + bytes.size()) of the tensor's row-major form. Errc::overlap when some of them
  /// came before.
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);
  /// All of a tensor; its dtype and shape must be the declared ones.
  void write(std::string_view name, const Tensor& tensor);
  /// Errc::gap, naming tensor and bytes, when some never came. Nothing may be called after it.
  void finish();

 private:
  struct State;
  [[nodiscard]] State& live() const;
  std::unique_ptr<State> state_;  // null when finished
};

struct HeaderEdit {
  std::optional<Metadata> metadata = {};  ///< replaces all of it
  bool remove_metadata = false;           ///< so that the file has none at all
  std::vector<std::pair<std::string, std::string>> rename =
      {};  ///< exact old name, new name; all at once, so that two may be swapped
};

/// A copy of `in` with another header; the data stays in its order and goes from file to file inside the
/// kernel. `in` and `out` may be one file.
void edit(const std::string& in, const std::string& out, const HeaderEdit& change,
          const SaveOptions& options = {});

}  // namespace ballast::safetensors

#pragma GCC visibility pop
