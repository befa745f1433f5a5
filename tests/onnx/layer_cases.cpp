// SPDX-License-Identifier: Apache-2.0
// Products, images, norms.
#include "onnx/operations.h"

namespace onnx_cases {
namespace {

using namespace ballast;

void add_products(std::vector<Case>& cases) {
  one(cases, "matmul", [](auto in) {
    return Tensors{matmul(in[0], in[0].transpose(1, 2)), matmul(in[0], linspace(0, 1, 10).reshape({5, 2})),
                   matmul(in[0], linspace(-1, 1, 5))};
  });
  one(cases, "linear", [](auto in) {
    const Tensor w = linspace(-1, 1, 10).reshape({5, 2});
    return Tensors{linear(in[0], w, linspace(0, 1, 2)),
                   linear(in[0].index({Slice{}, 0}), w, {}, {.activation = Activation::Kind::relu})};
  });
  one(cases, "bilinear", [](auto in) {
    return Tensors{bilinear(in[0], in[0] * 2, linspace(-1, 1, 50).reshape({2, 5, 5}), linspace(0, 1, 2))};
  });
  add_case(cases, "attention",
           {{{"q", {"n", 2, "t", 4}}, -2, 2},
            {{"k", {"n", 2, "s", 4}}, -2, 2},
            {{"mask", {"n", 1, 1, "s"}}, -1, 1}},
           [](auto in) {
             const Tensor allowed = gt(in[2], -0.5);
             return Tensors{
                 scaled_dot_product_attention(in[0], in[1], in[1]),
                 scaled_dot_product_attention(in[0], in[1], in[1], {.mask = in[2], .scale = 0.3}),
                 scaled_dot_product_attention(in[0], in[1], in[1], {.mask = allowed}),
                 scaled_dot_product_attention(in[0], in[1], in[1], {.causal = true, .query_offset = 2}),
                 scaled_dot_product_attention(in[0], in[0], in[0], {.causal = true})};
           },
           {{{"n", 2}, {"t", 3}, {"s", 5}}, {{"n", 1}, {"t", 6}, {"s", 4}}});
}

void add_images(std::vector<Case>& cases) {
  const CaseInput image{{"x", {"n", 4, 9, 8}}, -2, 2};
  const std::vector<Sizes> two = kTwo;
  add_case(
      cases, "conv", {image},
      [](auto in) {
        const Tensor w = linspace(-1, 1, 6 * 4 * 3 * 2).reshape({6, 4, 3, 2});
        const Tensor g = linspace(-1, 1, 6 * 2 * 3 * 3).reshape({6, 2, 3, 3});
        return Tensors{conv(in[0], w, linspace(0, 1, 6)),
                       conv(in[0], w, {}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {2, 1}}),
                       conv(in[0], g, {}, {.same = true, .groups = 2, .activation = Activation::Kind::silu}),
                       conv(in[0], g, {}, {.padding = {1}, .groups = 2, .padding_mode = PadMode::reflect}),
                       conv(in[0].reshape({in[0].shape()[0], 4, 72}), linspace(-1, 1, 8).reshape({1, 4, 2}))};
      },
      two);
  add_case(
      cases, "conv_transpose", {image},
      [](auto in) {
        const Tensor w = linspace(-1, 1, 4 * 3 * 3 * 2).reshape({4, 3, 3, 2});
        return Tensors{
            conv_transpose(in[0], w, linspace(0, 1, 3)),
            conv_transpose(in[0], w, {}, {.stride = {2}, .padding = {1, 0}, .output_padding = {1}}),
            conv_transpose(in[0], linspace(-1, 1, 4 * 2 * 4).reshape({4, 2, 2, 2}), {},
                           {.stride = {2}, .groups = 2})};
      },
      two);
  add_case(
      cases, "max_pool", {image},
      [](auto in) {
        return Tensors{max_pool(in[0], {2, 2}), max_pool(in[0], {3, 3}, {.stride = {2}, .padding = {1}}),
                       max_pool(in[0], {2, 3}, {.stride = {1}, .dilation = {2, 1}}),
                       max_pool(in[0], {2, 3}, {.stride = {2}, .padding = {1}, .ceil_mode = true}),
                       max_pool(in[0].index({0}), {2, 2})};
      },
      two);
  add_case(
      cases, "avg_pool", {image},
      [](auto in) {
        return Tensors{avg_pool(in[0], {2, 2}), avg_pool(in[0], {3, 3}, {.stride = {2}, .padding = {1}}),
                       avg_pool(in[0], {3, 3}, {.stride = {2}, .padding = {1}, .count_include_pad = false}),
                       avg_pool(in[0], {2, 3}, {.stride = {2}, .ceil_mode = true}),
                       avg_pool(in[0], {2, 2}, {.divisor_override = 3})};
      },
      two);
  add_case(
      cases, "adaptive_pool", {image},
      [](auto in) {
        return Tensors{adaptive_avg_pool(in[0], {1, 1}), adaptive_max_pool(in[0], {1, 1}),
                       adaptive_avg_pool(in[0], {3, 4}), adaptive_max_pool(in[0], {3, 2}),
                       adaptive_avg_pool(in[0], {4, 3}), global_avg_pool(in[0])};
      },
      two);
  add_case(
      cases, "resize", {image},
      [](auto in) {
        return Tensors{resize(in[0], {.scale = {2}}),
                       resize(in[0], {.size = {5, 12}}),
                       resize(in[0], {.scale = {2}, .mode = ResizeMode::linear}),
                       resize(in[0], {.size = {13, 5}, .mode = ResizeMode::linear}),
                       resize(in[0], {.size = {13, 5}, .mode = ResizeMode::linear, .align_corners = true}),
                       resize(in[0], {.scale = {1.5}, .mode = ResizeMode::cubic}),
                       resize(in[0], {.size = {12, 14}, .mode = ResizeMode::cubic, .align_corners = true})};
      },
      two);
  add_case(cases, "dynamic_image", {{{"x", {"n", 4, "h", "w"}}, -2, 2}},
           [](auto in) {
             const Tensor x = in[0];
             const Tensor small = max_pool(conv(x, linspace(-1, 1, 4 * 4 * 9).reshape({4, 4, 3, 3}), {},
                                                {.stride = {2}, .padding = {1}}),
                                           {2, 2});
             return Tensors{small,
                            resize(small, {.size = {x.shape()[2], x.shape()[3]}, .mode = ResizeMode::linear}),
                            small.reshape({x.shape()[0], 4, small.shape()[2] * small.shape()[3]}),
                            global_max_pool(x),
                            group_norm(small, 2),
                            mean(x, {2, 3})};
           },
           {{{"n", 2}, {"h", 16}, {"w", 24}}, {{"n", 1}, {"h", 30}, {"w", 17}}});
}

void add_norms(std::vector<Case>& cases) {
  const Tensor three = Tensor::from({0.5F, 1.0F, 2.0F}, {3});
  one(cases, "batch_norm", [three](auto in) {
    return Tensors{batch_norm(in[0], three - 1, three, three, three), batch_norm(in[0], three, three),
                   batch_norm(in[0].index({ellipsis, 0}), three, three)};
  });
  one(cases, "layer_norm", [](auto in) {
    return Tensors{layer_norm(in[0], {5}, linspace(0, 1, 5), linspace(1, 2, 5)), layer_norm(in[0], {3, 5}),
                   layer_norm(in[0], {5}, linspace(0, 1, 5))};
  });
  one(cases, "rms_norm", [](auto in) {
    return Tensors{rms_norm(in[0], {5}, linspace(0, 1, 5)), rms_norm(in[0], {3, 5}, {}, 1e-3)};
  });
  add_case(
      cases, "group_norm", {{{"x", {"n", 6, 4, 3}}, -2, 2}},
      [](auto in) {
        return Tensors{group_norm(in[0], 3, linspace(0, 1, 6), linspace(1, 2, 6)), group_norm(in[0], 2)};
      },
      kTwo);
  one(cases, "instance_norm", [three](auto in) {
    return Tensors{instance_norm(in[0], three, three), instance_norm(in[0])};
  });
}

}  // namespace

void add_layer_operation_cases(std::vector<Case>& cases) {
  add_products(cases);
  add_images(cases);
  add_norms(cases);
}

}  // namespace onnx_cases
