// SPDX-License-Identifier: Apache-2.0
// Storages whose bytes are computed piece by piece, whenever they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ballast/storage.h"
#include "base/lazy.h"

namespace ballast {

/// read() computes what it is asked for and keeps nothing; data() computes all, once.
class ComputedStorage : public Storage {
 public:
  [[nodiscard]] const std::byte* data() const final;

  [[nodiscard]] bool ready() const noexcept final { return whole_.ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const final;

 protected:
  using Storage::Storage;

  /// Writes bytes [offset, offset + out.size()), which lie inside; the same ones each time, from any thread.
  virtual void compute(std::uint64_t offset, std::span<std::byte> out) const = 0;

 private:
  Lazy<std::shared_ptr<Storage>> whole_;
};

/// Writes bytes [offset, offset + out.size()); the same ones each time, from any thread.
using MakeBytes = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

using Storages = std::vector<std::shared_ptr<const Storage>>;

/// A ComputedStorage of a function. `sources`: what the bytes are computed from, for check_unchanged().
[[nodiscard]] std::shared_ptr<const Storage> streamed_storage(std::uint64_t size, MakeBytes make,
                                                              Storages sources);

}  // namespace ballast
