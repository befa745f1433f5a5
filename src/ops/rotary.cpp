// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "base/checked.h"
#include "ops/args.h"
#include "ops/made_of_others.h"

namespace ballast {
namespace {

Tensor every_second(const Tensor& x, std::int64_t first) {
  return x.index({ellipsis, Slice{first, {}, 2}});
}

Tensor turned_pairs(const Tensor& x, const RotaryTables& by, RotaryPairs pairs) {
  const std::int64_t half = x.shape()[x.rank() - 1] / 2;
  const bool apart = pairs == RotaryPairs::halves;
  const Tensor a = apart ? x.narrow(-1, 0, half) : every_second(x, 0);
  const Tensor b = apart ? x.narrow(-1, half, half) : every_second(x, 1);
  const Tensor first = sub(mul(a, by.cos), mul(b, by.sin));
  const Tensor second = add(mul(b, by.cos), mul(a, by.sin));
  return apart ? concat({first, second}, -1) : flatten(stack({first, second}, -1), -2, -1);
}

}  // namespace

RotaryTables rotary_tables(std::int64_t length, std::int64_t features, double base, std::int64_t first) {
  if (features < 2 || features % 2 != 0 || length < 0 || !(base > 0))
    fail(Errc::invalid_argument, "rotary_tables", "{} positions of {} features with base {}", length,
         features, base);
  const auto past = try_add<std::int64_t>(first, length);
  if (!past)
    fail(Errc::size_overflow, "rotary_tables", "{} positions from {} on are more than 64 bits count", length,
         first);
  static_cast<void>(Tensor(DType::f32, {length, features / 2}));  // refuses what cannot be
  Tensor steps = Tensor::empty(DType::f32, {1, features / 2});
  float* step = ops::data_of(steps);
  for (std::int64_t i = 0; i < features; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(features);
    *step++ = 1.0F / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
  }
  const Tensor positions = arange(first, *past).to(DType::f32).unsqueeze(1);
  const Tensor angles = mul(positions, steps);
  return {cos(angles), sin(angles)};
}

Tensor rotary_embedding(const Tensor& x, const RotaryTables& tables, RotaryPairs pairs) {
  if (!is_floating(x.dtype()) || x.rank() < 1 || tables.cos.rank() < 1 ||
      tables.cos.shape() != tables.sin.shape())
    fail(Errc::shape_mismatch, "rotary_embedding", "{} by tables {} and {}", ops::form(x),
         ops::form(tables.cos), ops::form(tables.sin));
  const std::int64_t features = x.shape()[x.rank() - 1];
  const std::int64_t rotary = 2 * tables.cos.shape()[tables.cos.rank() - 1];
  if (rotary > features)
    fail(Errc::shape_mismatch, "rotary_embedding", "tables of {} features for {}", rotary, ops::form(x));
  return ops::rounded_once(x, [&](const Tensor& v) {
    const RotaryTables by{tables.cos.to(v.dtype()), tables.sin.to(v.dtype())};
    if (rotary == features) return turned_pairs(v, by, pairs);
    return concat({turned_pairs(v.narrow(-1, 0, rotary), by, pairs), v.narrow(-1, rotary, features - rotary)},
                  -1);
  });
}

}  // namespace ballast
