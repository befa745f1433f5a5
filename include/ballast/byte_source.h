// SPDX-License-Identifier: Apache-2.0
// ByteSource: bytes by position, wherever they lie. Readers of formats see nothing else of a file, so that
// one in memory, inside another or on another machine is read by the same code. There are file_source(),
// window() and memory_source() (storage.h); for others, derive from it and call open(source). What its
// functions throw should be an Error (Errc::io_error): anything else passes through open() as it is. A source
// never changes while it is open.
//
// Throws: reading Errc::truncated, before anything is read, when the range lies outside; file_changed when
// the bytes are not there any more; io_error. Owns: whatever is made from a source keeps it (tensors,
// windows); map() is valid as long as the source. Threads: all functions from several at once, those of a
// source of your own too. Costs: opening a file reads none of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ballast/detail/compiler.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

/// Held by a std::shared_ptr: what is made from a source keeps it alive.
class ByteSource : public std::enable_shared_from_this<ByteSource> {
 public:
  /// One of many pieces to be read.
  struct Range {
    std::uint64_t offset = 0;       ///< where it begins in the source
    std::span<std::byte> out = {};  ///< the caller's memory, filled whole
  };

  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// A path or whatever else it is called by; valid as long as the source. Its extension may tell two
  /// readings of unclear bytes apart.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// The name as messages show it; valid as long as the source.
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Exactly out.size() bytes. Errc::truncated, file_changed, io_error.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The same into memory of its own, which is taken only when the range lies inside.
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::uint64_t length) const;
  /// The same for many ranges at once: for sources to which each request is dear.
  void read(std::span<const Range> ranges) const;

  /// Whether tensors are views of map(), and not read when they are needed.
  [[nodiscard]] virtual bool is_mapped() const noexcept { return false; }

  /// All bytes as memory, until the source is gone. Only where is_mapped(); empty for an empty source.
  [[nodiscard]] virtual std::span<const std::byte> map() const { return {}; }

  /// Whether map() may be written to: then it is this process's own, and the source itself never changes.
  [[nodiscard]] virtual bool is_writable() const noexcept { return false; }

  /// Text that differs when the content does, as far as that can be told without reading it; empty: it
  /// cannot.
  [[nodiscard]] virtual std::string identity() const { return {}; }

  /// Throws Errc::file_changed when the content is not what it was when the source was opened.
  virtual void check_unchanged() const {}

 protected:
  /// `name` is shown in messages, too; `size` never changes.
  ByteSource(std::string name, std::uint64_t size);
  /// For content that is called otherwise than the file it lies in: messages show `where`.
  ByteSource(std::string name, std::uint64_t size, std::string where);

  /// The range lies inside and is not empty: fill all of it or throw.
  virtual void read_bytes(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// The ranges lie inside. One after the other unless the source knows better.
  virtual void read_ranges(std::span<const Range> ranges) const;

 private:
  void check(std::uint64_t offset, std::uint64_t length) const;

  std::string name_;
  std::string where_;
  std::uint64_t size_;
};

/// A regular file. Mapped, it needs no descriptor once it is open; with Io::read and Io::direct it is not
/// mapped. Errc::file_not_found, permission_denied, not_regular_file, io_error, invalid_argument for a name
/// with a zero byte in it; unsupported where Io::direct is, of a file system that has no such reads.
[[nodiscard]] std::shared_ptr<const ByteSource> file_source(const std::string& path, Io io = Io::automatic);

/// Bytes [offset, offset + size) of another source, as a source that keeps it. Errc::truncated when they are
/// not inside; reads nothing.
[[nodiscard]] std::shared_ptr<const ByteSource> window(std::shared_ptr<const ByteSource> whole,
                                                       std::uint64_t offset, std::uint64_t size);

/// Where bytes lie: at `offset` of a source.
struct SourceSpan {
  std::shared_ptr<const ByteSource> source;  ///< kept alive by it
  std::uint64_t offset = 0;                  ///< in bytes
};

/// The same place, in the source that `source` is a window of, or a window of a window; else as it is.
[[nodiscard]] SourceSpan innermost(SourceSpan span);

}  // namespace ballast

#pragma GCC visibility pop
