// SPDX-License-Identifier: Apache-2.0
// Bits by memcmp; values as doubles, in blocks that stay in the first-level cache. Partial results are put
// together in the order of the data.
#include "proof/compare.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/pieces.h"
#include "base/sizes.h"
#include "proof/compare_kernels.h"
#include "tensor/elements.h"

namespace ballast {
namespace {

constexpr std::uint64_t kPieceValues = 1U << 20U;  // a multiple of 8: pieces begin on bytes
constexpr std::size_t kValuesAtOnce = 1024;
constexpr std::uint64_t kReadValues = 32 * kValuesAtOnce;

bool same_bits(const TensorPair& pair, std::uint64_t at, std::uint64_t end,
               const std::atomic<bool>& differs) {
  thread_local std::vector<std::byte> left(kBlockBytes);
  thread_local std::vector<std::byte> right(kBlockBytes);
  for (; at < end && !differs; at += kBlockBytes) {
    const auto size = static_cast<std::size_t>(std::min(kBlockBytes, end - at));
    pair.first.read(at, std::span(left).first(size));
    pair.second.read(at, std::span(right).first(size));
    if (std::memcmp(left.data(), right.data(), size) != 0) return false;
  }
  return true;
}

// What is known of a piece; first: from the beginning of the tensor.
struct PieceSums {
  Distance distance;
  double ab = 0;
  double aa = 0;
  double bb = 0;
  double dd = 0;
  bool odd = false;  // of one block: some value is not finite

  void append(const PieceSums& next) {
    if (distance.differing == 0 && next.distance.differing > 0) distance.first = next.distance.first;
    distance.count += next.distance.count;
    distance.differing += next.distance.differing;
    distance.outside += next.distance.outside;
    distance.max_abs = std::max(distance.max_abs, next.distance.max_abs);
    distance.max_rel = std::max(distance.max_rel, next.distance.max_rel);
    if (!distance.nan_a) distance.nan_a = next.distance.nan_a;
    if (!distance.nan_b) distance.nan_b = next.distance.nan_b;
    if (next.distance.max_ulp)
      distance.max_ulp = std::max(distance.max_ulp.value_or(0), *next.distance.max_ulp);
    ab += next.ab;
    aa += next.aa;
    bb += next.bb;
    dd += next.dd;
  }
};

PieceSums part_of(const double* a, const double* b, std::size_t count, const DiffOptions& options) {
  const Comparison found = compare_values(a, b, count, {options.tolerance, options.relative}, best_isa());
  PieceSums part{.distance = {}, .ab = found.ab, .aa = found.aa, .bb = found.bb, .dd = found.dd};
  part.distance.count = count;
  part.distance.differing = found.differing;
  part.distance.outside = found.outside;
  part.distance.max_abs = found.max_abs;
  part.distance.max_rel = found.max_rel;
  part.odd = found.odd;
  return part;
}

// 64-bit integers do not all fit into a double; they and doubles all fit into this.
using Exact = long double;

bool needs_exact(DType dtype) {
  return dtype == DType::i64 || dtype == DType::u64;
}

Exact exact_value(DType dtype, const std::byte* raw, std::size_t i, const double* values) {
  if (!needs_exact(dtype)) return static_cast<Exact>(values[i]);
  std::uint64_t bits = 0;
  std::memcpy(&bits, raw + i * sizeof bits, sizeof bits);
  return dtype == DType::u64 ? static_cast<Exact>(bits) : static_cast<Exact>(static_cast<std::int64_t>(bits));
}

// As compare_values(), of numbers a double cannot tell apart; the first that differs is found on the way.
template <class A, class B>
PieceSums part_of_exact(const A& a, const B& b, std::size_t count, const DiffOptions& options) {
  PieceSums part;
  part.distance.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    const Exact x = a(i);
    const Exact y = b(i);
    if (std::isfinite(x) && std::isfinite(y)) {
      part.ab += static_cast<double>(x) * static_cast<double>(y);
      part.aa += static_cast<double>(x) * static_cast<double>(x);
      part.bb += static_cast<double>(y) * static_cast<double>(y);
    }
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (part.distance.differing++ == 0) part.distance.first = i;
    const bool finite = std::isfinite(x) && std::isfinite(y);
    const Exact apart = finite ? std::fabs(x - y) : std::numeric_limits<Exact>::infinity();
    const Exact larger = std::max(std::fabs(x), std::fabs(y));
    if (!finite ||
        apart > static_cast<Exact>(options.tolerance) + static_cast<Exact>(options.relative) * larger)
      ++part.distance.outside;
    if (finite) part.dd += static_cast<double>(apart * apart);
    part.distance.max_abs = std::max(part.distance.max_abs, static_cast<double>(apart));
    part.distance.max_rel =
        std::max(part.distance.max_rel, finite ? static_cast<double>(apart / larger) : HUGE_VAL);
  }
  return part;
}

// Values that are the same on both sides: all there is to know is their length as a vector.
PieceSums part_of_equal(const double* values, std::size_t count) {
  const double sum = squares(values, count, best_isa());
  PieceSums part{.distance = {}, .ab = sum, .aa = sum, .bb = sum, .dd = 0};
  part.distance.count = count;
  return part;
}

std::optional<std::uint64_t> ulps_of(DType dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  switch (dtype) {
    case DType::f64:
      return most_ulps<std::int64_t>(a, b, count, 0x7FF0000000000000, best_isa());
    case DType::f32:
      return most_ulps<std::int32_t>(a, b, count, 0x7F800000, best_isa());
    case DType::f16:
      return most_ulps<std::int16_t>(a, b, count, 0x7C00, best_isa());
    case DType::bf16:
      return most_ulps<std::int16_t>(a, b, count, 0x7F80, best_isa());
    default:
      return std::nullopt;
  }
}

// One side of a pair: elements as they are stored, and as doubles.
struct Side {
  ElementReader reader;
  std::array<double, kValuesAtOnce> doubles{};

  const double* values(std::uint64_t at, std::size_t count) {
    reader.cast(at, std::span(doubles).first(count));
    return doubles.data();
  }
};

// Where the first NaN of a block lies, whose first value is number `place`; nothing once one was found.
void find_nan(const double* values, std::size_t count, std::uint64_t place,
              std::optional<std::uint64_t>& found) {
  if (found) return;
  const double* const end = values + count;
  const double* const at = std::find_if(values, end, [](double value) { return std::isnan(value); });
  if (at != end) found = place + static_cast<std::uint64_t>(at - values);
}

// The first pair of values that are not the same; the caller knows there is one.
std::uint64_t first_difference(const double* a, const double* b) {
  std::uint64_t i = 0;
  while (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) ++i;
  return i;
}

PieceSums compare_piece(const TensorPair& pair, std::uint64_t first, std::uint64_t count,
                        const DiffOptions& options) {
  Side a{ElementReader(pair.first)};
  Side b{ElementReader(pair.second)};
  const DType left_dtype = a.reader.stored();
  const DType right_dtype = b.reader.stored();
  PieceSums part;
  for (std::uint64_t done = 0; done < count; done += kReadValues) {
    const std::uint64_t in_reach = std::min(kReadValues, count - done);
    a.reader.read(first + done, in_reach);
    b.reader.read(first + done, in_reach);
    for (std::uint64_t at = 0; at < in_reach; at += kValuesAtOnce) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kValuesAtOnce, in_reach - at));
      const double* left = a.values(at, size);
      const std::uint64_t place = first + done + at;
      const auto note_nan = [&](const double* in_a, const double* in_b) {
        find_nan(in_a, size, place, part.distance.nan_a);
        find_nan(in_b, size, place, part.distance.nan_b);
      };
      if (left_dtype == right_dtype &&
          std::memcmp(a.reader.raw(at), b.reader.raw(at),
                      static_cast<std::size_t>(bytes_of(left_dtype, size))) == 0) {
        if (has_nan(left, size, best_isa())) note_nan(left, left);
        part.append(part_of_equal(left, size));
        continue;
      }
      const double* right = b.values(at, size);
      if (needs_exact(left_dtype) || needs_exact(right_dtype)) {
        PieceSums block =
            part_of_exact([&](std::size_t i) { return exact_value(left_dtype, a.reader.raw(at), i, left); },
                          [&](std::size_t i) { return exact_value(right_dtype, b.reader.raw(at), i, right); },
                          size, options);
        block.distance.first += place;
        note_nan(left, right);
        part.append(block);
        continue;
      }
      PieceSums block = part_of(left, right, size, options);
      if (block.distance.differing > 0) block.distance.first = place + first_difference(left, right);
      if (block.odd) note_nan(left, right);
      if (left_dtype == right_dtype)
        block.distance.max_ulp = ulps_of(left_dtype, a.reader.raw(at), b.reader.raw(at), size);
      part.append(block);
    }
  }
  return part;
}

// Squares may leave the range of F64, and those near its lower end have lost bits.
bool has_its_bits(double squares) {
  return squares >= 0x1p-900 && std::isfinite(squares);
}

Distance finish(const PieceSums& part) {
  Distance distance = part.distance;
  if (has_its_bits(part.aa) && has_its_bits(part.bb))
    distance.cosine = std::clamp(part.ab / (std::sqrt(part.aa) * std::sqrt(part.bb)), -1.0, 1.0);
  distance.l2_a = std::sqrt(part.aa);
  distance.l2_b = std::sqrt(part.bb);
  distance.l2_diff = std::sqrt(part.dd);
  if (has_its_bits(part.aa) && std::isfinite(part.dd))
    distance.rel_l2 = std::sqrt(part.dd) / std::sqrt(part.aa);
  return distance;
}

}  // namespace

std::vector<char> same_bits(std::span<const TensorPair> pairs, SharedProgress& progress) {
  const Pieces pieces(pairs.size(), kPieceBytes, [&](std::size_t i) { return pairs[i].first.size_bytes(); });
  std::vector<std::atomic<bool>> differs(pairs.size());
  pieces.for_each([&](std::size_t i, std::uint64_t piece, std::size_t) {
    const std::uint64_t at = piece * kPieceBytes;
    const std::uint64_t end = std::min(at + kPieceBytes, pairs[i].first.size_bytes());
    if (!differs[i] && !same_bits(pairs[i], at, end, differs[i])) differs[i] = true;
    progress.add(end - at);
  });
  std::vector<char> same;
  for (const auto& differ : differs) same.push_back(differ ? 0 : 1);
  return same;
}

bool comparable(DType a, DType b) {
  return meaning_of(a).per_element == meaning_of(b).per_element && (meaning_of(a).per_element > 0 || a == b);
}

std::vector<Distance> distances(std::span<const TensorPair> pairs, const DiffOptions& options,
                                SharedProgress& progress) {
  const Pieces pieces(pairs.size(), kPieceValues, [&](std::size_t i) { return values_in(pairs[i].first); });
  std::vector<PieceSums> parts(pieces.size());
  pieces.for_each([&](std::size_t i, std::uint64_t piece, std::size_t overall) {
    const std::uint64_t first = piece * kPieceValues;
    const std::uint64_t count = std::min(kPieceValues, values_in(pairs[i].first) - first);
    parts[overall] = compare_piece(pairs[i], first, count, options);
    progress.add(count * info(meaning_of(pairs[i].first.dtype()).stored).bits / 8);
  });
  std::vector<Distance> results;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    PieceSums whole;
    for (std::size_t piece = pieces.first(i); piece < pieces.end(i); ++piece) whole.append(parts[piece]);
    results.push_back(finish(whole));
  }
  return results;
}

}  // namespace ballast
