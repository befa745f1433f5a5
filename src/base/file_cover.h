// SPDX-License-Identifier: Apache-2.0
// What may stand between an AtomicFile's writer and the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "ballast/byte_source.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

/// Stands between what a writer writes and what lies on the disk: src/seal encrypts there.
class FileCover {
 public:
  struct Disk {
    std::function<void(std::uint64_t offset, std::span<const std::byte> bytes)> write;
    std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
  };

  FileCover() = default;
  FileCover(const FileCover&) = delete;
  FileCover& operator=(const FileCover&) = delete;
  virtual ~FileCover() = default;

  /// Before anything else. `disk` may be used from several threads.
  virtual void begin(Disk disk) = 0;
  /// The size on the disk of a file of `size` bytes.
  [[nodiscard]] virtual std::uint64_t reserve(std::uint64_t size) = 0;
  /// Safe from several threads; every byte comes once.
  virtual void write_at(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// What was written so far, zeros between.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Everything is on the disk as it shall stay.
  virtual void finish() = 0;
};

/// While it lives, every AtomicFile that its thread makes gets a cover: whoever writes the file, none of its
/// bytes reaches the disk another way.
class CoverScope {
 public:
  using Make = std::function<std::unique_ptr<FileCover>()>;
  explicit CoverScope(Make make);
  CoverScope(const CoverScope&) = delete;
  CoverScope& operator=(const CoverScope&) = delete;
  ~CoverScope();

  /// For a new file of the calling thread; null outside of scopes.
  [[nodiscard]] static std::unique_ptr<FileCover> make();

 private:
  Make make_;
  const Make* outer_;
};

/// What was written so far, as a source; while the cover is there.
[[nodiscard]] std::shared_ptr<const ByteSource> written_under(const FileCover& cover,
                                                              const std::string& path);

}  // namespace ballast

#pragma GCC visibility pop
