// SPDX-License-Identifier: Apache-2.0
// Casts of plain vectors, by every instruction set this machine has.
#pragma once

#include <span>
#include <vector>

#include "tensor/cast.h"

namespace ballast {

inline std::vector<Isa> usable_isas() {
  std::vector<Isa> found;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa <= best_isa()) found.push_back(isa);
  }
  return found;
}

inline std::vector<DType> real_dtypes() {
  std::vector<DType> found;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (is_real(static_cast<DType>(i))) found.push_back(static_cast<DType>(i));
  }
  return found;
}

/// Element `i` of packed `bytes`, as a number of info(dtype).bits bits.
inline std::uint64_t code_at(DType dtype, std::span<const std::byte> bytes, std::size_t i) {
  const std::size_t bits = info(dtype).bits;
  std::uint64_t code = 0;
  for (std::size_t b = 0; b < bits; ++b) {
    const std::size_t at = i * bits + b;
    code |= (std::to_integer<std::uint64_t>(bytes[at / 8]) >> at % 8 & 1U) << b;
  }
  return code;
}

inline std::vector<std::byte> packed(DType dtype, std::span<const std::uint64_t> codes) {
  const std::size_t bits = info(dtype).bits;
  std::vector<std::byte> bytes((codes.size() * bits + 7) / 8);
  for (std::size_t at = 0; at < codes.size() * bits; ++at) {
    if ((codes[at / bits] >> at % bits & 1U) != 0) bytes[at / 8] |= static_cast<std::byte>(1U << at % 8);
  }
  return bytes;
}

inline std::vector<std::byte> cast_bytes(Isa isa, DType from, std::span<const std::byte> in, DType to,
                                         std::size_t count) {
  std::vector<std::byte> out((count * info(to).bits + 7) / 8);
  cast_elements_with(isa, from, in.data(), to, out.data(), count);
  return out;
}

/// The codes of `values`, whose type is `from`'s, cast to `to`.
template <class T>
std::vector<std::uint64_t> cast_codes(Isa isa, DType from, std::span<const T> values, DType to) {
  const auto out = cast_bytes(isa, from, std::as_bytes(values), to, values.size());
  std::vector<std::uint64_t> codes(values.size());
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = code_at(to, out, i);
  return codes;
}

}  // namespace ballast
