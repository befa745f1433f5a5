// SPDX-License-Identifier: Apache-2.0
// PyTorch's other names for element types: C++ scalar types in storage and tensor classes, short names of
// dtypes.
#include <algorithm>
#include <utility>

#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

constexpr std::pair<std::string_view, DType> kScalarTypes[] = {
    {"Double", DType::f64},
    {"Float", DType::f32},
    {"Half", DType::f16},
    {"BFloat16", DType::bf16},
    {"Long", DType::i64},
    {"Int", DType::i32},
    {"Short", DType::i16},
    {"Char", DType::i8},
    {"Byte", DType::u8},
    {"Bool", DType::boolean},
    {"UInt16", DType::u16},
    {"UInt32", DType::u32},
    {"UInt64", DType::u64},
    {"ComplexHalf", DType::c32},
    {"ComplexFloat", DType::c64},
    {"ComplexDouble", DType::c128},
    {"QInt8", DType::qi8},
    {"QUInt8", DType::qu8},
    {"QInt32", DType::qi32},
    {"QUInt4x2", DType::qu4x2},
    {"QUInt2x4", DType::qu2x4},
    {"Bits1x8", DType::bits1x8},
    {"Bits2x4", DType::bits2x4},
    {"Bits4x2", DType::bits4x2},
    {"Bits8", DType::bits8},
    {"Bits16", DType::bits16},
    {"Float8_e5m2", DType::f8_e5m2},
    {"Float8_e4m3fn", DType::f8_e4m3},
    {"Float8_e5m2fnuz", DType::f8_e5m2fnuz},
    {"Float8_e4m3fnuz", DType::f8_e4m3fnuz},
    {"Float8_e8m0fnu", DType::f8_e8m0},
    {"Float4_e2m1fn_x2", DType::f4},
};

constexpr std::pair<std::string_view, DType> kShortNames[] = {
    {"half", DType::f16},  {"float", DType::f32},  {"double", DType::f64},
    {"short", DType::i16}, {"int", DType::i32},    {"long", DType::i64},
    {"chalf", DType::c32}, {"cfloat", DType::c64}, {"cdouble", DType::c128},
};

std::optional<DType> look_up(std::span<const std::pair<std::string_view, DType>> table,
                             std::string_view name) noexcept {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
  if (found == table.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<DType> dtype_of_scalar_type(std::string_view scalar_type) noexcept {
  return look_up(kScalarTypes, scalar_type);
}

std::optional<DType> dtype_of_torch_name(std::string_view name) noexcept {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (const auto dtype = dtype_from_torch(name)) return dtype;
  return look_up(kShortNames, name);
}

std::uint64_t item_bytes(DType dtype) noexcept {
  return std::max<std::uint64_t>(info(dtype).bits / 8, 1);
}

std::optional<DType> Objects::dtype_of_class(Ref global) {
  const Node* node = as_kind(global, NodeKind::global);
  if (node == nullptr) refuse(Errc::type_mismatch, "{} where a storage class belongs", describe(global));
  const auto role = static_cast<Role>(node->role);
  if (role == Role::untyped_storage) return std::nullopt;
  const std::string_view full = tree_->type_name(node->type);
  if (role != Role::storage_class && role != Role::tensor_class)
    refuse(Errc::type_mismatch, "{} is no storage class of PyTorch", full);
  std::string_view name = full.substr(full.rfind('.') + 1);
  name.remove_suffix(role == Role::storage_class ? std::string_view("Storage").size()
                                                 : std::string_view("Tensor").size());
  const auto dtype = dtype_of_scalar_type(name);
  if (!dtype) refuse(Errc::bad_dtype, "{}: no such element type", full);
  return dtype;
}

}  // namespace ballast::torch
