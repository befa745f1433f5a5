// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/dtypes.h"

#include <algorithm>
#include <utility>

#include "formats/torch/objects.h"

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

std::uint64_t swap_unit(DType dtype) noexcept {
  return info(dtype).kind == DTypeKind::complex ? item_bytes(dtype) / 2 : item_bytes(dtype);
}

std::optional<DType> Objects::dtype_of_class(Ref global) {
  const ValueNode* node = as_kind(global, NodeKind::global);
  if (node == nullptr) refuse(Errc::type_mismatch, "{} where a storage class belongs", describe(global));
  const auto role = static_cast<Role>(node->role);
  if (role == Role::untyped_storage) return std::nullopt;
  const std::string_view full = tree_->type_name(node->type);
  if (role != Role::storage_class && role != Role::tensor_class)
    refuse(role == Role::unknown ? Errc::bad_dtype : Errc::type_mismatch, "{} is no storage class of PyTorch",
           full);
  std::string_view name = full.substr(full.rfind('.') + 1);
  name.remove_suffix(role == Role::storage_class ? std::string_view("Storage").size()
                                                 : std::string_view("Tensor").size());
  const auto dtype = dtype_from_torch_scalar(name);  // of FloatStorage, Float8_e4m3fnStorage
  if (!dtype) refuse(Errc::bad_dtype, "{}: no such element type", full);
  return dtype;
}

}  // namespace ballast::torch
