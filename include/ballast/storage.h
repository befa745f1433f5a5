// SPDX-License-Identifier: Apache-2.0
// Storage: the bytes behind tensors, wherever they come from. Many tensors may look at one storage; it lives
// as long as one of them does. Bytes may be there already (heap, mapped file, the caller's memory) or come
// into being when first asked for (a compressed entry, a cast): data() is what makes them exist, read()
// streams them without keeping them.
//
// Throws: std::bad_alloc; data() and read() what bringing the bytes there throws (Errc::file_changed,
// truncated, io_error, bad_crc, …, or what a caller's `fill` throws), again at every call until it succeeds.
// Owns: a storage its bytes (a borrowed one only `release`), and what it makes them from until they are made;
// pointers are valid as long as the storage. Threads: const functions from several at once; mutable_data(),
// and writes through it, not beside readers of those bytes. Costs: making one reads nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ballast/byte_source.h"
#include "ballast/detail/function.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What kind of memory it is.
enum class DeviceType : std::uint8_t { cpu, cuda };

/// Which memory it is.
struct Device {
  DeviceType type = DeviceType::cpu;  ///< what kind
  int index = 0;                      ///< which of them
  friend bool operator==(Device, Device) = default;
};

/// Bytes that tensors look at: memory, a mapped file, or what is still to be read or computed. Shared by
/// std::shared_ptr; all const functions are safe to call from several threads.
class Storage {
 public:
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  virtual ~Storage() = default;

  /// New memory of `size` bytes, 64-byte aligned; not initialised unless `zeroed`.
  static std::shared_ptr<Storage> heap(std::uint64_t size, bool zeroed = false);
  /// The caller's memory, never freed by Ballast; `release` runs when the last tensor is gone (or never, when
  /// empty), on the thread that let it go, and must not throw.
  static std::shared_ptr<Storage> borrow(void* data, std::uint64_t size, Function<void()> release = {},
                                         Device device = {});
  /// The caller's read-only memory.
  static std::shared_ptr<const Storage> borrow(const void* data, std::uint64_t size,
                                               Function<void()> release = {}, Device device = {});
  /// Bytes made by `fill` at the first data(); `fill` runs at most once with success, on the thread that came
  /// first.
  /// `sources`: what it makes them from, for check_unchanged() and check_sound().
  static std::shared_ptr<const Storage> deferred(std::uint64_t size,
                                                 Function<void(std::span<std::byte>)> fill,
                                                 std::vector<std::shared_ptr<const Storage>> sources = {});
  /// Bytes [offset, offset + size) of a source, which it keeps: for readers of formats. A view of the mapping
  /// where the source has one, else read at the first data(). `item`: bytes of an element; what does not lie
  /// at a multiple of that in memory is read, too. Errc::truncated when they are not inside.
  static std::shared_ptr<const Storage> of(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                                           std::uint64_t item = 1);

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Where the bytes lie.
  [[nodiscard]] Device device() const noexcept { return device_; }

  /// The first byte, valid as long as the storage; may be null when there are none. Safe to call from several
  /// threads; may read a file or compute, so it may throw.
  [[nodiscard]] virtual const std::byte* data() const = 0;

  /// The first byte, valid as data() is, or null when the bytes may not be written: a file's, the caller's
  /// read-only ones. That is for the storage
  /// to say, and not for the pointer a Tensor holds it by. Each call may be a write: it raises version().
  [[nodiscard]] std::byte* mutable_data() {
    version_.fetch_add(1, std::memory_order_relaxed);
    return writable_data();
  }

  /// Another number after every mutable_data(), by which those who keep something made from the bytes notice
  /// that it is out of date. Writes through a pointer that was handed out earlier do not show.
  [[nodiscard]] virtual std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_relaxed);
  }

  /// True when data() only has to hand out an address: nothing is left to read or to compute.
  [[nodiscard]] virtual bool ready() const noexcept { return true; }

  /// Copies [offset, offset + out.size()), keeping nothing in memory when it can be avoided.
  /// Errc::offset_out_of_range outside its size(), unsupported for another device's memory.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// True when many unrelated tensors lie in it, as in the data of a Safetensors file: to be views of it does
  /// not tie them.
  [[nodiscard]] virtual bool holds_many() const noexcept { return false; }

  /// Where these bytes lie, unchanged, in a file or another source, when they do: so that they can be copied
  /// without passing through memory.
  [[nodiscard]] virtual std::optional<SourceSpan> source_span() const { return std::nullopt; }

  /// How many bytes of its file they take, when they lie there packed (docs/formats/packed.md).
  [[nodiscard]] virtual std::optional<std::uint64_t> packed_size() const { return std::nullopt; }

  /// Throws Errc::file_changed when the bytes come from a file that is not as it was when it was opened: for
  /// writers, before they publish a copy.
  virtual void check_unchanged() const {}

  /// Throws Errc::bad_crc when bytes [begin, end), or those they are computed from, are not what a checksum
  /// beside them in their file says; without one, nothing. Reads them. For writers, so that damage is not
  /// passed on as sound.
  virtual void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const {}

 protected:
  /// For those that are derived: `size` never changes.
  explicit Storage(std::uint64_t size, Device device = {}) noexcept : size_(size), device_(device) {}

  /// The first byte, to be written to, valid as data() is; null when that may not be.
  [[nodiscard]] virtual std::byte* writable_data() { return nullptr; }

  /// mutable_data() of a storage whose bytes are shown by this one; valid as that is.
  [[nodiscard]] static std::byte* mutable_data_behind(const Storage& shown) {
    return shown.itself_->mutable_data();
  }

  /// Errc::offset_out_of_range when the range is not inside.
  void check_range(std::uint64_t offset, std::uint64_t length) const;

 private:
  friend class Tensor;

  // As it was made. Whoever holds a const Storage cannot write; what stands for the bytes, not for the object
  // that has them, can: a Tensor, which has its own mutable_data(), and a storage that shows another's.
  Storage* const itself_ = this;
  std::uint64_t size_;
  Device device_;
  std::atomic<std::uint64_t> version_{0};
};

/// Bytes in memory as a source: open(memory_source(Storage::borrow(data, size), "model.pt")). `name`: see
/// ByteSource::name(). They must not change while something reads them. Keeps `bytes`, reads none of them.
[[nodiscard]] std::shared_ptr<const ByteSource> memory_source(std::shared_ptr<const Storage> bytes,
                                                              std::string name);

}  // namespace ballast

#pragma GCC visibility pop
