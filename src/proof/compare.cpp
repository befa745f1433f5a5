// SPDX-License-Identifier: Apache-2.0
// Bits by memcmp; values as doubles, in blocks that stay in the first-level cache, with independent lanes so
// that the compiler may use vectors. Partial results are put together in the order of the data.
#include "proof/compare.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/thread_pool.h"
#include "tensor/cast.h"
#include "tensor/meaning.h"

namespace ballast {
namespace {

constexpr std::uint64_t kPieceBytes = 4U << 20U;   // one thread's share when bits are compared
constexpr std::uint64_t kReadBytes = 256U << 10U;  // of each side
constexpr std::uint64_t kPieceValues = 1U << 20U;  // a multiple of 8: pieces begin on bytes
constexpr std::size_t kBlock = 1024;               // values at once
constexpr std::size_t kLanes = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Pieces of all pairs, numbered through: pair p has the pieces [starts[p], starts[p + 1]).
class Pieces {
 public:
  template <class Count>
  Pieces(std::size_t pairs, Count&& count) {
    for (std::size_t i = 0; i < pairs; ++i) starts_.push_back(starts_.back() + count(i));
  }

  [[nodiscard]] std::uint64_t first(std::size_t pair) const { return starts_[pair]; }

  [[nodiscard]] std::uint64_t end(std::size_t pair) const { return starts_[pair + 1]; }

  /// work(pair, piece of the pair, piece of all).
  template <class Work>
  void for_each(Work&& work) const {
    parallel_for(starts_.back(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      auto owner = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) -
                                            starts_.begin()) -
                   1;
      for (std::uint64_t piece = begin; piece < end; ++piece) {
        while (starts_[owner + 1] <= piece) ++owner;
        work(owner, piece - starts_[owner], piece);
      }
    });
  }

 private:
  std::vector<std::uint64_t> starts_ = {0};
};

std::uint64_t pieces_in(std::uint64_t size, std::uint64_t piece) {
  return (size + piece - 1) / piece;
}

bool same_bits(const TensorPair& pair, std::uint64_t at, std::uint64_t end,
               const std::atomic<bool>& differs) {
  thread_local std::vector<std::byte> left(kReadBytes);
  thread_local std::vector<std::byte> right(kReadBytes);
  for (; at < end && !differs; at += kReadBytes) {
    const auto size = static_cast<std::size_t>(std::min(kReadBytes, end - at));
    pair.first.read(at, std::span(left).first(size));
    pair.second.read(at, std::span(right).first(size));
    if (std::memcmp(left.data(), right.data(), size) != 0) return false;
  }
  return true;
}

// What is known of a piece; first: from the beginning of the tensor.
struct Part {
  Distance distance;
  double ab = 0;
  double aa = 0;
  double bb = 0;

  void append(const Part& next) {
    if (distance.differing == 0 && next.distance.differing > 0) distance.first = next.distance.first;
    distance.count += next.distance.count;
    distance.differing += next.distance.differing;
    distance.outside += next.distance.outside;
    distance.max_abs = std::max(distance.max_abs, next.distance.max_abs);
    distance.max_rel = std::max(distance.max_rel, next.distance.max_rel);
    if (next.distance.max_ulp)
      distance.max_ulp = std::max(distance.max_ulp.value_or(0), *next.distance.max_ulp);
    ab += next.ab;
    aa += next.aa;
    bb += next.bb;
  }
};

struct Lanes {
  std::array<double, kLanes> max_abs{};
  std::array<double, kLanes> max_rel{};
  std::array<double, kLanes> ab{};
  std::array<double, kLanes> aa{};
  std::array<double, kLanes> bb{};
  std::array<double, kLanes> differing{};  // counts, as doubles: one type in all lanes makes vectors
  std::array<double, kLanes> outside{};
};

// `padded` values, a multiple of the lanes; those behind the real ones are zero on both sides.
Part compare_padded(const double* a, const double* b, std::size_t padded, const DiffOptions& options) {
  Lanes lanes;
  for (std::size_t i = 0; i < padded; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const double left = a[i + k];
      const double right = b[i + k];
      const bool same = left == right || (left != left && right != right);
      const bool finite = std::fabs(left) < kInfinity && std::fabs(right) < kInfinity;
      const double difference = std::fabs(left - right);
      const double larger = std::fabs(left) > std::fabs(right) ? std::fabs(left) : std::fabs(right);
      const double distance = same ? 0 : finite ? difference : kInfinity;
      const double relative = same ? 0 : finite ? difference / larger : kInfinity;
      const double allowed = options.tolerance + (finite ? options.relative * larger : 0);
      lanes.differing[k] += same ? 0.0 : 1.0;
      lanes.outside[k] += distance > allowed ? 1.0 : 0.0;
      lanes.max_abs[k] = distance > lanes.max_abs[k] ? distance : lanes.max_abs[k];
      lanes.max_rel[k] = relative > lanes.max_rel[k] ? relative : lanes.max_rel[k];
      lanes.ab[k] += finite ? left * right : 0;
      lanes.aa[k] += finite ? left * left : 0;
      lanes.bb[k] += finite ? right * right : 0;
    }
  }
  Part part;
  for (std::size_t k = 0; k < kLanes; ++k) {
    part.distance.differing += static_cast<std::uint64_t>(lanes.differing[k]);
    part.distance.outside += static_cast<std::uint64_t>(lanes.outside[k]);
    part.distance.max_abs = std::max(part.distance.max_abs, lanes.max_abs[k]);
    part.distance.max_rel = std::max(part.distance.max_rel, lanes.max_rel[k]);
    part.ab += lanes.ab[k];
    part.aa += lanes.aa[k];
    part.bb += lanes.bb[k];
  }
  return part;
}

// Values that are the same on both sides: all there is to know is their length as a vector.
Part equal_padded(const double* values, std::size_t padded) {
  std::array<double, kLanes> sums{};
  for (std::size_t i = 0; i < padded; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) {
      const double value = values[i + k];
      sums[k] += std::fabs(value) < kInfinity ? value * value : 0;
    }
  }
  Part part;
  for (const double sum : sums) part.aa += sum;
  part.ab = part.aa;
  part.bb = part.aa;
  return part;
}

// Floating-point numbers in their order as integers; 0 and -0 are one.
template <class Signed>
std::uint64_t ulps(const std::byte* a, const std::byte* b, std::size_t count, Signed exponent) {
  using Unsigned = std::make_unsigned_t<Signed>;
  constexpr Signed kLow = std::numeric_limits<Signed>::min();
  Unsigned most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Signed left = 0;
    Signed right = 0;
    std::memcpy(&left, a + i * sizeof(Signed), sizeof left);
    std::memcpy(&right, b + i * sizeof(Signed), sizeof right);
    const bool finite = (left & exponent) != exponent && (right & exponent) != exponent;
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

std::optional<std::uint64_t> ulps_of(DType dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  switch (dtype) {
    case DType::f64:
      return ulps<std::int64_t>(a, b, count, 0x7FF0000000000000);
    case DType::f32:
      return ulps<std::int32_t>(a, b, count, 0x7F800000);
    case DType::f16:
      return ulps<std::int16_t>(a, b, count, 0x7C00);
    case DType::bf16:
      return ulps<std::int16_t>(a, b, count, 0x7F80);
    default:
      return std::nullopt;
  }
}

// One side of a pair: raw bytes and doubles of a block.
class Side {
 public:
  explicit Side(const Tensor& tensor)
      : tensor_(tensor), stored_(meaning_of(tensor.dtype()).stored), raw_(kReadValues * 8) {}

  static constexpr std::uint64_t kReadValues = 32 * kBlock;

  void read(std::uint64_t first, std::uint64_t count) {
    const std::uint64_t bits = info(stored_).bits;
    tensor_.read(first * bits / 8, std::span(raw_).first(static_cast<std::size_t>((count * bits + 7) / 8)));
  }

  [[nodiscard]] DType stored() const { return stored_; }

  [[nodiscard]] const std::byte* raw(std::uint64_t at) const {
    return raw_.data() + at * info(stored_).bits / 8;
  }

  /// Of so many values.
  [[nodiscard]] std::size_t bytes(std::size_t count) const { return (count * info(stored_).bits + 7) / 8; }

  const double* values(std::uint64_t at, std::size_t count, std::size_t padded) {
    cast_elements(stored_, raw(at), DType::f64, reinterpret_cast<std::byte*>(values_.data()), count);
    std::fill(values_.begin() + static_cast<std::ptrdiff_t>(count),
              values_.begin() + static_cast<std::ptrdiff_t>(padded), 0.0);
    return values_.data();
  }

 private:
  const Tensor& tensor_;
  DType stored_;
  std::vector<std::byte> raw_;
  std::array<double, kBlock> values_{};
};

// The first pair of values that are not the same; the caller knows there is one.
std::uint64_t first_difference(const double* a, const double* b) {
  std::uint64_t i = 0;
  while (a[i] == b[i] || (a[i] != a[i] && b[i] != b[i])) ++i;
  return i;
}

Part compare_piece(const TensorPair& pair, std::uint64_t first, std::uint64_t count,
                   const DiffOptions& options) {
  Side a(pair.first);
  Side b(pair.second);
  Part part;
  for (std::uint64_t done = 0; done < count; done += Side::kReadValues) {
    const std::uint64_t in_reach = std::min(Side::kReadValues, count - done);
    a.read(first + done, in_reach);
    b.read(first + done, in_reach);
    for (std::uint64_t at = 0; at < in_reach; at += kBlock) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, in_reach - at));
      const std::size_t padded = (size + kLanes - 1) / kLanes * kLanes;
      const double* left = a.values(at, size, padded);
      if (a.stored() == b.stored() && std::memcmp(a.raw(at), b.raw(at), a.bytes(size)) == 0) {
        Part block = equal_padded(left, padded);
        block.distance.count = size;
        part.append(block);
        continue;
      }
      const double* right = b.values(at, size, padded);
      Part block = compare_padded(left, right, padded, options);
      block.distance.count = size;
      if (block.distance.differing > 0)
        block.distance.first = first + done + at + first_difference(left, right);
      if (a.stored() == b.stored()) block.distance.max_ulp = ulps_of(a.stored(), a.raw(at), b.raw(at), size);
      part.append(block);
    }
  }
  return part;
}

Distance finish(const Part& part) {
  Distance distance = part.distance;
  if (part.aa > 0 && part.bb > 0)
    distance.cosine = std::clamp(part.ab / (std::sqrt(part.aa) * std::sqrt(part.bb)), -1.0, 1.0);
  return distance;
}

}  // namespace

std::vector<char> same_bits(std::span<const TensorPair> pairs, SharedProgress& progress) {
  const Pieces pieces(pairs.size(),
                      [&](std::size_t i) { return pieces_in(pairs[i].first.size_bytes(), kPieceBytes); });
  std::vector<std::atomic<bool>> differs(pairs.size());
  pieces.for_each([&](std::size_t i, std::uint64_t piece, std::uint64_t) {
    const std::uint64_t at = piece * kPieceBytes;
    const std::uint64_t end = std::min(at + kPieceBytes, pairs[i].first.size_bytes());
    if (!differs[i] && !same_bits(pairs[i], at, end, differs[i])) differs[i] = true;
    progress.add(end - at);
  });
  return {[&] {
    std::vector<char> same;
    for (const auto& differ : differs) same.push_back(differ ? 0 : 1);
    return same;
  }()};
}

bool comparable(DType a, DType b) {
  return meaning_of(a).per_element == meaning_of(b).per_element && (meaning_of(a).per_element > 0 || a == b);
}

std::vector<Distance> distances(std::span<const TensorPair> pairs, const DiffOptions& options,
                                SharedProgress& progress) {
  const Pieces pieces(pairs.size(),
                      [&](std::size_t i) { return pieces_in(values_in(pairs[i].first), kPieceValues); });
  std::vector<Part> parts(static_cast<std::size_t>(pairs.empty() ? 0 : pieces.end(pairs.size() - 1)));
  pieces.for_each([&](std::size_t i, std::uint64_t piece, std::uint64_t overall) {
    const std::uint64_t first = piece * kPieceValues;
    const std::uint64_t count = std::min(kPieceValues, values_in(pairs[i].first) - first);
    parts[static_cast<std::size_t>(overall)] = compare_piece(pairs[i], first, count, options);
    progress.add(count * info(meaning_of(pairs[i].first.dtype()).stored).bits / 8);
  });
  std::vector<Distance> results;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Part whole;
    for (std::uint64_t piece = pieces.first(i); piece < pieces.end(i); ++piece)
      whole.append(parts[static_cast<std::size_t>(piece)]);
    results.push_back(finish(whole));
  }
  return results;
}

}  // namespace ballast
