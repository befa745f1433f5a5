// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "ballast/quantized.h"
#include "base/fail.h"

namespace ballast {
namespace {

// The stored integers, one each, whatever they are packed in; 4- and 2-bit ones lie low bits first.
std::vector<std::int32_t> integers_of(const Tensor& tensor) {
  const auto count = static_cast<std::size_t>(tensor.numel());
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
  tensor.read(0, bytes);
  std::vector<std::int32_t> integers(count);
  const std::size_t bits = info(tensor.dtype()).bits;
  for (std::size_t i = 0; i < count; ++i) {
    switch (tensor.dtype()) {
      case DType::qi8:
        integers[i] = std::to_integer<std::int8_t>(bytes[i]);
        break;
      case DType::qi32:
        std::memcpy(&integers[i], bytes.data() + i * 4, 4);
        break;
      default: {
        const auto byte = static_cast<unsigned>(bytes[i * bits / 8]);
        integers[i] = static_cast<std::int32_t>(byte >> (i * bits % 8) & ((1U << bits) - 1));
      }
    }
  }
  return integers;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::f64);
  std::vector<double> numbers(static_cast<std::size_t>(wide.numel()));
  wide.read(0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// (q - zero point) * scale in single precision, as PyTorch computes it.
void compute(const Tensor& tensor, const Quantization& quantization, float* out) {
  const auto integers = integers_of(tensor);
  const bool per_channel = quantization.scales.defined();
  const auto scales = per_channel ? numbers_of(quantization.scales) : std::vector<double>{quantization.scale};
  const auto points = per_channel ? numbers_of(quantization.zero_points)
                                  : std::vector<double>{static_cast<double>(quantization.zero_point)};
  std::size_t inner = 1;  // elements between one channel and the next
  for (std::size_t dim = static_cast<std::size_t>(quantization.axis) + 1; per_channel && dim < tensor.rank();
       ++dim) {
    inner *= static_cast<std::size_t>(tensor.shape()[dim]);
  }
  for (std::size_t i = 0; i < integers.size(); ++i) {
    const std::size_t channel = i / inner % scales.size();
    out[i] = static_cast<float>(scales[per_channel ? channel : 0]) *
             static_cast<float>(static_cast<double>(integers[i]) - points[per_channel ? channel : 0]);
  }
}

}  // namespace

Tensor dequantized(const TensorValue& value) {
  if (!value.quantization)
    fail(Errc::type_mismatch, "value", "a tensor of {} is not quantized", info(value.tensor.dtype()).code);
  if (!value.tensor.has_data()) return {DType::f32, value.tensor.shape()};
  const auto storage = Storage::deferred(
      static_cast<std::uint64_t>(value.tensor.numel()) * sizeof(float),
      [tensor = value.tensor, quantization = *value.quantization](std::span<std::byte> out) {
        compute(tensor, quantization, reinterpret_cast<float*>(out.data()));
      },
      {value.tensor.storage()});
  return Tensor::contiguous_view(DType::f32, value.tensor.shape(), storage);
}

}  // namespace ballast
