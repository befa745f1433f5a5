// SPDX-License-Identifier: Apache-2.0
// Sizes with names: every way to make an image smaller with every way to use the size that is left, and what
// models do with the length of a text; each at sizes that are odd, prime, as small as the model takes them,
// and multiples of what it divides by.
#include "ballast/error.h"
#include "onnx/operations.h"

namespace onnx_cases {
namespace {

using namespace ballast;

using Way = Tensor (*)(const Tensor&);
using Use = Tensor (*)(const Tensor& x, const Tensor& smaller);

Tensor kernel(std::int64_t out, std::int64_t in, std::int64_t size) {
  return linspace(-1, 1, out * in * size * size).reshape({out, in, size, size});
}

Tensor twice(const Tensor& x, const ConvArgs& args, std::int64_t size) {
  return conv(conv(x, kernel(2, 2, size), {}, args), kernel(2, 2, size), {}, args) * 0.1;
}

const std::pair<const char*, Way> kWays[] = {
    {"same", [](const Tensor& x) { return x * 1.5; }},
    {"conv_padded", [](const Tensor& x) { return twice(x, {.stride = {2}, .padding = {1}}, 3); }},
    {"conv_even", [](const Tensor& x) { return twice(x, {.stride = {2}}, 2); }},
    {"conv_by_three", [](const Tensor& x) { return twice(x, {.stride = {3}, .padding = {1}}, 3); }},
    {"conv_dilated", [](const Tensor& x) { return twice(x, {.padding = {1}, .dilation = {2}}, 3); }},
    {"max_pool",
     [](const Tensor& x) {
       return max_pool(max_pool(x, {2, 2}), {2, 2});
     }},
    {"max_pool_padded",
     [](const Tensor& x) {
       return max_pool(x, {3, 3}, {.stride = {2}, .padding = {1}});
     }},
    {"avg_pool",
     [](const Tensor& x) {
       return avg_pool(x, {3, 3}, {.stride = {2}, .padding = {1}});
     }},
    {"max_pool_up",
     [](const Tensor& x) {
       return max_pool(max_pool(x, {3, 2}, {.stride = {2, 3}, .padding = {1, 0}, .ceil_mode = true}), {2, 2},
                       {.stride = {3}, .dilation = {2, 3}, .ceil_mode = true});
     }},
    {"avg_pool_up",
     [](const Tensor& x) {
       return avg_pool(avg_pool(x, {3, 3}, {.stride = {2}, .padding = {1}, .ceil_mode = true}), {2, 2},
                       {.stride = {3, 2}, .padding = {0, 1}, .ceil_mode = true, .count_include_pad = false});
     }},
    {"conv_transpose",
     [](const Tensor& x) {
       return conv_transpose(x, kernel(2, 2, 3), {}, {.stride = {2}, .padding = {1}}) * 0.1;
     }},
    {"half_size",
     [](const Tensor& x) {
       return resize(x, {.size = {(x.shape()[2] + 1) / 2, x.shape()[3]}, .mode = ResizeMode::linear});
     }},
};

std::int64_t to_next(std::int64_t size, std::int64_t multiple) {
  return (multiple - size % multiple) % multiple;
}

const std::pair<const char*, Use> kUses[] = {
    {"resize_to_sibling",
     [](const Tensor& x, const Tensor& y) {
       return resize(y, {.size = {x.shape()[2], x.shape()[3]}, .mode = ResizeMode::linear}) + x;
     }},
    {"resize_from_sibling",
     [](const Tensor& x, const Tensor& y) {
       return resize(x, {.size = {y.shape()[2], y.shape()[3]}, .mode = ResizeMode::linear}) + y;
     }},
    {"mean_by_count",
     [](const Tensor&, const Tensor& y) {
       return sum(y, {2, 3}) / (y.shape()[2] * y.shape()[3]);
     }},
    {"positions",
     [](const Tensor&, const Tensor& y) {
       return y + arange(0, y.shape()[2]).unsqueeze(1) * 0.1 - arange(0, y.shape()[3]);
     }},
    {"pad_to_multiple",
     [](const Tensor&, const Tensor& y) {
       return pad(y, {0, to_next(y.shape()[3], 8), 0, to_next(y.shape()[2], 8)});
     }},
    {"pad_both_sides",
     [](const Tensor&, const Tensor& y) {
       const std::int64_t missing = to_next(y.shape()[2], 5);
       return pad(y, {0, 0, missing / 2, missing - missing / 2});
     }},
    {"tokens",
     [](const Tensor&, const Tensor& y) {
       const Shape& s = y.shape();
       const Tensor tokens = y.reshape({s[0], s[1], s[2] * s[3]}).permute({0, 2, 1});
       return concat({zeros({s[0], 1, s[1]}), tokens}, 1) + arange(0, s[2] * s[3] + 1).unsqueeze(1);
     }},
    {"crop_sibling",
     [](const Tensor& x, const Tensor& y) {
       const std::int64_t rows = std::min(x.shape()[2], y.shape()[2]);
       return x.narrow(2, 0, rows).narrow(3, 0, x.shape()[3] / 2 + 1);
     }},
    {"pad_difference",
     [](const Tensor& x, const Tensor& y) {
       const Tensor up = resize(y, {.scale = {1}});
       const std::int64_t rows = x.shape()[2] - up.shape()[2];
       const std::int64_t columns = x.shape()[3] - up.shape()[3];
       return pad(up, {columns / 2, columns - columns / 2, rows / 2, rows - rows / 2});
     }},
    {"windows",
     [](const Tensor&, const Tensor& y) {
       const Tensor z = pad(y, {0, to_next(y.shape()[3], 4), 0, to_next(y.shape()[2], 4)});
       const Shape& s = z.shape();
       return z.reshape({s[0], s[1], s[2] / 4, 4, s[3] / 4, 4})
           .permute({0, 2, 4, 1, 3, 5})
           .reshape({s[0] * (s[2] / 4) * (s[3] / 4), s[1], 4, 4});
     }},
};

// Those the model itself takes.
std::vector<Sizes> taken(const Function& forward, const std::vector<CaseInput>& inputs,
                         const std::vector<Sizes>& all) {
  std::vector<Sizes> some;
  for (const Sizes& sizes : all) {
    Tensors tensors;
    for (const CaseInput& input : inputs) {
      Shape shape;
      for (const InputDim& dim : input.spec.shape)
        shape.push_back(dim.name.empty() ? dim.size : sizes.at(dim.name));
      tensors.push_back(filled(input.spec, shape, input.low, input.high, 1));
    }
    try {
      static_cast<void>(forward(tensors));
      some.push_back(sizes);
    } catch (const Error&) {
      continue;
    }
  }
  return some;
}

void add_sized(std::vector<Case>& cases, const std::string& name, const CaseInput& input, Function forward,
               const std::vector<Sizes>& all) {
  const std::vector<Sizes> sizes = taken(forward, {input}, all);
  add_case(cases, "sizes_" + name, {input}, std::move(forward), sizes);
  cases.back().opsets = {cases.size() % 2 == 0 ? 11 : 17};  // by turns
  cases.back().all_opsets = false;
}

void add_images(std::vector<Case>& cases) {
  std::vector<Sizes> sizes;
  const std::int64_t images[][3] = {{1, 1, 1},   {2, 2, 3},   {1, 3, 2},   {3, 5, 7},   {1, 7, 5},
                                    {1, 8, 8},   {2, 9, 10},  {1, 13, 16}, {1, 16, 13}, {2, 17, 31},
                                    {1, 24, 40}, {1, 37, 41}, {1, 64, 65}, {1, 97, 50}, {1, 100, 224}};
  for (const auto& [batch, height, width] : images)
    sizes.push_back({{"batch", batch}, {"height", height}, {"width", width}});
  const CaseInput image{{"x", {"batch", 2, "height", "width"}}, -2, 2};
  for (const auto& [way_name, way] : kWays) {
    for (const auto& [use_name, use] : kUses) {
      add_sized(
          cases, std::string(way_name) + "_" + use_name, image,
          [way = way, use = use](auto in) { return Tensors{use(in[0], way(in[0]))}; }, sizes);
    }
  }
}

void add_texts(std::vector<Case>& cases) {
  std::vector<Sizes> sizes;
  for (const std::int64_t seq : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 40, 41, 101, 128, 257, 1000})
    sizes.push_back({{"batch", seq % 3 + 1}, {"seq", seq}});
  const CaseInput text{{"x", {"batch", "seq", 4}}, -2, 2};
  const auto one = [&](const char* name, Way way) {
    add_sized(
        cases, std::string("text_") + name, text, [way](auto in) { return Tensors{way(in[0])}; }, sizes);
  };
  one("halves", [](const Tensor& x) {
    const std::int64_t half = x.shape()[1] / 2;
    return concat({x.narrow(1, half, x.shape()[1] - half), x.narrow(1, 0, half)}, 1);
  });
  one("blocks", [](const Tensor& x) {
    const Tensor y = pad(x, {0, 0, 0, to_next(x.shape()[1], 8)});
    return y.reshape({y.shape()[0] * (y.shape()[1] / 8), 8, 4});
  });
  one("every_third", [](const Tensor& x) {
    return x.index({Slice{}, Slice{{}, {}, 3}}) * ((x.shape()[1] + 2) / 3);
  });
  one("left_over", [](const Tensor& x) { return x * (x.shape()[1] % 7) + x.shape()[1] / 6; });
  one("together", [](const Tensor& x) {
    return x.reshape({x.shape()[0] * x.shape()[1], 4}) + (2 * x.shape()[0] + 3 * x.shape()[1]);
  });
  one("last", [](const Tensor& x) { return x.narrow(1, x.shape()[1] - 1, 1) / x.shape()[1]; });
  one("causal", [](const Tensor& x) {
    const std::int64_t n = x.shape()[1];
    return matmul(tril(full({n, n}, 1.0)), x) / (arange(0, n) + 1).unsqueeze(1).to(DType::f32);
  });
}

// A batch of nothing, where the operators can say so.
void add_empty(std::vector<Case>& cases) {
  std::vector<Sizes> sizes;
  for (const std::int64_t batch : {0, 1, 3}) sizes.push_back({{"batch", batch}, {"seq", 5}});
  add_case(
      cases, "sizes_empty_batch", {{{"x", {"batch", "seq", 6}}, -2, 2}},
      [](auto in) {
        const std::int64_t n = in[0].shape()[0];
        const std::int64_t t = in[0].shape()[1];
        return Tensors{flatten(in[0]), in[0].reshape({n * t, 6}),
                       in[0].reshape({n, t, 2, 3}).permute({0, 2, 1, 3}).reshape({n * 2, t, 3}),
                       in[0].reshape({-1, 3}), in[0].reshape({t, n, 6})};
      },
      sizes);
  cases.back().opsets = {14, 17};
  cases.back().all_opsets = false;
}

}  // namespace

void add_size_cases(std::vector<Case>& cases) {
  add_images(cases);
  add_texts(cases);
  add_empty(cases);
}

}  // namespace onnx_cases
