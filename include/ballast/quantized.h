// SPDX-License-Identifier: Apache-2.0
// 8-bit weights. dequantized(): the numbers behind PyTorch's quantized tensors. quantize_int8() and
// dequantize(): a Checkpoint's weights as integers with one scale for each channel, and back; what is what
// stands in the metadata (docs/formats/record.md), so that load() finds it by itself. Part of ballast::core.
//
// Throws: what the functions say, and for damaged marks in the metadata (Metadata) Errc::bad_json, bad_utf8,
// duplicate_key, too_many, bad_dtype, unsupported. Owns: what is made keeps what it is computed from.
// Threads: every function may be called from several at once. Costs: quantize_int8() reads the values twice,
// on all threads; everything else reads nothing, and is computed when somebody reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/detail/function.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)

namespace ballast {

/// (q - zero_point) * scale as F32, computed when it is read. Errc::type_mismatch when the tensor is not
/// quantized.
[[nodiscard]] Tensor dequantized(const TensorValue& value);

/// What to do with weights when a file is written.
enum class Quantize : std::uint8_t {
  none,
  int8,  ///< 8-bit integers with one scale for each output channel
};

/// How one tensor came through quantization.
struct QuantizedTensor {
  std::string name;         ///< of the tensor
  DType from = DType::f32;  ///< what it was, and what dequantize() makes of it
  std::int64_t axis = 0;    ///< the dimension of the channels
  double max_error = 0;     ///< largest absolute difference to the value it was
  double snr = 0;           ///< signal to noise in decibels; infinite when nothing was lost
};

/// What quantize_int8() made.
struct Quantized {
  Checkpoint checkpoint;                 ///< integers, scales, and what stayed as it was
  std::vector<QuantizedTensor> tensors;  ///< those that were quantized
};

/// The dimension of a tensor's channels, or nullopt to leave it alone.
using ChannelAxis = Function<std::optional<std::int64_t>(const Entry&)>;

/// Symmetric: q = round(w / scale) with scale = absmax / 127 of the channel. `name` becomes I8 and
/// `name_scale` (F32, one for each channel) joins it. The values are read twice, for the scales and for the
/// errors; the integers are made when they are read. Tensors that match a pattern of `except` stay as they
/// are. Without `axis` the channels are the first dimension of floating-point tensors of two dimensions and
/// more: PyTorch's output channels. Errc::not_representable for values that are not finite, invalid_argument
/// when tensors are quantized already, unsupported for one on another device, and what reading throws.
[[nodiscard]] Quantized quantize_int8(const Checkpoint& in, const std::vector<std::string>& except = {},
                                      const ChannelAxis& axis = {});

/// Holds tensors that quantize_int8() made.
[[nodiscard]] bool is_quantized(const Checkpoint& checkpoint);

/// What quantize_int8() made, as floating-point tensors again, computed when they are read; a checkpoint
/// without such tensors as it is. Errc::bad_dtype, shape_mismatch and not_found when integers and scales are
/// not what the metadata says, bad_json and unsupported for what it says.
[[nodiscard]] Checkpoint dequantize(const Checkpoint& in);

}  // namespace ballast

#pragma GCC visibility pop
