// SPDX-License-Identifier: Apache-2.0
// Element types. There is one table of them in the whole library (src/tensor/dtype.cpp); everything that is
// known about a dtype, in any format, is a column of it.
//
// Throws: nothing (dtype_from_name() std::bad_alloc). A DType that is no enumerator is refused nowhere: make
// none. Owns: texts and rows are constants. Threads: every function may be called from several at once.
// Costs: a look into the table; the searches by name go through its 34 rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <type_traits>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast {

/// The first 22 are Safetensors' own, in that format's order (its writer sorts by it); the rest is what
/// PyTorch adds.
enum class DType : std::uint8_t {
  boolean,
  f4,
  f6_e2m3,
  f6_e3m2,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
  c32,
  c128,
  qi8,
  qu8,
  qi32,
  qu4x2,
  qu2x4,
  bits1x8,
  bits2x4,
  bits4x2,
  bits8,
  bits16,
};

/// How many dtypes there are.
inline constexpr std::size_t kDTypeCount = 34;

/// What the elements of a dtype are.
enum class DTypeKind : std::uint8_t {
  boolean,
  unsigned_integer,
  signed_integer,
  floating,
  complex,
  quantized,
  opaque
};

/// THE row of a dtype: everything that is known of it.
struct DTypeInfo {
  DType dtype;                  ///< whose row it is
  std::string_view code;        ///< "BF16": Safetensors' spelling, ours in the same style for the others
  std::string_view torch_name;  ///< "bfloat16", as in torch.bfloat16; empty when PyTorch has no such dtype
  std::uint8_t bits;            ///< per element, as it lies in memory
  DTypeKind kind;               ///< what its elements are
  bool in_safetensors;          ///< the specification knows it
  /// "BFloat16": PyTorch's C++ name
  std::string_view torch_scalar;
  /// PyTorch has a class for storages of it, torch_scalar with "Storage" behind it; the others are untyped
  bool torch_storage;
  /// "f4": NumPy's kind and size, without the byte order; empty when NumPy has no such dtype
  std::string_view numpy;
};

/// The row; of constant cost, and valid for ever.
[[nodiscard]] const DTypeInfo& info(DType dtype) noexcept;

/// "F32" → DType::f32; nullopt when there is no such code.
[[nodiscard]] std::optional<DType> dtype_from_code(std::string_view code) noexcept;
/// "float32" → DType::f32.
[[nodiscard]] std::optional<DType> dtype_from_torch(std::string_view torch_name) noexcept;
/// "Float" → DType::f32.
[[nodiscard]] std::optional<DType> dtype_from_torch_scalar(std::string_view torch_scalar) noexcept;
/// "f4" → DType::f32.
[[nodiscard]] std::optional<DType> dtype_from_numpy(std::string_view numpy) noexcept;
/// As people write it: a code in any case ("f32"), PyTorch's name ("float32", "torch.float32"), NumPy's
/// ("f4", which is float32; the code is "F4"), full, half or double.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);

/// Integer, floating or boolean: what casts between values are defined for.
[[nodiscard]] bool is_real(DType dtype) noexcept;
/// One of the floating-point dtypes, of any size; complex ones are none.
[[nodiscard]] bool is_floating(DType dtype) noexcept;

std::ostream& operator<<(std::ostream& out, DType dtype);

// Element types C++20 has no name for: the bits of a value, and the way to and from float, one at a time.
// Tensor::to() converts many at once. They are equal when their bits are.
/// IEEE's binary16, DType::f16.
struct Half {
  std::uint16_t bits;  ///< as it lies in memory

  /// Rounded to nearest even; beyond 65504, after rounding, infinity.
  [[nodiscard]] static Half from(float value) noexcept;
  /// Exact.
  explicit operator float() const noexcept;
  friend bool operator==(Half, Half) = default;
};

/// The upper half of a float, DType::bf16.
struct BFloat16 {
  std::uint16_t bits;  ///< as it lies in memory

  /// Rounded to nearest even.
  [[nodiscard]] static BFloat16 from(float value) noexcept;
  /// Exact.
  explicit operator float() const noexcept;
  friend bool operator==(BFloat16, BFloat16) = default;
};

namespace detail {

/// Characters are no numbers.
template <class T>
inline constexpr bool kIsInteger =
    std::is_integral_v<T> && !std::is_same_v<T, char> && !std::is_same_v<T, wchar_t> &&
    !std::is_same_v<T, char8_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t> &&
    sizeof(T) <= 8;

template <class T>
[[nodiscard]] consteval DType dtype_of_type() {
  const auto integer = [](DType with_sign, DType without) {
    return std::is_signed_v<T> ? with_sign : without;
  };
  static_assert(kIsInteger<T> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                "ballast: no dtype has values of this type; those of bool, integers, float, double, "
                "ballast::Half and ballast::BFloat16 have one");
  if (std::is_same_v<T, bool>) return DType::boolean;
  if (std::is_same_v<T, float>) return DType::f32;
  if (std::is_same_v<T, double>) return DType::f64;
  if (std::is_same_v<T, Half>) return DType::f16;
  if (std::is_same_v<T, BFloat16>) return DType::bf16;
  if (sizeof(T) == 1) return integer(DType::i8, DType::u8);
  if (sizeof(T) == 2) return integer(DType::i16, DType::u16);
  if (sizeof(T) == 4) return integer(DType::i32, DType::u32);
  return integer(DType::i64, DType::u64);
}

}  // namespace detail

/// dtype_of<float> == DType::f32: for the types an element can be read as. long and long long are I64.
template <class T>
inline constexpr DType dtype_of = detail::dtype_of_type<T>();

}  // namespace ballast

#pragma GCC visibility pop
