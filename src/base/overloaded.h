// SPDX-License-Identifier: Apache-2.0
// Lambdas for the alternatives of a variant, as one object for std::visit.
#pragma once

namespace ballast {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace ballast
