// SPDX-License-Identifier: Apache-2.0
// What an operation prepared and can use again: the compiled kernel for these shapes, the weights in the
// order it wants. A layer owns one and hands it to its operation; the second call with the same shapes does
// no set-up.
//
// Throws: nothing but std::bad_alloc.
#pragma once

#include <atomic>

#pragma GCC visibility push(default)

namespace ballast {

/// Belongs to one place in a model. A copy starts empty. May be used from several threads at once. It notices
/// other weights (another Tensor) and writes into the same ones (Storage::version). What cannot be seen are
/// writes through an address that was taken before the last call and kept (a mutable_span, what to_dlpack
/// handed out) and into memory that was lent (Storage::borrow): whoever does that takes the address again, or
/// calls clear(), before the next call.
class OpCache {
 public:
  OpCache() = default;
  OpCache(const OpCache& other);
  OpCache& operator=(const OpCache& other);
  OpCache(OpCache&& other) noexcept;
  OpCache& operator=(OpCache&& other) noexcept;
  ~OpCache();

  /// Forgets what was prepared: the next call prepares it again.
  void clear();

  struct State;

  [[nodiscard]] State& state() const;  ///< the operations' own; made when first asked for, valid until
                                       ///< clear()

 private:
  mutable std::atomic<State*> state_{nullptr};
};

}  // namespace ballast

#pragma GCC visibility pop
