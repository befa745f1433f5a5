// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/dtypes.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace ballast::torch {
namespace {

constexpr std::pair<std::string_view, DType> kShortNames[] = {
    {"half", DType::f16},  {"float", DType::f32},  {"double", DType::f64},
    {"short", DType::i16}, {"int", DType::i32},    {"long", DType::i64},
    {"chalf", DType::c32}, {"cfloat", DType::c64}, {"cdouble", DType::c128},
};

}  // namespace

std::optional<DType> dtype_of_torch_name(std::string_view name) noexcept {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (const auto dtype = dtype_from_torch(name)) return dtype;
  for (const auto& [short_name, dtype] : kShortNames) {
    if (short_name == name) return dtype;
  }
  return std::nullopt;
}

std::uint64_t item_bytes(DType dtype) noexcept {
  return std::max<std::uint64_t>(info(dtype).bits / 8, 1);
}

std::uint64_t item_bytes(std::optional<DType> dtype) noexcept {
  return dtype ? item_bytes(*dtype) : 1;
}

std::optional<std::uint64_t> storage_bytes(std::optional<DType> dtype, std::int64_t numel) noexcept {
  return try_mul<std::int64_t>(numel, static_cast<std::int64_t>(item_bytes(dtype)));
}

std::uint64_t swap_unit(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::complex ? item_bytes(dtype) / 2 : item_bytes(dtype);
}

}  // namespace ballast::torch
