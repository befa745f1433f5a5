// SPDX-License-Identifier: Apache-2.0
// THE table of element types.
#include "ballast/dtype.h"

#include <array>
#include <ostream>
#include <string>
#include <utility>

namespace ballast {
namespace {

using K = DTypeKind;

constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {DType::boolean, "BOOL", "bool", 8, K::boolean, true, "Bool", true, "b1"},
    {DType::f4, "F4", "float4_e2m1fn_x2", 4, K::floating, true, "Float4_e2m1fn_x2", false, ""},
    {DType::f6_e2m3, "F6_E2M3", "", 6, K::floating, true, "", false, ""},
    {DType::f6_e3m2, "F6_E3M2", "", 6, K::floating, true, "", false, ""},
    {DType::u8, "U8", "uint8", 8, K::unsigned_integer, true, "Byte", true, "u1"},
    {DType::i8, "I8", "int8", 8, K::signed_integer, true, "Char", true, "i1"},
    {DType::f8_e5m2, "F8_E5M2", "float8_e5m2", 8, K::floating, true, "Float8_e5m2", false, ""},
    {DType::f8_e4m3, "F8_E4M3", "float8_e4m3fn", 8, K::floating, true, "Float8_e4m3fn", false, ""},
    {DType::f8_e8m0, "F8_E8M0", "float8_e8m0fnu", 8, K::floating, true, "Float8_e8m0fnu", false, ""},
    {DType::f8_e4m3fnuz, "F8_E4M3FNUZ", "float8_e4m3fnuz", 8, K::floating, true, "Float8_e4m3fnuz", false,
     ""},
    {DType::f8_e5m2fnuz, "F8_E5M2FNUZ", "float8_e5m2fnuz", 8, K::floating, true, "Float8_e5m2fnuz", false,
     ""},
    {DType::i16, "I16", "int16", 16, K::signed_integer, true, "Short", true, "i2"},
    {DType::u16, "U16", "uint16", 16, K::unsigned_integer, true, "UInt16", false, "u2"},
    {DType::f16, "F16", "float16", 16, K::floating, true, "Half", true, "f2"},
    {DType::bf16, "BF16", "bfloat16", 16, K::floating, true, "BFloat16", true, ""},
    {DType::i32, "I32", "int32", 32, K::signed_integer, true, "Int", true, "i4"},
    {DType::u32, "U32", "uint32", 32, K::unsigned_integer, true, "UInt32", false, "u4"},
    {DType::f32, "F32", "float32", 32, K::floating, true, "Float", true, "f4"},
    {DType::c64, "C64", "complex64", 64, K::complex, true, "ComplexFloat", true, "c8"},
    {DType::f64, "F64", "float64", 64, K::floating, true, "Double", true, "f8"},
    {DType::i64, "I64", "int64", 64, K::signed_integer, true, "Long", true, "i8"},
    {DType::u64, "U64", "uint64", 64, K::unsigned_integer, true, "UInt64", false, "u8"},
    {DType::c32, "C32", "complex32", 32, K::complex, false, "ComplexHalf", false, ""},
    {DType::c128, "C128", "complex128", 128, K::complex, false, "ComplexDouble", true, "c16"},
    {DType::qi8, "QI8", "qint8", 8, K::quantized, false, "QInt8", true, ""},
    {DType::qu8, "QU8", "quint8", 8, K::quantized, false, "QUInt8", true, ""},
    {DType::qi32, "QI32", "qint32", 32, K::quantized, false, "QInt32", true, ""},
    {DType::qu4x2, "QU4X2", "quint4x2", 4, K::quantized, false, "QUInt4x2", true, ""},
    {DType::qu2x4, "QU2X4", "quint2x4", 2, K::quantized, false, "QUInt2x4", true, ""},
    {DType::bits1x8, "BITS1X8", "bits1x8", 8, K::opaque, false, "Bits1x8", false, ""},
    {DType::bits2x4, "BITS2X4", "bits2x4", 8, K::opaque, false, "Bits2x4", false, ""},
    {DType::bits4x2, "BITS4X2", "bits4x2", 8, K::opaque, false, "Bits4x2", false, ""},
    {DType::bits8, "BITS8", "bits8", 8, K::opaque, false, "Bits8", false, ""},
    {DType::bits16, "BITS16", "bits16", 16, K::opaque, false, "Bits16", false, ""},
}};

constexpr bool in_enum_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].dtype) != i) return false;
  }
  return true;
}

static_assert(in_enum_order(), "rows stand in the order of the enumerators");

}  // namespace

const DTypeInfo& info(DType dtype) noexcept {
  return kTable[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_from_code(std::string_view code) noexcept {
  for (const DTypeInfo& row : kTable) {
    if (row.code == code) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_torch(std::string_view torch_name) noexcept {
  for (const DTypeInfo& row : kTable) {
    if (!torch_name.empty() && row.torch_name == torch_name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_torch_scalar(std::string_view torch_scalar) noexcept {
  for (const DTypeInfo& row : kTable) {
    if (!torch_scalar.empty() && row.torch_scalar == torch_scalar) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_numpy(std::string_view numpy) noexcept {
  for (const DTypeInfo& row : kTable) {
    if (!numpy.empty() && row.numpy == numpy) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kWords[] = {
      {"full", DType::f32},        {"half", DType::f16},       {"double", DType::f64},
      {"torch.float", DType::f32}, {"torch.half", DType::f16}, {"torch.double", DType::f64},
      {"torch.short", DType::i16}, {"torch.int", DType::i32},  {"torch.long", DType::i64}};
  for (const auto& [word, dtype] : kWords) {
    if (name == word) return dtype;
  }
  // NumPy's letters first: "f4" and "i8" have meant float32 and int64 to everybody for longer than F4 and I8.
  const bool has_order = name.starts_with('<') || name.starts_with('=') || name.starts_with('|');
  if (const auto dtype = dtype_from_numpy(name.substr(has_order ? 1 : 0))) return dtype;
  std::string code(name);
  for (char& c : code) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (const auto dtype = dtype_from_code(code)) return dtype;
  return dtype_from_torch(name.substr(name.starts_with("torch.") ? 6 : 0));
}

bool is_real(DType dtype) noexcept {
  const DTypeKind kind = info(dtype).kind;
  return kind == K::boolean || kind == K::unsigned_integer || kind == K::signed_integer ||
         kind == K::floating;
}

bool is_floating(DType dtype) noexcept {
  return info(dtype).kind == K::floating;
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << info(dtype).code;
}

}  // namespace ballast
