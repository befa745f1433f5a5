// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, and images at the places of a grid.
#include <cmath>

#include "onnx/lowering.h"

namespace ballast::onnx {
namespace {

// [n * parts, kept * 2]: what each part of each value adds to each part of each result.
Tensor fourier_matrix(std::int64_t n, std::int64_t parts, std::int64_t kept, bool inverse) {
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  const double turn = (inverse ? 2 : -2) * std::acos(-1.0) / static_cast<double>(n);
  std::vector<float> values;
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t part = 0; part < parts; ++part) {
      for (std::int64_t f = 0; f < kept; ++f) {
        const double angle = turn * static_cast<double>(k * f % n);
        const double c = std::cos(angle) * scale;
        const double s = std::sin(angle) * scale;
        values.push_back(static_cast<float>(part == 0 ? c : -s));
        values.push_back(static_cast<float>(part == 0 ? s : c));
      }
    }
  }
  return Tensor::from(values, {n * parts, kept * 2});
}

void dft(const Call& call) {
  const GraphValue& x = call.value(0);
  Lowering& to = call.to;
  const bool inverse = call.number("inverse") != 0;
  const bool onesided = call.number("onesided") != 0;
  const std::size_t rank = x.shape.size();
  if (to.opset() >= 17) {
    const std::string in = rank == 2 ? to.unsqueeze(call.floats(0), {0}) : call.floats(0);
    const auto axis = static_cast<std::int64_t>(rank == 2 ? 1 : rank - 2);
    const std::string out =
        to.node("DFT", {in},
                {{"axis", axis}, {"inverse", std::int64_t{inverse}}, {"onesided", std::int64_t{onesided}}});
    return call.result(rank == 2 ? to.squeeze(out, {0}) : out, DType::f32);
  }
  if (!x.sizes[rank - 2].is_constant()) call.refuse("below opset 17 the length must be a number");
  const std::int64_t n = x.shape[rank - 2];
  const std::int64_t kept = onesided ? n / 2 + 1 : n;
  Dims flat = Dims::filled(rank - 1, 0);
  flat[rank - 2] = n * x.shape[rank - 1];
  Dims pairs = Dims::filled(rank, 0);
  pairs[rank - 2] = kept;
  pairs[rank - 1] = 2;
  const std::string matrix = to.constant(fourier_matrix(n, x.shape[rank - 1], kept, inverse));
  const std::string product = to.node("MatMul", {to.reshape(call.floats(0), flat), matrix});
  call.result(to.reshape(product, pairs), DType::f32);
}

void grid_sample(const Call& call) {
  if (call.to.opset() < 16) call.refuse("GridSample needs opset 16");
  if (call.value(0).shape.size() != 4) call.refuse("GridSample has no depth before opset 20");
  const char* modes[] = {"bilinear", "nearest", "bicubic"};
  const char* paddings[] = {"zeros", "border", "reflection"};
  call.result(call.to.node("GridSample", {call.floats(0), call.floats(1)},
                           {{"mode", std::string(modes[call.number("mode")])},
                            {"padding_mode", std::string(paddings[call.number("padding")])},
                            {"align_corners", call.number("align_corners")}}),
              DType::f32);
}

}  // namespace

void add_signals(TranslateTable& table) {
  table.insert({{&operations::dft, dft}, {&operations::grid_sample, grid_sample}});
}

}  // namespace ballast::onnx
