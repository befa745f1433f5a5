// SPDX-License-Identifier: Apache-2.0
// Every format puts tensors at other bytes, in other orders of dimensions, and makes them in other ways; the
// model they are loaded into gives one answer.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/record.h"
#include "base/scratch.h"
#include "ops/cases.h"

namespace ballast {
namespace {

struct Mixed {
  nn::Embedding embed{11, 6};
  nn::LSTM lstm{6, 5, {.batch_first = true, .bidirectional = true}};
  nn::MultiheadAttention attention{10, 2, {.batch_first = true}};
  nn::LayerNorm norm{10};
  nn::Conv2d conv{1, 3, 3, {.padding = 1}};
  nn::BatchNorm2d scale{3};
  nn::ConvTranspose2d up{3, 2, 2, {.stride = 2}};
  nn::Linear wide{160, 150};  // worth packing from a few rows on
  nn::Linear narrow{150, 7};  // not worth it
  nn::Bilinear pair{7, 7, 3};

  [[nodiscard]] Tensor forward(const Tensor& words) const {
    const Tensor read = lstm.forward(embed.forward(words)).output;             // [batch, 4, 10]
    const Tensor seen = norm.forward(attention.forward(read)).unsqueeze(1);    // [batch, 1, 4, 10]
    const Tensor image = up.forward(relu(scale.forward(conv.forward(seen))));  // [batch, 2, 8, 20]
    const Tensor row = flatten(max_pool(image, {1, 2}));                       // [batch, 160]
    const Tensor last = narrow.forward(wide.forward(row, Activation::Kind::gelu));
    return pair.forward(last, last);
  }
};

Tensor words_for(std::int64_t batch) {
  Tensor words = Tensor::empty(DType::i64, {batch, 4});
  std::int64_t next = 3;
  for (std::int64_t& word : words.mutable_span<std::int64_t>()) word = next = (next * 7 + 5) % 11;
  return words;
}

class FormatForward : public Scratch {
 protected:
  FormatForward() {
    init(model_, 5);
    for (std::int64_t batch = 1; batch <= 9; ++batch) answers_.push_back(model_.forward(words_for(batch)));
  }

  // Some sizes twice: what one prepared must not serve another.
  void expect_same_answers(const std::string& file, std::initializer_list<std::int64_t> batches) {
    SCOPED_TRACE(file);
    Mixed loaded;
    load(loaded, path(file), {.unused = OnUnused::error});
    for (const std::int64_t batch : batches) {
      const Tensor& answer = answers_[static_cast<std::size_t>(batch - 1)];
      EXPECT_LE(ops_tests::error_of(loaded.forward(words_for(batch)), answer), 1e-6) << "batch " << batch;
    }
  }

  std::vector<Tensor> answers_;  // of batch 1, 2, …
  Mixed model_;
};

TEST_F(FormatForward, EveryFormatGivesTheSameAnswersAtBatch1To9) {
  for (const Format format : writable_formats()) {
    if (format == formats::npy || format == formats::record) continue;  // one tensor only; below
    const std::string file = "model." + std::string(format.name());
    save(to_checkpoint(model_), path(file), {.format = format});
    expect_same_answers(file, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 4});
  }
  save_record(model_, path("model.record"));
  expect_same_answers("model.record", {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 4});
  std::filesystem::create_directories(path("shards"));
  const SavedShards shards =
      save_shards(to_checkpoint(model_), path("shards/model.safetensors"), {.shard_bytes = 20'000});
  EXPECT_GT(shards.files.size(), 1U);
  expect_same_answers("shards", {1, 4, 1});
}

TEST_F(FormatForward, SafetensorsDataAtEveryByteGivesTheSameAnswers) {
  save(to_checkpoint(model_), path("padded.safetensors"));
  const std::string padded = content(path("padded.safetensors"));
  std::uint64_t length = 0;
  std::memcpy(&length, padded.data(), sizeof length);
  for (std::uint64_t more = 1; more < 16; ++more) {
    const std::uint64_t longer = length + more;
    std::string moved(sizeof longer, '\0');
    std::memcpy(moved.data(), &longer, sizeof longer);
    moved += padded.substr(8, length) + std::string(more, ' ') + padded.substr(8 + length);
    const std::string file = "moved" + std::to_string(more) + ".safetensors";
    write(path(file), moved);
    expect_same_answers(file, {1, 4, 3, 1});
  }
}

}  // namespace
}  // namespace ballast
