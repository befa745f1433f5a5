// SPDX-License-Identifier: Apache-2.0
// What an operation prepared and can use again: the compiled kernel for these shapes, the weights in the
// order it wants. A layer owns one and hands it to its operation; the second call with the same shapes does
// no set-up.
#pragma once

#include <atomic>

namespace ballast {

/// Belongs to one place in a model. A copy starts empty. May be used from several threads at once. It notices
/// other weights (another Tensor) and writes into the same ones (Storage::version); but whoever writes
/// through a pointer kept from before the last call, or into memory that was lent (Storage::borrow), calls
/// clear().
class OpCache {
 public:
  OpCache() = default;
  OpCache(const OpCache& other);
  OpCache& operator=(const OpCache& other);
  OpCache(OpCache&& other) noexcept;
  OpCache& operator=(OpCache&& other) noexcept;
  ~OpCache();

  void clear();

  struct State;

  [[nodiscard]] State& state() const;  ///< the operations' own; made when first asked for

 private:
  mutable std::atomic<State*> state_{nullptr};
};

}  // namespace ballast
