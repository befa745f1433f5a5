// SPDX-License-Identifier: Apache-2.0
// Operations at the sizes of ResNet-50, MobileNet and GPT-2. Alone it prints a table; with --serve it times
// the case named on each line it reads, so that bench/run.py can take turns with a peer.
//   ops_bench [--threads N] [--callers N] [--busy] [--seconds S] [--serve] [CASE…]
#include <functional>
#include <memory>
#include <string>

#include "ballast/ops.h"
#include "serve.h"

namespace ballast {
namespace {

using bench::Cases;

Generator& generator() {
  static Generator instance(1);
  return instance;
}

// `alone`: from a row-major image to row-major bytes. Otherwise as inside a model: the image comes from a
// convolution, the result goes to another.
void add_conv(Cases& cases, const std::string& name, std::int64_t in, std::int64_t size, std::int64_t out,
              std::int64_t kernel, std::int64_t stride, std::int64_t groups = 1) {
  const Tensor plain = randn({1, in, size, size}, generator());
  const Tensor image = conv(plain, ones({in, 1, 1, 1}), {}, {.groups = in});
  const Tensor weight = randn({out, in / groups, kernel, kernel}, generator());
  const Tensor bias = randn({out}, generator());
  const auto cache = std::make_shared<OpCache>();
  const ConvArgs args{.stride = {stride},
                      .padding = {kernel / 2},
                      .groups = groups,
                      .activation = Activation::Kind::relu,
                      .cache = cache.get()};
  const std::int64_t rows = (size + kernel / 2 * 2 - kernel) / stride + 1;
  const double flops = 2.0 * static_cast<double>(rows * rows * out * (in / groups) * kernel * kernel);
  cases[name] = {[=] { static_cast<void>(cache), static_cast<void>(conv(image, weight, bias, args)); }, flops,
                 "GFLOP/s"};
  cases[name + " alone"] = {
      [=] { static_cast<void>(cache), static_cast<void>(conv(plain, weight, bias, args).data()); }, flops,
      "GFLOP/s"};
}

void add_linear(Cases& cases, const std::string& name, std::int64_t rows, std::int64_t in, std::int64_t out,
                Activation activation) {
  const Tensor x = randn({rows, in}, generator());
  const Tensor weight = randn({out, in}, generator()).t();  // as it comes out of a .pt file
  const Tensor bias = randn({out}, generator());
  const auto cache = std::make_shared<OpCache>();
  cases[name] = {
      [=] {
        static_cast<void>(cache), static_cast<void>(linear(x, weight, bias, {activation, cache.get()}));
      },
      2.0 * static_cast<double>(rows * in * out), "GFLOP/s"};
}

// Small numbers, so that every dtype holds them.
Tensor counted(DType dtype, const Shape& shape) {
  Tensor bytes = Tensor::empty(DType::u8, shape);
  std::uint32_t next = 1;
  for (std::uint8_t& byte : bytes.mutable_span<std::uint8_t>()) {
    next = next * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(next >> 30U);
  }
  return bytes.to(dtype);
}

// What a model does with masks, indices and images of bytes.
void add_other_dtypes(Cases& cases) {
  const Shape square = {2048, 2048};
  const auto bytes_of = [](const Tensor& x) { return static_cast<double>(x.size_bytes()); };
  const auto add_case = [&](const std::string& name, double bytes, std::function<Tensor()> run) {
    cases[name] = {[=] { static_cast<void>(run()); }, bytes, "GB/s"};
  };
  for (const DType dtype : {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f64}) {
    const Tensor x = counted(dtype, square);
    const Tensor y = x.clone();
    const std::string code(info(dtype).code);
    add_case("eq " + code, 2 * bytes_of(x), [=] { return eq(x, y); });
    add_case("add " + code, 3 * bytes_of(x), [=] { return add(x, y); });
    if (dtype != DType::boolean) {
      add_case("mul " + code + " number", 2 * bytes_of(x), [=] { return mul(x, 3); });
      add_case("max " + code, bytes_of(x), [=] { return max(x); });
      add_case("max " + code + " dim 1", bytes_of(x), [=] { return max(x, {1}); });
    }
    add_case("sum " + code + " dim 0", bytes_of(x), [=] { return sum(x, {0}); });
    add_case("prod " + code + " dim 1", bytes_of(x), [=] { return prod(x, {1}); });
    for (const DType to : {DType::u8, DType::f16, DType::f32, DType::i64})
      if (to != dtype)
        add_case("cast " + code + " " + std::string(info(to).code), bytes_of(x), [=] { return x.to(to); });
  }
  const Tensor x = randn(square, generator());
  add_case("cast F32 U8", bytes_of(x), [=] { return x.to(DType::u8); });
  add_case("cast F32 I64", bytes_of(x), [=] { return x.to(DType::i64); });
  add_case("cast F32 BOOL", bytes_of(x), [=] { return x.to(DType::boolean); });
  for (const std::int64_t dim : {0, 1}) {
    const std::string along = " F32 dim " + std::to_string(dim);
    const Tensor index = arange(0, 2048).unsqueeze(1 - dim).expand(square).clone();
    add_case("sum" + along, bytes_of(x), [=] { return sum(x, {dim}); });
    add_case("max" + along, bytes_of(x), [=] { return max(x, {dim}); });
    add_case("prod" + along, bytes_of(x), [=] { return prod(x, {dim}); });
    add_case("gather" + along, 4 * bytes_of(x), [=] { return gather(x, dim, index); });
    add_case("scatter" + along, 4 * bytes_of(x), [=] { return scatter(x, dim, index, x); });
  }
  add_case("sum F32", bytes_of(x), [=] { return sum(x); });
  const Tensor image = randn({8, 64, 56, 56}, generator());
  add_case("pad 8x64x56x56", 2 * bytes_of(image), [=] { return pad(image, {1, 1, 1, 1}); });
  add_case("pad 8x64x56x56 reflect", 2 * bytes_of(image), [=] {
    return pad(image, {1, 1, 1, 1}, PadMode::reflect);
  });
}

// Rows that are enough for this many threads, and hardly any work in them: what it costs to start and to
// join.
void add_regions(Cases& cases) {
  const auto rows = [](std::int64_t count) {
    return [x = randn({count, 8192}, generator())] { static_cast<void>(softmax(x)); };
  };
  const auto three = rows(3);
  const auto many = rows(64);
  cases["64 rows after 64 rows"] = {[=] { many(), many(); }};
  cases["64 rows after 3 rows"] = {[=] { three(), many(); }};
}

Cases all_cases() {
  Cases cases;
  add_regions(cases);
  add_conv(cases, "conv 3-64 7x7/2 @224", 3, 224, 64, 7, 2);
  add_conv(cases, "conv 64-64 3x3 @56", 64, 56, 64, 3, 1);
  add_conv(cases, "conv 128-128 3x3 @28", 128, 28, 128, 3, 1);
  add_conv(cases, "conv 256-256 3x3 @14", 256, 14, 256, 3, 1);
  add_conv(cases, "conv 512-512 3x3 @7", 512, 7, 512, 3, 1);
  add_conv(cases, "conv 64-256 1x1 @56", 64, 56, 256, 1, 1);
  add_conv(cases, "conv 1024-256 1x1 @14", 1024, 14, 256, 1, 1);
  add_conv(cases, "conv 144-144 3x3 depthwise @56", 144, 56, 144, 3, 1, 144);
  add_linear(cases, "linear 128x768x3072 gelu", 128, 768, 3072, Activation::Kind::gelu_tanh);
  add_linear(cases, "linear 128x3072x768", 128, 3072, 768, {});
  add_linear(cases, "linear 1x768x3072", 1, 768, 3072, {});
  const Tensor a = randn({128, 768}, generator());
  const Tensor b = randn({768, 3072}, generator());
  cases["matmul 128x768x3072"] = {[=] { static_cast<void>(matmul(a, b)); }, 2.0 * 128 * 768 * 3072,
                                  "GFLOP/s"};
  const Tensor qkv = randn({1, 128, 3, 12, 64}, generator());
  const auto head = [&](std::int64_t i) { return qkv.index({Slice{}, Slice{}, i}).transpose(1, 2); };
  const Tensor q = head(0);
  const Tensor k = head(1);
  const Tensor v = head(2);
  cases["attention 12x128x64 causal"] = {
      [=] { static_cast<void>(scaled_dot_product_attention(q, k, v, {.causal = true})); },
      4.0 * 12 * 128 * 128 * 64, "GFLOP/s"};
  const Tensor scores = randn({1536, 1024}, generator());
  cases["softmax 1536x1024"] = {[=] { static_cast<void>(softmax(scores)); }, 2.0 * 1536 * 1024 * 4, "GB/s"};
  const Tensor hidden = randn({1024, 768}, generator());
  const Tensor gamma = randn({768}, generator());
  cases["layer_norm 1024x768"] = {[=] { static_cast<void>(layer_norm(hidden, {768}, gamma, gamma)); },
                                  2.0 * 1024 * 768 * 4, "GB/s"};
  cases["gelu 1024x768"] = {[=] { static_cast<void>(gelu(hidden)); }, 2.0 * 1024 * 768 * 4, "GB/s"};
  add_other_dtypes(cases);
  cases["add 1024x768"] = {[=] { static_cast<void>(add(hidden, hidden)); }, 3.0 * 1024 * 768 * 4, "GB/s"};
  return cases;
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  return ballast::bench::main_of(argc, argv, ballast::all_cases);
}
