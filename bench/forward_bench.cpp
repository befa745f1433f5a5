// SPDX-License-Identifier: Apache-2.0
// Whole models with drawn weights, as a program would run them: loaded, fused, called again and again.
//   forward_bench [--threads N] [--callers N] [--busy] [--seconds S] [--serve] [CASE…]
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../examples/models/bert.h"
#include "../examples/models/gpt2.h"
#include "../examples/models/lstm_tagger.h"
#include "../examples/models/mobilenet_v2.h"
#include "../examples/models/resnet.h"
#include "../examples/models/unet.h"
#include "../examples/models/vit_b_16.h"
#include "ballast/module.h"
#include "ballast/ops.h"
#include "serve.h"

namespace ballast {
namespace {

using bench::Cases;

/// The small network of PyTorch's MNIST example.
struct MnistNet {
  nn::Sequential<nn::Conv2d, nn::ReLU, nn::Conv2d, nn::ReLU, nn::MaxPool2d, nn::Flatten> features{
      {1, 32, 3}, {}, {32, 64, 3}, {}, {2}, {}};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear, nn::LogSoftmax> head{{9216, 128}, {}, {128, 10}, {}};

  Tensor forward(const Tensor& x) const { return head.forward(features.forward(x)); }
};

Tensor random(const Shape& shape) {
  static Generator generator(1);
  return randn(shape, generator);
}

// Weights as they lie in a .pt file: a Linear's is [out, in], seen through its transpose.
template <class Model>
Model made(Model model = Model()) {
  init(model);
  for_each_tensor(model, [](std::string_view path, Tensor& tensor, LayerKind kind) {
    const bool linear = kind == LayerKind::linear || kind == LayerKind::multihead_attention;
    if (linear && path.ends_with("weight")) tensor = tensor.t().contiguous().t();
  });
  return model;
}

template <class Model>
Model fused() {
  auto model = made<Model>();
  fuse(model);
  return model;
}

models::Gpt2 gpt2() {
  auto model = made<models::Gpt2>();
  model.lm_head.weight = model.transformer.wte.weight.t();
  return model;
}

// Made when it is first run, by whoever comes first: a case that is not asked for costs nothing.
template <class Make>
class Lazy {
 public:
  explicit Lazy(Make make) : make_(std::move(make)) {}

  const auto& operator*() {
    std::call_once(made_, [this] { model_.emplace(make_()); });
    return *model_;
  }

 private:
  Make make_;
  std::once_flag made_;
  std::optional<std::invoke_result_t<Make>> model_;
};

template <class Make>
auto lazy(Make make) {
  return std::make_shared<Lazy<Make>>(std::move(make));
}

void add(Cases& cases, const std::string& name, const auto& model, const Shape& input) {
  // data(): whoever reads the result wants it row-major.
  cases[name] = {[model, x = random(input)] { static_cast<void>((**model).forward(x).data()); }};
}

Tensor tokens(std::int64_t count, std::int64_t batch = 1) {
  return arange(0, count).reshape({1, count}).expand({batch, count});
}

Cases all_cases() {
  Cases cases;
  const auto resnet = lazy(fused<models::ResNet50>);
  add(cases, "ResNet-50, batch 1", resnet, {1, 3, 224, 224});
  add(cases, "ResNet-50, batch 8", resnet, {8, 3, 224, 224});
  add(cases, "ResNet-50, batch 1, not fused", lazy([] { return made<models::ResNet50>(); }),
      {1, 3, 224, 224});
  const auto resnet18 = lazy(fused<models::ResNet18>);
  add(cases, "ResNet-18, batch 1", resnet18, {1, 3, 224, 224});
  add(cases, "ResNet-18, batch 8", resnet18, {8, 3, 224, 224});
  const auto mobilenet = lazy(fused<models::MobileNetV2>);
  add(cases, "MobileNet-v2, batch 1", mobilenet, {1, 3, 224, 224});
  add(cases, "MobileNet-v2, batch 8", mobilenet, {8, 3, 224, 224});
  const auto bert = lazy([] { return made(models::BertForSequenceClassification::make({})); });
  cases["BERT base, 128 tokens"] = {
      [bert, types = full({1, 128}, 0, DType::i64), words = full({1, 128}, 1, DType::boolean)] {
        static_cast<void>((**bert).forward(tokens(128), types, words).data());
      }};
  const auto tagger = lazy([] { return made(models::LstmTagger::make(10000, 128, 256, 32)); });
  for (const std::int64_t batch : {1, 8}) {
    const std::string name = "LSTM tagger, 64 words";
    cases[batch == 1 ? name : name + ", batch 8"] = {
        [tagger, batch] { static_cast<void>((**tagger).forward(tokens(64, batch)).data()); }};
  }
  const auto unet = lazy([] {
    auto net = made(models::UNet::make(3, 2, 32, 4));
    fuse(net);
    return net;
  });
  add(cases, "U-Net, 256 x 256, batch 1", unet, {1, 3, 256, 256});
  add(cases, "U-Net, 256 x 256, batch 8", unet, {8, 3, 256, 256});
  add(cases, "ViT-B/16, batch 1", lazy([] { return made<models::VitB16>(); }), {1, 3, 224, 224});
  const auto gpt = lazy(gpt2);
  cases["GPT-2 small, prefill 128"] = {[gpt] { static_cast<void>((**gpt).forward(tokens(128)).data()); }};
  for (const std::int64_t batch : {1, 8}) {
    const auto seen = lazy([gpt, batch] {
      std::vector<nn::KVCache> cache;
      static_cast<void>((**gpt).forward(tokens(128, batch), &cache));
      return cache;
    });
    const std::string name = "GPT-2 small, one token after 128";
    cases[batch == 1 ? name : name + ", batch 8"] = {[gpt, seen, batch] {
      thread_local std::vector<nn::KVCache> cache;  // of this case's batch, and of every caller's own
      thread_local std::int64_t held = 0;
      if (std::exchange(held, batch) != batch) cache = **seen;
      for (nn::KVCache& each : cache) each.truncate(128);
      static_cast<void>((**gpt).forward(tokens(1, batch), &cache).data());
    }};
  }
  const auto mnist = lazy([] { return made<MnistNet>(); });
  add(cases, "MNIST CNN, batch 1", mnist, {1, 1, 28, 28});
  add(cases, "MNIST CNN, batch 64", mnist, {64, 1, 28, 28});
  return cases;
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  return ballast::bench::main_of(argc, argv, ballast::all_cases);
}
