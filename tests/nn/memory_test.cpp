// SPDX-License-Identifier: Apache-2.0
// What a forward pass that is repeated takes of memory: nothing. Whole models, batches and odd sizes, and
// every allocation of the process counted, whoever asks for it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../examples/models/bert.h"
#include "../../examples/models/gpt2.h"
#include "../../examples/models/lstm_tagger.h"
#include "../../examples/models/mobilenet_v2.h"
#include "../../examples/models/resnet.h"
#include "../../examples/models/unet.h"
#include "../../examples/models/vit_b_16.h"
#include "ballast/module.h"
#include "ballast/ops.h"
#include "ballast/runtime.h"
#include "tensor/pool.h"

#if !defined(BALLAST_SANITIZED)  // which have no pool

namespace ballast {
namespace {

using Forward = std::function<Tensor()>;

Tensor drawn(const Shape& shape) {
  Generator generator(1);
  return randn(shape, generator);
}

Tensor tokens(std::int64_t batch, std::int64_t count) {
  return arange(0, count).reshape({1, count}).expand({batch, count}).contiguous();
}

template <class Model>
std::shared_ptr<Model> made(Model model = Model()) {
  init(model);
  return std::make_shared<Model>(std::move(model));
}

struct Cnn {
  nn::Sequential<nn::Conv2d, nn::ReLU, nn::Conv2d, nn::ReLU, nn::MaxPool2d, nn::Flatten> features{
      {1, 32, 3}, {}, {32, 64, 3}, {}, {2}, {}};
  nn::Sequential<nn::Linear, nn::ReLU, nn::Linear, nn::LogSoftmax> head{{9216, 128}, {}, {128, 10}, {}};

  [[nodiscard]] Tensor forward(const Tensor& x) const { return head.forward(features.forward(x)); }
};

void add_images(std::map<std::string, Forward>& all, const std::string& name, const auto& model,
                std::int64_t channels, const std::vector<std::array<std::int64_t, 3>>& sizes) {
  for (const auto& [batch, height, width] : sizes) {
    const Tensor x = drawn({batch, channels, height, width});
    all[name + " " + to_string(x.shape())] = [model, x] { return model->forward(x).contiguous(); };
  }
}

void add_words(std::map<std::string, Forward>& all, std::int64_t batch, std::int64_t count) {
  const std::string size = " [" + std::to_string(batch) + ", " + std::to_string(count) + "]";
  static const auto bert = made(models::BertForSequenceClassification::make({.vocab_size = 200,
                                                                             .hidden_size = 96,
                                                                             .intermediate_size = 200,
                                                                             .num_hidden_layers = 2,
                                                                             .num_attention_heads = 4}));
  all["BERT" + size] = [words = tokens(batch, count), types = full({batch, count}, 0, DType::i64),
                        mask = full({batch, count}, 1, DType::boolean)] {
    return bert->forward(words, types, mask);
  };
  static const auto tagger = made(models::LstmTagger::make(200, 40, 72, 9));
  all["LSTM tagger" + size] = [words = tokens(batch, count)] { return tagger->forward(words); };
  static const auto gpt =
      made(models::Gpt2({.vocab_size = 211, .n_positions = 128, .n_embd = 96, .n_layer = 2, .n_head = 4}));
  all["GPT-2, prompt" + size] = [words = tokens(batch, count)] { return gpt->forward(words); };
  all["GPT-2, a word after" + size] = [batch, count] {
    thread_local std::map<std::pair<std::int64_t, std::int64_t>, std::vector<nn::KVCache>>
        caches;  // of each caller
    std::vector<nn::KVCache>& cache = caches[{batch, count}];
    if (cache.empty()) static_cast<void>(gpt->forward(tokens(batch, count), &cache));
    for (nn::KVCache& each : cache) each.truncate(count);
    return gpt->forward(tokens(batch, 1), &cache);
  };
}

std::map<std::string, Forward> all_models() {
  std::map<std::string, Forward> all;
  add_images(all, "CNN", made<Cnn>(), 1, {{1, 28, 28}, {8, 28, 28}, {64, 28, 28}});
  for (const bool folded : {false, true}) {
    auto resnet = made<models::ResNet18>();
    auto mobilenet = made<models::MobileNetV2>();
    auto unet = made(models::UNet::make(3, 2, 16, 3));
    if (folded) fuse(*resnet), fuse(*mobilenet), fuse(*unet);
    const std::string suffix = folded ? ", folded" : "";
    add_images(all, "ResNet-18" + suffix, resnet, 3, {{1, 64, 64}, {8, 32, 32}, {3, 61, 47}});
    add_images(all, "MobileNet-v2" + suffix, mobilenet, 3, {{1, 64, 64}, {8, 32, 32}, {3, 61, 47}});
    add_images(all, "U-Net" + suffix, unet, 3, {{1, 64, 64}, {8, 32, 32}, {3, 24, 88}});
  }
  models::VitB16 vit;
  vit.encoder.layers.resize(2);  // as the others: all of its twelve are alike
  add_images(all, "ViT-B/16", made(std::move(vit)), 3, {{1, 224, 224}, {3, 224, 224}});
  const auto deep = made(nn::LSTM{24, 20, {.num_layers = 5, .bidirectional = true}});
  all["LSTM of ten cells"] = [deep, x = drawn({7, 5, 24})] { return deep->forward(x).output; };
  for (const std::int64_t batch : {1, 8, 3})
    for (const std::int64_t count : {16, 37}) add_words(all, batch, count);
  return all;
}

constexpr long kFewPages = 64;  // which malloc gives back and takes again for what is no tensor's

long faults() {
  rusage now{};
  getrusage(RUSAGE_SELF, &now);
  return now.ru_minflt;
}

TEST(Memory, ForwardThatIsRepeatedTakesNoBlockFromTheSystem) {
  const auto models = all_models();
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    for (const auto& [name, forward] : models) {
      for (int i = 0; i < 3; ++i) static_cast<void>(forward());
      const std::uint64_t blocks = heap_blocks();
      long fewest = 1000000;  // the system may take a page away, and threads come and go
      for (int i = 0; i < 2; ++i) {
        const long start = faults();
        static_cast<void>(forward());
        fewest = std::min(fewest, faults() - start);
      }
      EXPECT_EQ(heap_blocks() - blocks, 0U) << name << ", " << threads << " threads";
      EXPECT_LE(fewest, kFewPages) << name << ", " << threads << " threads";
    }
  }
  set_thread_count(before);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Memory, ManyCallersOfEachModelGetTheSameBits) {
  const auto models = all_models();
  const int before = thread_count();
  for (const int threads : {1, 2}) {
    set_thread_count(threads);
    std::map<std::string, Tensor> expected;
    for (const auto& [name, forward] : models) expected[name] = forward().contiguous();
    std::atomic<int> different = 0;
    std::vector<std::thread> callers;
    for (std::size_t caller = 0; caller < 3; ++caller) {
      callers.emplace_back([&, caller] {
        // Each begins elsewhere, so that one model sees several shapes at once.
        auto each = std::next(models.begin(), static_cast<std::ptrdiff_t>(caller * models.size() / 3));
        for (std::size_t i = 0; i < models.size() * 3 / 2; ++i) {
          if (!same_bits(each->second().contiguous(), expected.at(each->first))) ++different;
          if (i % 2 == 1 && ++each == models.end()) each = models.begin();
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    EXPECT_EQ(different, 0) << threads << " threads";
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace ballast

#endif
