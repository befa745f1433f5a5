// SPDX-License-Identifier: Apache-2.0
// Quantized tensors: the integers, and the numbers that turn them back into reals.
#include <algorithm>

#include "ballast/error.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

// One number a channel: a tensor, or a list as torch 1.3 wrote.
Tensor channel_numbers(Objects& objects, Ref value, std::int64_t channels, const char* what) {
  Tensor numbers;
  if (as_kind(value, NodeKind::tensor) != nullptr) {
    numbers = Rebuild::value_of(objects, value);
  } else {
    std::vector<double> held;
    bool whole = true;
    const auto given = objects.need_sequence(value, what);
    objects.budget().take(given.size() * 2 * sizeof(double));
    for (const Ref number : given) {
      const Value item = ValueTree::value(objects.shared_tree(), number);
      if (item.kind() != Kind::floating && item.kind() != Kind::integer)
        objects.refuse(Errc::type_mismatch, "{} among {}", objects.describe(number), what);
      whole = whole && item.kind() == Kind::integer;
      held.push_back(item.as_float());
    }
    const Shape shape = {static_cast<std::int64_t>(held.size())};
    if (whole && !held.empty())
      numbers = Tensor::from<std::int64_t>(std::vector<std::int64_t>(held.begin(), held.end()), shape);
    else
      numbers = Tensor::from<double>(held, shape);
  }
  if (numbers.rank() != 1 || numbers.numel() != channels) {
    objects.refuse(Errc::size_mismatch, "{} of shape {} for {} channels", what, to_string(numbers.shape()),
                   channels);
  }
  return numbers;
}

// PyTorch keeps them as `dtype`, one behind the other: what it is given in another way it copies.
Tensor kept_as(Objects& objects, const Call& call, const Tensor& numbers, DType dtype, bool is_tensor) {
  if (numbers.dtype() == dtype && numbers.is_contiguous()) return numbers;
  if (is_tensor) objects.note_copied(call);
  return numbers.dtype() == dtype ? Rebuild::in_usual_order(objects, numbers) : numbers.to_lazy(dtype);
}

}  // namespace

Ref Rebuild::quantized(Objects& objects, const Call& call, Role /*role*/) {
  objects.need_arguments(call, 7, 7);
  const ViewArguments view{.offset = objects.need_int(call.args[1], "a storage offset"),
                           .sizes = objects.need_sequence(call.args[2], "sizes"),
                           .strides = objects.need_sequence(call.args[3], "strides")};
  objects.expect_no_hooks(call.callee->type, Objects::argument(call, 6));
  const Ref made = objects.views().tensor(call.args[0], view, {}, Objects::argument(call, 5).is_true());
  const TensorRecord& record = *made.node()->tensor;
  if (info(record.dtype).kind != DTypeKind::quantized)
    objects.refuse(Errc::bad_dtype, "a quantized tensor of {}", info(record.dtype).code);
  const auto params = objects.need_sequence(call.args[4], "quantization parameters");
  if (params.empty()) objects.refuse(Errc::type_mismatch, "no quantization parameters");
  Quantization quantization;
  const auto scheme = as_constant(params[0], Role::qscheme);
  if (!scheme)
    objects.refuse(Errc::type_mismatch, "{} for a quantization scheme", objects.describe(params[0]));
  quantization.scheme = scheme->substr(std::string_view("torch.").size());
  if (quantization.scheme == "per_tensor_affine") {
    if (params.size() < 3)
      objects.refuse(Errc::type_mismatch, "{} quantization parameters, 3 are needed", params.size());
    const Value scale = ValueTree::value(objects.shared_tree(), params[1]);
    if (scale.kind() != Kind::floating && scale.kind() != Kind::integer)
      objects.refuse(Errc::type_mismatch, "{} for a scale", objects.describe(params[1]));
    quantization.scale = scale.as_float();
    quantization.zero_point = objects.need_int(params[2], "a zero point");
  } else if (quantization.scheme.starts_with("per_channel_affine")) {
    if (params.size() < 4)
      objects.refuse(Errc::type_mismatch, "{} quantization parameters, 4 are needed", params.size());
    quantization.axis = objects.need_int(params[3], "a quantization axis");
    if (quantization.axis < 0 || quantization.axis >= static_cast<std::int64_t>(record.rank)) {
      objects.refuse(Errc::offset_out_of_range, "quantization axis {} of a tensor of {} dimensions",
                     quantization.axis, record.rank);
    }
    const std::int64_t channels = record.dims[quantization.axis];
    const Tensor scales = channel_numbers(objects, params[1], channels, "scales");
    const Tensor zero_points = channel_numbers(objects, params[2], channels, "zero points");
    // torch 1.x writes the shorter name for both; it goes by the zero points itself.
    const bool has_float_points = is_floating(zero_points.dtype());
    if (has_float_points) quantization.scheme = "per_channel_affine_float_qparams";
    const auto kept = [&](const Tensor& numbers, std::size_t param, DType dtype) {
      return kept_as(objects, call, numbers, dtype, as_kind(params[param], NodeKind::tensor) != nullptr);
    };
    quantization.scales = kept(scales, 1, has_float_points ? DType::f32 : DType::f64);
    quantization.zero_points = kept(zero_points, 2, has_float_points ? DType::f32 : DType::i64);
  } else {
    objects.refuse(Errc::unsupported, "quantization scheme {}", quoted(quantization.scheme));
  }
  objects.budget().take(2 * sizeof(TensorDetails));  // a vector of them grows by doubling
  objects.tree().details.push_back({std::move(quantization), {}});
  made.node()->tensor->details = static_cast<std::uint32_t>(objects.tree().details.size());
  return made;
}

}  // namespace ballast::torch
