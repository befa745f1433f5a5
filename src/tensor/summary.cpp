// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "ballast/stats.h"
#include "base/fail.h"
#include "base/thread_pool.h"
#include "tensor/meaning.h"
#include "tensor/plane_data.h"
#include "tensor/stats_pass.h"

namespace ballast {
namespace {

constexpr std::uint64_t kPages = 1024;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kReadWhole = std::uint64_t{16} << 20U;
constexpr std::size_t kTogether = 256;  // tensors, when they are small: enough for all threads
constexpr int kReaders = 32;            // a disk's queue matters more than cores

Summary summary_of(const Tensor& tensor, const TensorStats& stats, const CodeCounts& codes) {
  return {stats, values_in(tensor), buckets_of(meaning_of(tensor.dtype()).stored, codes, stats)};
}

// The same elements in the order in which they lie, where nothing lies between them: pages of it are pages of
// the file.
Tensor as_it_lies(const Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor;
  std::vector<std::int64_t> order(tensor.rank());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return tensor.strides()[static_cast<std::size_t>(a)] > tensor.strides()[static_cast<std::size_t>(b)];
  });
  Tensor permuted = tensor.permute(order);
  return permuted.is_contiguous() ? permuted : tensor;
}

// Where the page of each part begins, in values of `bits` bits; on a page of the file where it can be.
std::vector<std::uint64_t> sampled_pages(const Tensor& tensor, std::uint64_t page, std::uint64_t bits) {
  const std::uint64_t values = values_in(tensor);
  const auto place = tensor.storage()->source_span();
  const std::uint64_t before = place ? (place->offset + tensor.bit_offset() / 8) % kPageBytes : 0;
  const std::uint64_t lead = (kPageBytes - before) % kPageBytes * 8 / bits / 8 * 8;
  const std::uint64_t pages = (values - lead) / page;
  std::vector<std::uint64_t> starts;
  for (std::uint64_t part = 0; part < kPages; ++part) {
    const std::uint64_t begin = pages * part / kPages;
    const std::uint64_t choices = pages * (part + 1) / kPages - begin;
    starts.push_back(lead + (begin + scrambled(values + part) % choices) * page);
  }
  return starts;
}

// The middle of all sizes that are not zero: where a histogram's bins begin to grow.
double usual_size(const std::vector<Bucket>& buckets) {
  std::vector<std::pair<double, std::uint64_t>> sizes;
  std::uint64_t total = 0;
  for (const Bucket& bucket : buckets) {
    const double size = std::fabs(bucket.middle());
    if (size == 0) continue;
    sizes.emplace_back(size, bucket.count);
    total += bucket.count;
  }
  std::sort(sizes.begin(), sizes.end());
  std::uint64_t seen = 0;
  for (const auto& [size, count] : sizes) {
    seen += count;
    if (seen >= total - total / 2) return size;
  }
  return 1;
}

std::vector<double> edges_between(double min, double max, double usual, std::size_t bins) {
  // As far apart as a quotient of doubles can be.
  const double unit = std::max(usual, std::max(-min, max) * 0x1p-1000);
  const double low = std::asinh(min / unit);
  const double step = (std::asinh(max / unit) - low) / static_cast<double>(bins);
  std::vector<double> edges;
  for (std::size_t i = 0; i <= bins; ++i) {
    const double edge = unit * std::sinh(low + step * static_cast<double>(i));
    edges.push_back(std::clamp(edge, edges.empty() ? min : edges.back(), max));
  }
  edges.front() = min;
  edges.back() = max;
  return edges;
}

void share_out(const Bucket& bucket, Histogram& histogram) {
  const auto& edges = histogram.edges;
  const auto bin_of = [&](double value) {
    const auto after = std::upper_bound(edges.begin(), edges.end(), value);
    return std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - edges.begin(), 1)) - 1,
                    histogram.counts.size() - 1);
  };
  const std::size_t first = bin_of(bucket.low);
  const std::size_t last = bin_of(bucket.high);
  std::uint64_t given = 0;
  for (std::size_t bin = first; bin < last; ++bin) {
    const double part = (edges[bin + 1] - bucket.low) / (bucket.high - bucket.low);
    const auto until = std::min(
        bucket.count, static_cast<std::uint64_t>(std::llround(part * static_cast<double>(bucket.count))));
    if (until > given) histogram.counts[bin] += until - given;
    given = std::max(given, until);
  }
  histogram.counts[last] += bucket.count - given;
}

}  // namespace

double Summary::quantile(double q) const {
  if (!(q >= 0 && q <= 1)) fail(Errc::invalid_argument, "quantile", "{} is not between 0 and 1", q);
  if (buckets.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (q == 0) return stats.min;
  const double place = std::ceil(q * static_cast<double>(stats.finite()) - 1);
  const auto index = place > 0 ? static_cast<std::uint64_t>(place) : 0;
  if (index >= stats.finite() - 1) return stats.max;
  std::uint64_t seen = 0;
  for (const Bucket& bucket : buckets) {
    seen += bucket.count;
    if (seen > index) return bucket.middle();
  }
  return stats.max;
}

Histogram Summary::histogram(std::size_t bins) const {
  if (bins == 0) fail(Errc::invalid_argument, "histogram", "0 bins hold nothing");
  Histogram result;
  result.below = stats.neg_inf;
  result.above = stats.inf - stats.neg_inf;
  if (buckets.empty()) return result;
  if (stats.min == stats.max) {
    result.edges = {stats.min, stats.max};
  } else {
    result.edges = edges_between(stats.min, stats.max, usual_size(buckets), bins);
  }
  result.counts.resize(result.edges.size() - 1);
  for (const Bucket& bucket : buckets) share_out(bucket, result);
  return result;
}

double Bucket::middle() const noexcept {
  if (low == high) return low;
  const double half = low / 2 + high / 2;
  // Between whole numbers that are no neighbours of each other's fractions: a whole number too.
  return std::trunc(low) == low && std::trunc(high) == high ? std::trunc(half) : half;
}

void summary(std::span<const Tensor> tensors, const Function<void(std::size_t, const Summary&)>& each,
             const Progress& progress) {
  std::uint64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.size_bytes();
  std::uint64_t before = 0;
  for (std::size_t begin = 0; begin < tensors.size();) {
    std::size_t end = begin;
    std::uint64_t bytes = 0;
    while (end < tensors.size() && end - begin < kTogether && (bytes < kReadWhole || end == begin))
      bytes += tensors[end++].size_bytes();
    std::vector<CodeCounts> codes(end - begin);
    const auto shifted = [&](std::uint64_t done, std::uint64_t) { progress(before + done, total); };
    const std::vector<TensorStats> stats =
        stats_pass(tensors.subspan(begin, end - begin), progress ? Progress(shifted) : Progress(), codes);
    for (std::size_t i = begin; i < end; ++i)
      each(i, summary_of(tensors[i], stats[i - begin], std::exchange(codes[i - begin], {})));
    before += bytes;
    begin = end;
  }
}

Summary summary(const Tensor& tensor, const Progress& progress) {
  Summary result;
  summary(
      std::span(&tensor, 1), [&](std::size_t, const Summary& found) { result = found; }, progress);
  return result;
}

Summary sampled_summary(const Tensor& tensor) {
  if (tensor.size_bytes() <= kReadWhole || !tensor.has_data()) return summary(tensor);
  const Tensor lying = as_it_lies(tensor);
  const DType stored = meaning_of(tensor.dtype()).stored;
  const std::uint64_t bits = info(stored).bits;
  const std::uint64_t page = kPageBytes * 8 / bits / 8 * 8;
  const std::vector<std::uint64_t> starts = sampled_pages(lying, page, bits);
  Tensor sample = Tensor::empty(stored, {static_cast<std::int64_t>(page * kPages)});
  const std::span<std::byte> bytes(sample.mutable_data(), static_cast<std::size_t>(sample.size_bytes()));
  const auto page_bytes = static_cast<std::size_t>(page * bits / 8);
  const bool from_file = lying.storage()->source_span().has_value();
  parallel_read(kPages, from_file ? kReaders : thread_count(), [&](std::uint64_t i) {
    lying.read(starts[i] * bits / 8, bytes.subspan(i * page_bytes, page_bytes));
  });
  Summary result = summary(sample);
  result.values = values_in(tensor);
  return result;
}

}  // namespace ballast
