// SPDX-License-Identifier: Apache-2.0
// Int8 with a scale for each channel. A tensor is seen as [outer, channels, inner]; values are worked on in
// single precision, errors are summed in double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/thread_pool.h"
#include "checkpoint/marks.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "tensor/elements.h"
#include "tensor/streamed.h"

namespace ballast {
namespace {

constexpr std::uint64_t kQuantizedAtOnce = 1U << 14U;  // elements worked on at once
constexpr float kSteps = 127;

using Scales = std::vector<float>;

struct Channels {
  std::uint64_t count = 1;
  std::uint64_t inner = 1;  // elements between one channel and the next

  Channels(ShapeView shape, std::int64_t axis) {
    count = static_cast<std::uint64_t>(shape[static_cast<std::size_t>(axis)]);
    for (std::size_t dim = static_cast<std::size_t>(axis) + 1; dim < shape.size(); ++dim)
      inner *= static_cast<std::uint64_t>(shape[dim]);
  }

  /// visit(channel, begin, end) for the runs of elements [first, first + size); places count from `first`.
  template <class Visit>
  void for_each_run(std::uint64_t first, std::uint64_t size, Visit&& visit) const {
    for (std::uint64_t at = 0; at < size;) {
      const std::uint64_t run = std::min(inner - (first + at) % inner, size - at);
      visit(static_cast<std::size_t>((first + at) / inner % count), static_cast<std::size_t>(at),
            static_cast<std::size_t>(at + run));
      at += run;
    }
  }
};

// Elements from `first` on, a multiple of 8.
void read_floats(ElementReader& reader, std::uint64_t first, std::span<float> out) {
  reader.read(first, out.size());
  reader.cast(0, out);
}

// work(first, values) for all values of the tensor in blocks, on several threads; `finish` with what `start`
// made for the thread, one at a time.
template <class Start, class Work, class Finish>
void for_each_run(const Tensor& tensor, Start&& start, Work&& work, Finish&& finish) {
  const auto total = static_cast<std::uint64_t>(tensor.numel());
  if (total == 0) return;
  std::mutex mutex;
  parallel_for((total - 1) / kQuantizedAtOnce + 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
    ElementReader reader(tensor);
    std::vector<float> values(kQuantizedAtOnce);
    auto local = start();
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t first = block * kQuantizedAtOnce;
      const auto piece =
          std::span(values).first(static_cast<std::size_t>(std::min(kQuantizedAtOnce, total - first)));
      read_floats(reader, first, piece);
      work(local, first, std::span<const float>(piece));
    }
    const std::lock_guard lock(mutex);
    finish(local);
  });
}

struct Largest {
  Scales of_channel;
  bool finite = true;
};

Scales scales_of(const Tensor& tensor, const Channels& channels, std::string_view name,
                 const std::string& where) {
  Largest largest{Scales(static_cast<std::size_t>(channels.count), 0.0F)};
  for_each_run(
      tensor, [&] { return Largest{Scales(largest.of_channel.size(), 0.0F)}; },
      [&](Largest& local, std::uint64_t first, std::span<const float> values) {
        channels.for_each_run(first, values.size(),
                              [&](std::size_t channel, std::size_t begin, std::size_t end) {
                                float most = local.of_channel[channel];
                                bool finite = true;
                                for (std::size_t i = begin; i < end; ++i) {
                                  const float size = std::fabs(values[i]);
                                  finite = finite && size <= std::numeric_limits<float>::max();
                                  most = size > most ? size : most;
                                }
                                local.of_channel[channel] = most;
                                local.finite = local.finite && finite;
                              });
      },
      [&](const Largest& local) {
        largest.finite = largest.finite && local.finite;
        for (std::size_t i = 0; i < local.of_channel.size(); ++i)
          largest.of_channel[i] = std::max(largest.of_channel[i], local.of_channel[i]);
      });
  if (!largest.finite)
    fail(Errc::not_representable, where,
         "tensor {} has values that are not finite; int8 has no place for them", quoted(name));
  for (float& scale : largest.of_channel) {
    scale /= kSteps;
    if (scale < std::numeric_limits<float>::min()) scale = 0;  // nothing but (nearly) zeros
  }
  return std::move(largest.of_channel);
}

std::int8_t quantized_value(float value, float scale) {
  if (scale == 0) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(value / scale), -kSteps, kSteps));
}

struct Noise {
  double max = 0;
  double signal = 0;
  double noise = 0;
};

Noise noise_of(const Tensor& tensor, const Channels& channels, const Scales& scales) {
  Noise total;
  for_each_run(
      tensor, [] { return Noise(); },
      [&](Noise& local, std::uint64_t first, std::span<const float> values) {
        channels.for_each_run(
            first, values.size(), [&](std::size_t channel, std::size_t begin, std::size_t end) {
              const float scale = scales[channel];
              for (std::size_t i = begin; i < end; ++i) {
                const double value = values[i];
                const double error =
                    value -
                    static_cast<double>(static_cast<float>(quantized_value(values[i], scale)) * scale);
                local.max = std::max(local.max, std::abs(error));
                local.signal += value * value;
                local.noise += error * error;
              }
            });
      },
      [&](const Noise& local) {
        total.max = std::max(total.max, local.max);
        total.signal += local.signal;
        total.noise += local.noise;
      });
  return total;
}

Tensor quantized(const Tensor& tensor, const Channels& channels, const Scales& scales) {
  const auto make = [tensor, channels, scales](std::uint64_t offset, std::span<std::byte> out) {
    ElementReader reader(tensor);
    std::vector<float> values(kQuantizedAtOnce + 8);
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t first = offset + done;
      const auto skip = static_cast<std::size_t>(first % 8);  // elements smaller than a byte begin on one
      const std::size_t count = std::min<std::size_t>(kQuantizedAtOnce, out.size() - done);
      read_floats(reader, first - skip, std::span(values).first(skip + count));
      channels.for_each_run(first, count, [&](std::size_t channel, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
          out[done + i] = static_cast<std::byte>(quantized_value(values[skip + i], scales[channel]));
      });
      done += count;
    }
  };
  return Tensor::contiguous_view(
      DType::i8, tensor.shape(),
      streamed_storage(static_cast<std::uint64_t>(tensor.numel()), make, {tensor.storage()}));
}

// q * scale; `integers` and `scales` are what quantized() made of a tensor.
Tensor restored(const Tensor& integers, const Tensor& scales, const Channels& channels) {
  const auto make = [integers, scales, channels](std::uint64_t offset, std::span<std::byte> out) {
    std::vector<std::byte> raw(kQuantizedAtOnce + 1);
    std::vector<float> values(kQuantizedAtOnce + 1);
    const Tensor in_memory = scales.contiguous();  // the file may hold them at an odd place
    const std::byte* scale_bytes = in_memory.data();
    for (std::size_t done = 0; done < out.size();) {
      // Whole elements, of which the first and the last may be needed in part.
      const std::uint64_t first = (offset + done) / sizeof(float);
      const auto skip = static_cast<std::size_t>((offset + done) % sizeof(float));
      const std::size_t bytes = std::min<std::size_t>(kQuantizedAtOnce * sizeof(float), out.size() - done);
      const std::size_t count = (skip + bytes + sizeof(float) - 1) / sizeof(float);
      integers.read(first, std::span(raw).first(count));
      channels.for_each_run(first, count, [&](std::size_t channel, std::size_t begin, std::size_t end) {
        float scale = 0;
        std::memcpy(&scale, scale_bytes + channel * sizeof(float), sizeof scale);
        for (std::size_t i = begin; i < end; ++i)
          values[i] = static_cast<float>(static_cast<std::int8_t>(raw[i])) * scale;
      });
      std::memcpy(out.data() + done, reinterpret_cast<const std::byte*>(values.data()) + skip, bytes);
      done += bytes;
    }
  };
  return Tensor::contiguous_view(
      DType::f32, integers.shape(),
      streamed_storage(static_cast<std::uint64_t>(integers.numel()) * sizeof(float), make,
                       {integers.storage(), scales.storage()}));
}

std::optional<std::int64_t> first_axis(const Entry& entry) {
  if (!is_floating(entry.dtype) || entry.shape.size() < 2) return std::nullopt;
  return 0;
}

struct Made {
  Tensor source;
  Tensor integers;
  Tensor scales;
  QuantizedTensor report;
};

Made make(const Tensor& tensor, std::string_view name, std::int64_t axis, const std::string& where) {
  const Channels channels(tensor.shape(), axis);
  const Scales scales = scales_of(tensor, channels, name, where);
  const Noise noise = noise_of(tensor, channels, scales);
  const double snr = noise.noise == 0 ? std::numeric_limits<double>::infinity()
                                      : 10 * std::log10(noise.signal / noise.noise);
  return {tensor,
          quantized(tensor, channels, scales),
          Tensor::from(std::span<const float>(scales), {static_cast<std::int64_t>(scales.size())}),
          {std::string(name), tensor.dtype(), axis, noise.max, snr}};
}

marks::Int8Tensors marks_of(const std::vector<QuantizedTensor>& tensors) {
  marks::Int8Tensors marks;
  for (const QuantizedTensor& tensor : tensors)
    marks.emplace(tensor.name, marks::Int8{tensor.name + "_scale", tensor.axis, tensor.from});
  return marks;
}

}  // namespace

Quantized quantize_int8(const Checkpoint& given, const std::vector<std::string>& except,
                        const ChannelAxis& channels) {
  const Checkpoint in = marks::with_ties(given);
  if (record::find(in, marks::kQuantizedKey) != nullptr)
    fail(Errc::invalid_argument, display(in.path), "is quantized already; dequantize it first");
  const KeyFilter filter({}, except);
  Quantized result{without_tensors(in), {}};
  record::forget_checksums(result.checkpoint);
  std::map<std::pair<const Storage*, std::uint64_t>, std::vector<Made>> made;  // tied tensors stay tied
  for (const Entry& entry : in) {
    const Tensor tensor = entry.tensor();
    const auto axis = channels ? channels(entry) : first_axis(entry);
    if (!axis || !filter.passes(entry.name) || tensor.numel() == 0 || !tensor.has_data()) {
      result.checkpoint.add(entry.name, tensor);
      continue;
    }
    std::vector<Made>& here = made[{tensor.storage().get(), tensor.bit_offset()}];
    auto same =
        std::find_if(here.begin(), here.end(), [&](const Made& m) { return m.source.same_view(tensor); });
    if (same == here.end()) same = here.insert(here.end(), make(tensor, entry.name, *axis, display(in.path)));
    result.checkpoint.add(entry.name, same->integers);
    result.checkpoint.add(std::string(entry.name) + "_scale", same->scales);
    result.tensors.push_back(same->report);
    result.tensors.back().name = entry.name;
  }
  marks::set_quantized(result.checkpoint, marks_of(result.tensors));
  return result;
}

namespace {

// The numbers behind one tensor that the metadata calls quantized, checked against the tensors it speaks of.
Tensor restore(const Checkpoint& in, const std::string& name, const marks::Int8& mark,
               const std::string& where) {
  const Tensor integers = in.tensor(name);
  const Tensor scales = in.tensor(mark.scale);
  if (integers.dtype() != DType::i8 || scales.dtype() != DType::f32)
    fail(Errc::bad_dtype, where, "{} with {} must be I8 with F32", quoted(name), quoted(mark.scale));
  if (mark.axis < 0 || mark.axis >= static_cast<std::int64_t>(integers.rank()) || scales.rank() != 1 ||
      scales.shape()[0] != integers.shape()[static_cast<std::size_t>(mark.axis)])
    fail(Errc::shape_mismatch, where, "{} of shape {} has scales of shape {} along dimension {}",
         quoted(name), to_string(integers.shape()), to_string(scales.shape()), mark.axis);
  const Tensor tensor = integers.numel() == 0
                            ? Tensor::zeros(DType::f32, integers.shape())
                            : restored(integers, scales, Channels(integers.shape(), mark.axis));
  return tensor.to_lazy(mark.dtype);
}

// Restored once for all names of one tensor, so that they stay tied.
class Restorer {
 public:
  Restorer(const Checkpoint& in, std::string where) : in_(in), where_(std::move(where)) {}

  Tensor operator()(const std::string& name, const marks::Int8& mark) {
    const Tensor integers = in_.tensor(name);
    const Tensor scales = in_.tensor(mark.scale);
    std::vector<Done>& here = done_[{integers.storage().get(), integers.bit_offset()}];
    const auto same = std::find_if(here.begin(), here.end(), [&](const Done& done) {
      return done.integers.same_view(integers) && done.scales.same_view(scales) && done.axis == mark.axis &&
             done.tensor.dtype() == mark.dtype;
    });
    if (same != here.end()) return same->tensor;
    here.push_back({integers, scales, mark.axis, restore(in_, name, mark, where_)});
    return here.back().tensor;
  }

 private:
  struct Done {
    Tensor integers;
    Tensor scales;
    std::int64_t axis;
    Tensor tensor;
  };

  const Checkpoint& in_;
  std::string where_;
  std::map<std::pair<const Storage*, std::uint64_t>, std::vector<Done>> done_;
};

}  // namespace

bool is_quantized(const Checkpoint& checkpoint) {
  return record::find(checkpoint, marks::kQuantizedKey) != nullptr;
}

Checkpoint dequantize(const Checkpoint& given) {
  if (!is_quantized(given)) return given;
  const Checkpoint in = marks::with_ties(given);
  Restorer restorer(in, display(in.path) + ": metadata " + quoted(marks::kQuantizedKey));
  NameMap<Tensor> tensors;
  std::set<std::string, std::less<>> scales;
  for (const auto& [name, mark] : marks::quantized_of(in)) {
    tensors.emplace(name, restorer(name, mark));
    scales.insert(mark.scale);
  }
  // A mark names one of the names of a tensor; it is the same under the others.
  const std::vector<Tie> tied = ties(in);
  for (const bool first_marked : {false, true})
    for (const Tie& tie : tied) {
      const std::string marked(in[first_marked ? tie.first : tie.tensor].name);
      if (tensors.contains(marked))
        tensors.emplace(in[first_marked ? tie.tensor : tie.first].name, tensors.at(marked));
    }
  Checkpoint out = without_tensors(in);
  marks::set_quantized(out, {});
  record::forget_checksums(out);
  for (const Entry& entry : in) {
    const auto found = tensors.find(std::string(entry.name));
    if (found != tensors.end())
      out.add(entry.name, found->second);
    else if (!scales.contains(entry.name))
      out.add(entry.name, entry.tensor());
  }
  return out;
}

}  // namespace ballast
