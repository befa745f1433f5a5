// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "onnx/operations.h"
#include "onnx/toy_operation.h"

namespace onnx_cases {
namespace {

using namespace ballast;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void unary(std::vector<Case>& cases, const std::string& name, Tensor (*op)(const Tensor&), double low = -2,
           double high = 2) {
  add_case(
      cases, name, {{{"x", {"n", 3, 5}}, low, high}}, [op](auto in) { return Tensors{op(in[0])}; }, kTwo);
}

void binary(std::vector<Case>& cases, const std::string& name, Tensor (*op)(const Operand&, const Operand&),
            double low = -2) {
  add_case(
      cases, name, {{{"x", {"n", 3, 5}}, low, 2}, {{"y", {3, 1}}, low, 2}},
      [op](auto in) { return Tensors{op(in[0], in[1])}; }, kTwo);
  add_case(
      cases, name + "_integers", {{{"x", {"n", 4}, DType::i32}, 0, 5}, {{"y", {"n", 4}, DType::i64}, 0, 5}},
      [op](auto in) {
        return Tensors{op(in[0], in[1]), op(in[0], 2)};
      },
      kTwo);
}

void add_elementwise(std::vector<Case>& cases) {
  binary(cases, "add", [](const Operand& a, const Operand& b) { return add(a, b); });
  binary(cases, "sub", sub);
  binary(cases, "mul", mul);
  binary(cases, "div", div, 0.5);
  binary(cases, "pow", pow, 0.1);
  binary(cases, "minimum", minimum);
  binary(cases, "maximum", maximum);
  binary(cases, "atan2", atan2, 0.5);
  binary(cases, "eq", eq);
  binary(cases, "ne", ne);
  binary(cases, "lt", lt);
  binary(cases, "le", le);
  binary(cases, "gt", gt);
  binary(cases, "ge", ge);
  binary(cases, "logical_and", logical_and);
  binary(cases, "logical_or", logical_or);
  binary(cases, "logical_xor", logical_xor);
  unary(cases, "neg", neg);
  unary(cases, "abs", abs);
  unary(cases, "sign", sign);
  unary(cases, "square", square);
  unary(cases, "exp", exp);
  unary(cases, "expm1", expm1);
  unary(cases, "expm1_small", expm1, -1e-4, 1e-4);
  unary(cases, "log", log, 0.1);
  unary(cases, "log1p", log1p, -0.9);
  unary(cases, "log1p_small", log1p, -1e-4, 1e-4);
  unary(cases, "log2", log2, 0.1);
  unary(cases, "sqrt", sqrt, 0.1);
  unary(cases, "rsqrt", rsqrt, 0.1);
  unary(cases, "reciprocal", reciprocal, 0.5);
  unary(cases, "sin", sin);
  unary(cases, "cos", cos);
  unary(cases, "tan", tan, -1, 1);
  unary(cases, "erf", erf);
  unary(cases, "floor", floor);
  unary(cases, "ceil", ceil);
  unary(cases, "round", round);
  unary(cases, "trunc", trunc);
  unary(cases, "logical_not", logical_not);
  unary(cases, "isnan", isnan);
  unary(cases, "isinf", isinf);
  one(cases, "toy", [](auto in) { return Tensors{run(toy::kSnakeInPieces, in[0], 0.5)}; });
  one(cases, "clamp", [](auto in) { return Tensors{clamp(in[0], -1, 0.5), clamp(in[0], {}, 0.5)}; });
  one(cases, "where", [](auto in) {
    return Tensors{where(gt(in[0], 0), in[0], -1.0), masked_fill(in[0], lt(in[0], 0), 7)};
  });
  add_case(
      cases, "unary_integers", {{{"x", {"n", 4}, DType::i64}, -5, 5}},
      [](auto in) {
        return Tensors{neg(in[0]),  abs(in[0]), square(in[0]), clamp(in[0], -2, 3),
                       relu(in[0]), exp(in[0]), floor(in[0])};
      },
      kTwo);
  add_case(
      cases, "cast", {{{"x", {"n", 4}, DType::u8}, 0, 200}},
      [](auto in) {
        return Tensors{in[0].to(DType::f32) / 255, in[0].to(DType::i64), in[0].to(DType::boolean)};
      },
      kTwo);
  add_case(
      cases, "half_precision", {{{"x", {"n", 4}, DType::f16}, -2, 2}},
      [](auto in) {
        return Tensors{exp(in[0]).to(DType::f32), softmax(in[0], -1).to(DType::f32)};
      },
      kTwo);
  cases.back().tolerance = 1e-3;
  add_case(
      cases, "half_precision_chain", {{{"x", {"n", 6}, DType::f16}, -2, 2}},
      [](auto in) {
        const Tensor w = linspace(-1, 1, 36).reshape({6, 6}).to(DType::f16);
        const Tensor y = gelu(linear(in[0], w)).reshape({in[0].shape()[0], 2, 3}).permute({0, 2, 1});
        return Tensors{(softmax(y, 1) * y).to(DType::f32), relu(y), y.to(DType::f32) * 2};
      },
      kTwo);
  cases.back().tolerance = 2e-3;
  add_case(
      cases, "double_precision", {{{"x", {"n", 4}, DType::f64}, -2, 2}},
      [](auto in) {
        return Tensors{in[0] * 0.1 + 1, sum(in[0], {1}), exp(in[0])};
      },
      kTwo);
}

void add_activation(std::vector<Case>& cases) {
  unary(cases, "relu", relu);
  unary(cases, "relu6", relu6, -8, 8);
  unary(cases, "gelu", gelu);
  unary(cases, "gelu_tanh", gelu_tanh);
  unary(cases, "silu", silu);
  unary(cases, "sigmoid", sigmoid);
  unary(cases, "log_sigmoid", log_sigmoid);
  unary(cases, "tanh", tanh);
  unary(cases, "softsign", softsign);
  unary(cases, "selu", selu);
  unary(cases, "hardswish", hardswish, -4, 4);
  unary(cases, "hardsigmoid", hardsigmoid, -4, 4);
  unary(cases, "mish", mish);
  one(cases, "softplus", [](auto in) { return Tensors{softplus(in[0]), softplus(in[0], 2, 1)}; });
  one(cases, "elu", [](auto in) { return Tensors{elu(in[0]), elu(in[0], 0.5)}; });
  one(cases, "leaky_relu", [](auto in) { return Tensors{leaky_relu(in[0], 0.2)}; });
  one(cases, "hardtanh", [](auto in) { return Tensors{hardtanh(in[0], -0.5, 1)}; });
  one(cases, "prelu", [](auto in) { return Tensors{prelu(in[0], Tensor::from({0.1F, 0.2F, 0.3F}, {3}))}; });
  one(cases, "softmax", [](auto in) {
    return Tensors{softmax(in[0], -1), softmax(in[0], 1), softmax(in[0], 0)};
  });
  one(cases, "log_softmax", [](auto in) { return Tensors{log_softmax(in[0], -1), log_softmax(in[0], 1)}; });
  one(cases, "fused_activation", [](auto in) {
    return Tensors{add(in[0], 1, Activation::Kind::gelu), add(in[0], in[0], {Activation::Kind::elu, 0.5})};
  });
}

void add_movement(std::vector<Case>& cases) {
  one(cases, "permute", [](auto in) {
    return Tensors{in[0].permute({2, 0, 1}), in[0].t(), in[0].transpose(0, 1).contiguous()};
  });
  one(cases, "reshape", [](auto in) {
    const std::int64_t n = in[0].shape()[0];
    return Tensors{in[0].reshape({n, 15}),
                   in[0].reshape({-1, 5}),
                   in[0].reshape({3 * n, 5}),
                   in[0].reshape({5, n * 3}),
                   flatten(in[0]),
                   in[0].reshape({1, n, 3, 5, 1}),
                   in[0].permute({1, 0, 2}).reshape({3, n * 5})};
  });
  add_case(cases, "reshape_two_dimensions", {{{"x", {"n", "m", 6}}, -2, 2}},
           [](auto in) {
             const std::int64_t n = in[0].shape()[0];
             const std::int64_t m = in[0].shape()[1];
             return Tensors{
                 in[0].reshape({n * m, 6}), in[0].reshape({n, m, 2, 3}).permute({0, 2, 1, 3}),
                 in[0].permute({1, 0, 2}).reshape({m, n, 2, 3}).permute({1, 0, 3, 2}).reshape({n, 3, m * 2})};
           },
           {{{"n", 2}, {"m", 3}}, {{"n", 4}, {"m", 5}}});
  one(cases, "unsqueeze", [](auto in) {
    return Tensors{in[0].unsqueeze(1), in[0].unsqueeze(-1).squeeze(3)};
  });
  one(cases, "narrow", [](auto in) {
    return Tensors{in[0].narrow(2, 1, 3), in[0].narrow(0, 0, in[0].shape()[0] - 1),
                   in[0].narrow(0, 1, in[0].shape()[0] - 1)};
  });
  one(cases, "index", [](auto in) {
    return Tensors{in[0].index({Slice{}, 1}), in[0].index({ellipsis, Slice{1, {}, 2}}), in[0].index({-1}),
                   in[0].index({Slice{}, new_axis, Slice{{}, {}, -1}, Slice{-3, -1}}),
                   in[0].index({Slice{0, in[0].shape()[0] - 1}})};
  });
  one(cases, "expand", [](auto in) {
    const std::int64_t n = in[0].shape()[0];
    return Tensors{in[0].unsqueeze(1).expand({-1, 4, -1, -1}),
                   Tensor::from({1.0F, 2.0F}, {1, 2}).expand({n, 2}) + 1};
  });
  one(cases, "concat", [](auto in) {
    return Tensors{concat({in[0], in[0]}, 0), concat({in[0], ones({in[0].shape()[0], 3, 1})}, -1),
                   stack({in[0], in[0]}, 1)};
  });
  one(cases, "split", [](auto in) {
    Tensors parts = split(in[0], 2, 2);
    const Tensors more = chunk(in[0], 3, 1);
    parts.insert(parts.end(), more.begin(), more.end());
    return parts;
  });
  one(cases, "pad", [](auto in) {
    return Tensors{pad(in[0], {1, 2}, PadMode::constant, 0.5), pad(in[0], {1, -1, 0, 2}),
                   pad(in[0], {2, 1}, PadMode::reflect), pad(in[0], {1, 1, 2, 0}, PadMode::replicate),
                   pad(in[0], {1, 2, 0, 1}, PadMode::circular)};
  });
  one(cases, "flip", [](auto in) { return Tensors{flip(in[0], {0, 2}), roll(in[0], {2}, {1})}; });
  one(cases, "repeat", [](auto in) {
    return Tensors{repeat(in[0], {2, 1, 3}), repeat_interleave(in[0], 2, 1)};
  });
  add_case(cases, "triangles", {{{"x", {2, "n", "n"}}, -2, 2}},
           [](auto in) {
             return Tensors{tril(in[0]), triu(in[0]), tril(in[0], -1), triu(in[0], 2)};
           },
           {{{"n", 3}}, {{"n", 5}}});
  add_case(
      cases, "pixel_shuffle", {{{"x", {"n", 8, 3, 2}}, -2, 2}},
      [](auto in) {
        return Tensors{pixel_shuffle(in[0], 2), pixel_unshuffle(pixel_shuffle(in[0], 2), 2)};
      },
      kTwo);
  one(cases, "creation", [](auto in) {
    const std::int64_t n = in[0].shape()[0];
    return Tensors{zeros({n, 2}),
                   full({3, n}, 0.5),
                   ones({n}, DType::i64),
                   arange(0, n),
                   arange(2, 2 * n, 2),
                   arange(0.0, 1.0, 0.25, DType::f32) + sum(in[0]),
                   linspace(0, 1, 5) + sum(in[0]),
                   eye(3, 3) + max(in[0])};
  });
  one(cases, "sizes_as_numbers", [](auto in) {
    const std::int64_t n = in[0].shape()[0];
    return Tensors{in[0] * n, in[0] + (2 * n + 1), sum(in[0], {0}) / n};
  });
}

void add_indexing(std::vector<Case>& cases) {
  const CaseInput index{{"i", {"n", 2}, DType::i64}, 0, 4};
  add_case(
      cases, "embedding", {index},
      [](auto in) {
        return Tensors{embedding(in[0], linspace(0, 1, 20).reshape({4, 5}))};
      },
      kTwo);
  add_case(
      cases, "index_select", {kX, {{"i", {4}, DType::i64}, 0, 3}},
      [](auto in) { return Tensors{index_select(in[0], 1, in[1])}; }, kTwo);
  add_case(
      cases, "gather", {{{"x", {"n", 4}}, -2, 2}, index},
      [](auto in) { return Tensors{gather(in[0], 1, in[1])}; }, kTwo);
  add_case(
      cases, "scatter", {{{"x", {"n", 4}}, -2, 2}, {{"i", {"n", 1}, DType::i64}, 0, 4}},
      [](auto in) {
        return Tensors{scatter(in[0], 1, in[1], 9.0), scatter(in[0], 1, in[1], in[0])};
      },
      kTwo);
  add_case(
      cases, "one_hot", {index}, [](auto in) { return Tensors{one_hot(in[0], 4)}; }, kTwo);
}

void add_reduction(std::vector<Case>& cases) {
  using Reduce = Tensor (*)(const Tensor&, const Axes&, bool);
  const std::pair<const char*, Reduce> plain[] = {{"sum", sum}, {"prod", prod}, {"mean", mean},
                                                  {"max", max}, {"min", min},   {"logsumexp", logsumexp},
                                                  {"any", any}, {"all", all}};
  for (const auto& [name, op] : plain) {
    one(cases, name, [op = op](auto in) {
      return Tensors{op(in[0], {1}, false), op(in[0], {-1, 0}, true), op(in[0], {}, false)};
    });
  }
  add_case(
      cases, "reduce_integers", {{{"x", {"n", 4}, DType::i32}, 0, 5}},
      [](auto in) {
        return Tensors{sum(in[0], {1}), prod(in[0], {1}), max(in[0], {0}), min(in[0]), argmax(in[0], 1)};
      },
      kTwo);
  one(cases, "var", [](auto in) {
    return Tensors{var(in[0], {1}), var(in[0], {0, 2}, true, 0), stddev(in[0]), var(in[0], {0, 1})};
  });
  one(cases, "norm", [](auto in) {
    return Tensors{norm(in[0], 2, {1}), norm(in[0], 1), norm(in[0], kInfinity, {2}, true),
                   norm(in[0], 3, {1}), norm(in[0], 0, {2})};
  });
  one(cases, "argmax", [](auto in) {
    return Tensors{argmax(in[0], 1), argmax(in[0], -1, true), argmax(in[0])};
  });
  one(cases, "argmin", [](auto in) {
    return Tensors{argmin(in[0], 1), argmin(in[0], -1, true), argmin(in[0])};
  });
  one(cases, "cumsum", [](auto in) { return Tensors{cumsum(in[0], 1), cumsum(in[0], 0)}; });
  one(cases, "sort", [](auto in) {
    const Sorted up = sort(in[0], 2);
    const Sorted down = sort(in[0], 0, true);
    return Tensors{up.values, up.indices, down.values, down.indices};
  });
  one(cases, "topk", [](auto in) {
    const Sorted best = topk(in[0], 2, 2);
    const Sorted worst = topk(in[0], 1, 1, false);
    return Tensors{best.values, best.indices, worst.values};
  });
}

}  // namespace

void add_operation_cases(std::vector<Case>& cases) {
  add_elementwise(cases);
  add_activation(cases);
  add_movement(cases);
  add_indexing(cases);
  add_reduction(cases);
  add_layer_operation_cases(cases);
  add_more_cases(cases);
  add_loss_cases(cases);
}

}  // namespace onnx_cases
