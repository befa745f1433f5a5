// SPDX-License-Identifier: Apache-2.0
// Operations at the sizes of ResNet-50, MobileNet and GPT-2. Alone it prints a table; with --serve it times
// the case named on each line it reads, so that bench/run.py can take turns with a peer.
//   ops_bench [--threads N] [--serve]
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

Cases all_cases() {
  Cases cases;
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
  cases["add 1024x768"] = {[=] { static_cast<void>(add(hidden, hidden)); }, 3.0 * 1024 * 768 * 4, "GB/s"};
  return cases;
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  return ballast::bench::main_of(argc, argv, ballast::all_cases);
}
