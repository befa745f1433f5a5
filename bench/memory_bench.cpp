// SPDX-License-Identifier: Apache-2.0
// What a forward pass takes of memory, in a process of its own: whole models whose weights lie in a mapped
// file.
//   memory_bench save MODEL FILE     drawn weights, under PyTorch's names and layouts; .record: a native
//   record, norms folded memory_bench run MODEL FILE [N]  bytes of the weights, of memory of its own and of
//   files in memory after N passes, the most at any time
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../examples/models/bert.h"
#include "../examples/models/gpt2.h"
#include "../examples/models/resnet.h"
#include "ballast/load.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "ballast/record.h"
#include "ballast/safetensors.h"

namespace ballast {
namespace {

// A line of /proc/self/status, in bytes.
std::uint64_t status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == name + ":" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

Tensor tokens(std::int64_t count) {
  return arange(0, count).reshape({1, count});
}

template <class Model>
void save_drawn(Model model, const std::string& path) {
  init(model);
  if constexpr (std::is_same_v<Model, models::Gpt2>) model.lm_head.weight = model.transformer.wte.weight.t();
  if (!path.ends_with(".record")) return safetensors::save(to_checkpoint(model), path);
  fuse(model);
  save_record(model, path);
}

// `passes` of them: the whole model's forward, or another function of it.
template <class Model, class Forward>
void run(Model model, const std::string& path, int passes, const Forward& forward) {
  const std::uint64_t before = status("RssAnon");
  const std::uint64_t files = status("RssFile");
  load(model, safetensors::open(path));
  if (!path.ends_with(".record")) fuse(model);
  for (int i = 0; i < passes; ++i) forward(model);
  std::cout << std::filesystem::file_size(path) << ' ' << status("RssAnon") - before << ' '
            << status("RssFile") - files << ' ' << status("VmHWM") << '\n';
}

void resnet(const models::ResNet50& model) {
  static_cast<void>(model.forward(full({1, 3, 224, 224}, 0.5)).data());
}

void bert(const models::BertForSequenceClassification& model) {
  static_cast<void>(
      model.forward(tokens(128), full({1, 128}, 0, DType::i64), full({1, 128}, 1, DType::boolean)).data());
}

void prompt(const models::Gpt2& model) {
  static_cast<void>(model.forward(tokens(128)).data());
}

void prompt_and_words(const models::Gpt2& model) {
  std::vector<nn::KVCache> cache;
  static_cast<void>(model.forward(tokens(128), &cache).data());
  for (int i = 0; i < 4; ++i) static_cast<void>(model.forward(tokens(1), &cache).data());
}

template <class Model, class Forward>
int served(const std::string& what, Model model, const std::string& path, int passes,
           const Forward& forward) {
  if (what == "save")
    save_drawn(std::move(model), path);
  else
    run(std::move(model), path, passes, forward);
  return 0;
}

}  // namespace
}  // namespace ballast

int main(int argc, char** argv) {
  using namespace ballast;
  if (argc < 4) return 2;
  const std::string what = argv[1];
  const std::string model = argv[2];
  const std::string path = argv[3];
  const int passes = argc > 4 ? std::atoi(argv[4]) : 3;
  if (model == "ResNet-50") return served(what, models::ResNet50(), path, passes, resnet);
  if (model == "BERT base, 128 tokens")
    return served(what, models::BertForSequenceClassification::make({}), path, passes, bert);
  if (model == "GPT-2 small, prefill 128") return served(what, models::Gpt2(), path, passes, prompt);
  if (model == "GPT-2 small, prefill 128 and words")
    return served(what, models::Gpt2(), path, passes, prompt_and_words);
  return 2;
}
