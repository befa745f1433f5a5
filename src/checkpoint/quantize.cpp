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
#include <unordered_map>

#include "ballast/display.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "base/json_writer.h"
#include "base/thread_pool.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "checkpoint/value_json.h"
#include "tensor/cast.h"
#include "tensor/streamed.h"

namespace ballast {
namespace {

constexpr std::uint64_t kBlock = 1U << 14U;  // elements worked on at once
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

// Elements [first, first + out.size()) as F32.
class FloatReader {
 public:
  explicit FloatReader(const Tensor& tensor) : tensor_(tensor) {}

  void read(std::uint64_t first, std::span<float> out) {
    const std::uint64_t bits = info(tensor_.dtype()).bits;
    raw_.resize(static_cast<std::size_t>((out.size() * bits + 7) / 8));
    tensor_.read(first * bits / 8, raw_);
    cast_elements(tensor_.dtype(), raw_.data(), DType::f32, reinterpret_cast<std::byte*>(out.data()),
                  out.size());
  }

 private:
  const Tensor& tensor_;
  std::vector<std::byte> raw_;
};

// work(first, values) for all values of the tensor in blocks, on several threads; `finish` with what `start`
// made for the thread, one at a time.
template <class Start, class Work, class Finish>
void for_each_block(const Tensor& tensor, Start&& start, Work&& work, Finish&& finish) {
  const auto total = static_cast<std::uint64_t>(tensor.numel());
  if (total == 0) return;
  std::mutex mutex;
  parallel_for((total - 1) / kBlock + 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
    FloatReader reader(tensor);
    std::vector<float> values(kBlock);
    auto local = start();
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t first = block * kBlock;
      const auto piece = std::span(values).first(static_cast<std::size_t>(std::min(kBlock, total - first)));
      reader.read(first, piece);
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
  for_each_block(
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
  for_each_block(
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
    FloatReader reader(tensor);
    std::vector<float> values(kBlock);
    for (std::uint64_t done = 0; done < out.size(); done += kBlock) {
      const auto piece = std::span(values).first(
          static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, out.size() - done)));
      reader.read(offset + done, piece);
      channels.for_each_run(offset + done, piece.size(),
                            [&](std::size_t channel, std::size_t begin, std::size_t end) {
                              for (std::size_t i = begin; i < end; ++i)
                                out[static_cast<std::size_t>(done) + i] =
                                    static_cast<std::byte>(quantized_value(piece[i], scales[channel]));
                            });
    }
  };
  return Tensor::contiguous_view(
      DType::i8, tensor.shape(),
      streamed_storage(static_cast<std::uint64_t>(tensor.numel()), make, {tensor.storage()}));
}

// q * scale; `integers` and `scales` are what quantized() made of a tensor.
Tensor restored(const Tensor& integers, const Tensor& scales, const Channels& channels) {
  const auto make = [integers, scales, channels](std::uint64_t offset, std::span<std::byte> out) {
    std::vector<std::byte> raw(kBlock + 1);
    std::vector<float> values(kBlock + 1);
    const Tensor in_memory = scales.contiguous();  // the file may hold them at an odd place
    const std::byte* scale_bytes = in_memory.data();
    for (std::size_t done = 0; done < out.size();) {
      // Whole elements, of which the first and the last may be needed in part.
      const std::uint64_t first = (offset + done) / sizeof(float);
      const auto skip = static_cast<std::size_t>((offset + done) % sizeof(float));
      const std::size_t bytes = std::min<std::size_t>(kBlock * sizeof(float), out.size() - done);
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

std::string metadata_of(const std::vector<QuantizedTensor>& tensors) {
  JsonWriter json;
  json.begin_object();
  for (const QuantizedTensor& tensor : tensors) {
    json.key(tensor.name)
        .begin_object()
        .member("scheme", "int8")
        .member("axis", tensor.axis)
        .member("scale", tensor.name + "_scale")
        .member("dtype", info(tensor.from).code)
        .end_object();
  }
  json.end_object();
  return std::move(json).text();
}

}  // namespace

Quantized quantize_int8(const Checkpoint& in, const QuantizeOptions& options) {
  if (record::find(in, record::kQuantizedKey) != nullptr)
    fail(Errc::invalid_argument, display(in.path), "is quantized already; dequantize it first");
  const KeyFilter filter({}, options.except);
  Quantized result{without_tensors(in), {}};
  std::map<std::pair<const Storage*, std::uint64_t>, std::vector<Made>> made;  // tied tensors stay tied
  for (const Entry& entry : in) {
    const Tensor tensor = entry.tensor();
    const auto axis = options.axis ? options.axis(entry) : first_axis(entry);
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
  if (result.tensors.empty()) return result;
  if (!result.checkpoint.metadata) result.checkpoint.metadata.emplace();
  (*result.checkpoint.metadata)[record::kQuantizedKey] = metadata_of(result.tensors);
  return result;
}

namespace {

struct Entry8 {
  Tensor tensor;
  std::string scale;
};

// One entry of the metadata, checked against the tensors it speaks of.
Entry8 restore(const Checkpoint& in, const std::string& name, const Value& entry, const std::string& where) {
  const auto field = [&](const char* key) {
    const auto found = entry.find(key);
    if (!found) fail(Errc::bad_json, where, "{} has no {}", quoted(name), quoted(key));
    return *found;
  };
  if (field("scheme").as_string() != "int8")
    fail(Errc::unsupported, where, "{} is quantized as {}, which is not known here", quoted(name),
         quoted(field("scheme").as_string()));
  const std::string scale(field("scale").as_string());
  const auto dtype = dtype_from_code(field("dtype").as_string());
  const std::int64_t axis = field("axis").as_int();
  const Tensor integers = in.tensor(name);
  const Tensor scales = in.tensor(scale);
  if (integers.dtype() != DType::i8 || scales.dtype() != DType::f32 || !dtype || !is_floating(*dtype))
    fail(Errc::bad_dtype, where, "{} with {} must be I8 with F32 and become a floating-point dtype",
         quoted(name), quoted(scale));
  if (axis < 0 || axis >= static_cast<std::int64_t>(integers.rank()) || scales.rank() != 1 ||
      scales.shape()[0] != integers.shape()[static_cast<std::size_t>(axis)])
    fail(Errc::shape_mismatch, where, "{} of shape {} has scales of shape {} along dimension {}",
         quoted(name), to_string(integers.shape()), to_string(scales.shape()), axis);
  const Tensor tensor = integers.numel() == 0 ? Tensor::zeros(DType::f32, integers.shape())
                                              : restored(integers, scales, Channels(integers.shape(), axis));
  return {tensor.to_lazy(*dtype), scale};
}

}  // namespace

Checkpoint dequantize(const Checkpoint& in) {
  const std::string* text = record::find(in, record::kQuantizedKey);
  if (text == nullptr) return in;
  const std::string where = display(in.path) + ": metadata \"ballast.quantized\"";
  const Value entries = parse_json(*text, where);
  if (entries.kind() != Kind::dict) fail(Errc::bad_json, where, "is no object");
  std::unordered_map<std::string, Tensor> tensors;
  std::set<std::string, std::less<>> scales;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string name(entries.key(i).as_string());
    Entry8 restored_entry = restore(in, name, entries.value(i), where);
    tensors.emplace(name, std::move(restored_entry.tensor));
    scales.insert(std::move(restored_entry.scale));
  }
  Checkpoint out = without_tensors(in);
  out.metadata->erase(record::kQuantizedKey);
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
