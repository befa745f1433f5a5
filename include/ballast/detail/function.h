// SPDX-License-Identifier: Apache-2.0
// Function: something that can be called, whatever it is made of. What std::function is for, without
// that header, which takes a fourteenth of what compiling these headers takes, of everybody.
//
// Throws: what is called throws. Owns: what it was made of, shared by copies. Threads: as what is called.
// Costs: an allocation when it is made; a call by pointer.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast {

template <class Signature>
class Function;

/// A function, a lambda, a std::function, or nothing. Copies share what is called. Calling nothing is
/// undefined, as calling a null pointer is: ask before.
template <class Result, class... Args>
class Function<Result(Args...)> {
 public:
  Function() = default;
  Function(std::nullptr_t) {}  ///< nothing

  /// Whatever takes the arguments and gives the result; nothing when it is an empty std::function or a null
  /// pointer.
  // NOLINTBEGIN(bugprone-forwarding-reference-overload): not for another Function
  template <class Callable>
  requires(!std::same_as<std::remove_cvref_t<Callable>, Function> &&
           std::is_invocable_r_v<Result, std::decay_t<Callable>&, Args...>) Function(Callable&& callable) {
    using Held = std::decay_t<Callable>;
    if constexpr (std::is_constructible_v<Held, std::nullptr_t>) {
      if (!callable) return;
    }
    held_ = std::make_shared<Held>(std::forward<Callable>(callable));
    call_ = [](void* held, Args... args) -> Result {
      if constexpr (std::is_void_v<Result>)
        (*static_cast<Held*>(held))(std::forward<Args>(args)...);
      else
        return (*static_cast<Held*>(held))(std::forward<Args>(args)...);
    };
  }
  // NOLINTEND(bugprone-forwarding-reference-overload)

  /// Whether there is something to call.
  explicit operator bool() const noexcept { return held_ != nullptr; }

  /// Calls it; what it throws comes through.
  Result operator()(Args... args) const { return call_(held_.get(), std::forward<Args>(args)...); }

 private:
  std::shared_ptr<void> held_ = {};
  Result (*call_)(void* held, Args... args) = nullptr;
};

}  // namespace ballast

#pragma GCC visibility pop
