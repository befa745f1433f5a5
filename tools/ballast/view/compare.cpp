// SPDX-License-Identifier: Apache-2.0
#include "view/compare.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <random>
#include <thread>
#include <vector>

#include "ballast/quantized.h"
#include "ballast/steps.h"

namespace tool::view {
namespace {

using ballast::Change;
using ballast::Checkpoint;
using ballast::Tensor;
using ballast::TensorDiff;

constexpr std::uint64_t kSmallFiles = std::uint64_t{64} << 20U;  // together: read whole
constexpr std::int64_t kPage = 1024;                             // values
constexpr std::int64_t kWholePages = 4;                          // a tensor of so many is read whole
constexpr std::int64_t kMostPages = 1024;                        // of one tensor
constexpr std::int64_t kAllPages = 4096;                         // of a file, about
constexpr std::size_t kReaders = 32;                             // a disk's queue matters more than cores

// Some pages of one tensor, that lie behind each other in memory.
struct Sample {
  Tensor from;
  Tensor to;
  std::vector<std::int64_t> pages;  // their first values
};

// One page from each of `count` equal parts: those of two tensors with as many values are the same.
std::vector<std::int64_t> pages_of(std::int64_t values, std::int64_t count) {
  const std::int64_t pages = values / kPage;
  std::mt19937_64 random(static_cast<std::uint64_t>(values));
  std::vector<std::int64_t> starts;
  for (std::int64_t part = 0; part < count; ++part) {
    const std::int64_t begin = pages * part / count;
    const auto choices = static_cast<std::uint64_t>(pages * (part + 1) / count - begin);
    starts.push_back((begin + static_cast<std::int64_t>(random() % choices)) * kPage);
  }
  return starts;
}

bool has_pages(const Tensor& tensor) {
  return ballast::is_real(tensor.dtype()) && ballast::info(tensor.dtype()).bits >= 8 && tensor.has_data() &&
         tensor.is_contiguous();
}

bool is_large(const Tensor& tensor) {
  return tensor.numel() > kWholePages * kPage;
}

bool can_be_sampled(const Checkpoint& checkpoint) {
  return std::all_of(checkpoint.begin(), checkpoint.end(), [](const ballast::Entry& entry) {
    const Tensor tensor = entry.tensor();
    return !is_large(tensor) || has_pages(tensor);
  });
}

// On threads of their own, as many as can be had: each waits for the disk most of the time.
template <class Work>
void read_side_by_side(std::size_t count, Work&& work) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(count);
      }
    }
  };
  {
    std::vector<std::jthread> readers;
    try {
      for (std::size_t i = 1; i < std::min(kReaders, count); ++i) readers.emplace_back(take);
    } catch (const std::system_error&) {  // no more of them: fewer will do
    }
    take();
  }
  if (error) std::rethrow_exception(error);
}

// A checkpoint like this one, of large tensors the sample. The rank stays what it is: diff() asks for it.
Checkpoint sampled_checkpoint(const Checkpoint& all, double pages_per_value, std::vector<Sample>& samples,
                              std::set<std::string, std::less<>>& names) {
  Checkpoint out;
  out.metadata = all.metadata;
  out.format = all.format;
  out.path = all.path;
  out.tree = all.tree;
  out.reserve(all.size());
  for (const ballast::Entry& entry : all) {
    const Tensor tensor = entry.tensor();
    if (!is_large(tensor)) {
      out.add(entry.name, tensor);
      continue;
    }
    const auto wanted = static_cast<std::int64_t>(pages_per_value * static_cast<double>(tensor.numel()));
    const std::int64_t count = std::min(std::clamp(wanted, kWholePages, kMostPages), tensor.numel() / kPage);
    std::vector<std::int64_t> shape(entry.shape.size(), 1);
    shape.front() = count * kPage;
    samples.push_back({tensor, Tensor::empty(tensor.dtype(), shape), pages_of(tensor.numel(), count)});
    out.add(entry.name, samples.back().to);
    names.emplace(entry.name);
  }
  return out;
}

void read_samples(std::vector<Sample>& samples, const ballast::Progress& progress) {
  struct Page {
    std::size_t sample;
    std::size_t page;
  };

  std::vector<Page> all;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t page = 0; page < samples[i].pages.size(); ++page) all.push_back({i, page});
  }
  std::atomic<std::uint64_t> done{0};
  std::mutex mutex;
  read_side_by_side(all.size(), [&](std::size_t i) {
    Sample& sample = samples[all[i].sample];
    const std::size_t size = ballast::info(sample.from.dtype()).bits / 8;
    const std::span<std::byte> bytes(sample.to.mutable_data() + all[i].page * kPage * size, kPage * size);
    sample.from.read(static_cast<std::uint64_t>(sample.pages[all[i].page]) * size, bytes);
    const std::lock_guard lock(mutex);
    if (progress) progress(++done, all.size());
  });
}

void set_shapes(const Compared& compared, ballast::DiffReport& report) {
  const auto shape_in = [](const Checkpoint& checkpoint, const std::string& name, ballast::Shape& shape) {
    if (const auto at = checkpoint.position(name)) shape = ballast::Shape(checkpoint[*at].shape);
  };
  for (TensorDiff& item : report.tensors) {
    const bool renamed = item.change == Change::renamed;
    if (item.change != Change::only_b) shape_in(compared.a, item.name, item.shape_a);
    if (item.change != Change::only_a) shape_in(compared.b, renamed ? item.other : item.name, item.shape_b);
  }
}

// What the sample has lost: tensors of different shapes may have samples of one shape.
void tell_shapes_apart(ballast::DiffReport& report) {
  std::vector<TensorDiff> more;
  for (TensorDiff& item : report.tensors) {
    if (item.shape_a == item.shape_b || item.change == Change::only_a || item.change == Change::only_b)
      continue;
    item.distance = {};
    if (item.change != Change::renamed) {
      item.change = Change::shape;
      continue;
    }
    more.push_back(
        {.change = Change::only_b, .name = item.other, .dtype_b = item.dtype_b, .shape_b = item.shape_b});
    item.change = Change::only_a;
    item.other.clear();
  }
  report.tensors.insert(report.tensors.end(), more.begin(), more.end());
}

void compare_samples(Compared& compared, const ballast::Progress& progress) {
  const Checkpoint a = ballast::dequantize(compared.a);
  const Checkpoint b = ballast::dequantize(compared.b);
  if (!can_be_sampled(a) || !can_be_sampled(b)) {
    compared.report = ballast::diff(compared.a, compared.b, {.progress = progress});
    return;
  }
  const auto values_of = [](const Checkpoint& checkpoint) {
    double sum = 1;
    for (const ballast::Entry& entry : checkpoint) sum += static_cast<double>(entry.tensor().numel());
    return sum;
  };
  const double share = static_cast<double>(kAllPages) / std::max(values_of(a), values_of(b));
  std::vector<Sample> samples;
  const Checkpoint some_a = sampled_checkpoint(a, share, samples, compared.sampled);
  const Checkpoint some_b = sampled_checkpoint(b, share, samples, compared.sampled);
  read_samples(samples, progress);
  compared.report = ballast::diff(some_a, some_b);
  set_shapes(compared, compared.report);
  tell_shapes_apart(compared.report);
}

}  // namespace

// As `ballast diff` without options: the state dict of each, found by itself.
std::shared_ptr<const Compared> compare(const Document& a, const Document& b, bool exact,
                                        const ballast::Progress& progress) {
  const ballast::Steps steps;
  const ballast::Steps of_b = ballast::steps_of_other(steps, b.checkpoint());
  auto compared = std::make_shared<Compared>();
  compared->a = ballast::apply_steps(Checkpoint(a.checkpoint()), steps).checkpoint;
  compared->b = ballast::apply_steps(Checkpoint(b.checkpoint()), of_b).checkpoint;
  if (exact || bytes_to_compare(*compared) <= kSmallFiles)
    compared->report = ballast::diff(compared->a, compared->b, {.progress = progress});
  else
    compare_samples(*compared, progress);
  return compared;
}

std::uint64_t bytes_to_compare(const Compared& compared) {
  return compared.a.total_bytes() + compared.b.total_bytes();
}

}  // namespace tool::view
