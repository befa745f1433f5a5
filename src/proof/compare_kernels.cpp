// SPDX-License-Identifier: Apache-2.0
// Each loop is written once, without branches, and built for each kind of instructions: the attribute of the
// function it is inlined into decides. FMA is not used, so that the same numbers come out of all of them but
// for the order of sums.
#include "proof/compare_kernels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/instructions.h"

namespace ballast {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

BALLAST_LOOP Comparison compare(const double* a, const double* b, std::size_t count, Tolerance tolerance) {
  double max_abs = 0;
  double max_rel = 0;
  double sum_ab = 0;
  double sum_aa = 0;
  double sum_bb = 0;
  double sum_dd = 0;
  double differing = 0;  // counts, as doubles: with one type in all lanes the compiler makes vectors
  double outside = 0;
  double odd = 0;
#pragma omp simd reduction(max : max_abs, max_rel) \
    reduction(+ : sum_ab, sum_aa, sum_bb, sum_dd, differing, outside, odd)
  for (std::size_t i = 0; i < count; ++i) {
    const double left = a[i];
    const double right = b[i];
    const double left_size = std::fabs(left);
    const double right_size = std::fabs(right);
    const double larger = left_size > right_size ? left_size : right_size;
    const double difference = std::fabs(left - right);
    const double quotient = difference / larger;
    const double ab = left * right;
    const double aa = left * left;
    const double bb = right * right;
    const double dd = difference * difference;
    const double slack = tolerance.relative * larger;
    const bool both_nan = static_cast<int>(left != left) & static_cast<int>(right != right);
    const bool same = static_cast<int>(left == right) | static_cast<int>(both_nan);
    const bool finite = static_cast<int>(left_size < kInfinity) & static_cast<int>(right_size < kInfinity);
    const double apart = finite ? difference : kInfinity;
    const double apart_relative = finite ? quotient : kInfinity;
    const double distance = same ? 0.0 : apart;
    const double relative = same ? 0.0 : apart_relative;
    const double allowed = tolerance.absolute + (finite ? slack : 0.0);
    differing += same ? 0.0 : 1.0;
    outside += distance > allowed ? 1.0 : 0.0;
    max_abs = distance > max_abs ? distance : max_abs;
    max_rel = relative > max_rel ? relative : max_rel;
    odd += finite ? 0.0 : 1.0;
    sum_ab += finite ? ab : 0.0;
    sum_aa += finite ? aa : 0.0;
    sum_bb += finite ? bb : 0.0;
    sum_dd += finite ? dd : 0.0;
  }
  return {max_abs,
          max_rel,
          sum_ab,
          sum_aa,
          sum_bb,
          sum_dd,
          static_cast<std::uint64_t>(differing),
          static_cast<std::uint64_t>(outside),
          odd > 0};
}

BALLAST_LOOP double sum_of_squares(const double* values, std::size_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < count; ++i) {
    const double square = values[i] * values[i];
    sum += std::fabs(values[i]) < kInfinity ? square : 0.0;
  }
  return sum;
}

BALLAST_LOOP bool any_nan(const double* values, std::size_t count) {
  double found = 0;
#pragma omp simd reduction(+ : found)
  for (std::size_t i = 0; i < count; ++i) found += values[i] != values[i] ? 1.0 : 0.0;
  return found > 0;
}

// Floating-point numbers in their order as integers.
template <class Signed>
BALLAST_LOOP std::uint64_t ulps(const std::byte* a, const std::byte* b, std::size_t count, Signed exponent) {
  using Unsigned = std::make_unsigned_t<Signed>;
  constexpr Signed kLow = std::numeric_limits<Signed>::min();
  Unsigned most = 0;
#pragma omp simd reduction(max : most)
  for (std::size_t i = 0; i < count; ++i) {
    Signed left = 0;
    Signed right = 0;
    std::memcpy(&left, a + i * sizeof(Signed), sizeof left);
    std::memcpy(&right, b + i * sizeof(Signed), sizeof right);
    const bool finite =
        static_cast<int>((left & exponent) != exponent) & static_cast<int>((right & exponent) != exponent);
    const auto x = left < 0 ? static_cast<Signed>(kLow - left) : left;
    const auto y = right < 0 ? static_cast<Signed>(kLow - right) : right;
    const auto up = static_cast<Unsigned>(static_cast<Unsigned>(x) - static_cast<Unsigned>(y));
    const auto down = static_cast<Unsigned>(static_cast<Unsigned>(y) - static_cast<Unsigned>(x));
    const Unsigned apart = x > y ? up : down;
    const Unsigned counted = finite ? apart : Unsigned{0};
    most = counted > most ? counted : most;
  }
  return most;
}

BALLAST_AVX2 Comparison compare_avx2(const double* a, const double* b, std::size_t count,
                                     Tolerance tolerance) {
  return compare(a, b, count, tolerance);
}

BALLAST_AVX512 Comparison compare_avx512(const double* a, const double* b, std::size_t count,
                                         Tolerance tolerance) {
  return compare(a, b, count, tolerance);
}

BALLAST_AVX2 double squares_avx2(const double* values, std::size_t count) {
  return sum_of_squares(values, count);
}

BALLAST_AVX512 double squares_avx512(const double* values, std::size_t count) {
  return sum_of_squares(values, count);
}

BALLAST_AVX2 bool any_nan_avx2(const double* values, std::size_t count) {
  return any_nan(values, count);
}

BALLAST_AVX512 bool any_nan_avx512(const double* values, std::size_t count) {
  return any_nan(values, count);
}

template <class Signed>
BALLAST_AVX2 std::uint64_t ulps_avx2(const std::byte* a, const std::byte* b, std::size_t count,
                                     Signed exponent) {
  return ulps(a, b, count, exponent);
}

template <class Signed>
BALLAST_AVX512 std::uint64_t ulps_avx512(const std::byte* a, const std::byte* b, std::size_t count,
                                         Signed exponent) {
  return ulps(a, b, count, exponent);
}

}  // namespace

Comparison compare_values(const double* a, const double* b, std::size_t count, Tolerance tolerance, Isa isa) {
  if (isa == Isa::avx512) return compare_avx512(a, b, count, tolerance);
  if (isa == Isa::avx2) return compare_avx2(a, b, count, tolerance);
  return compare(a, b, count, tolerance);
}

double squares(const double* values, std::size_t count, Isa isa) {
  if (isa == Isa::avx512) return squares_avx512(values, count);
  if (isa == Isa::avx2) return squares_avx2(values, count);
  return sum_of_squares(values, count);
}

bool has_nan(const double* values, std::size_t count, Isa isa) {
  if (isa == Isa::avx512) return any_nan_avx512(values, count);
  if (isa == Isa::avx2) return any_nan_avx2(values, count);
  return any_nan(values, count);
}

template <class Signed>
std::uint64_t most_ulps(const std::byte* a, const std::byte* b, std::size_t count, Signed exponent, Isa isa) {
  if (isa == Isa::avx512) return ulps_avx512(a, b, count, exponent);
  if (isa == Isa::avx2) return ulps_avx2(a, b, count, exponent);
  return ulps(a, b, count, exponent);
}

template std::uint64_t most_ulps(const std::byte*, const std::byte*, std::size_t, std::int16_t, Isa);
template std::uint64_t most_ulps(const std::byte*, const std::byte*, std::size_t, std::int32_t, Isa);
template std::uint64_t most_ulps(const std::byte*, const std::byte*, std::size_t, std::int64_t, Isa);

}  // namespace ballast
