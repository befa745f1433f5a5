// SPDX-License-Identifier: Apache-2.0
// For machines without PyTorch: weights and inputs by a fixed rule, so that PyTorch's outputs for them can be
// kept (make.py --keep) where the weights themselves, half a gigabyte, could not.
//   write_case MODEL SOURCE_FOLDER OUT_FOLDER
// writes MODEL.pt and MODEL_case.pt; the latter with the outputs in SOURCE_FOLDER/outputs.pt, if they are
// there.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <string>

#include "ballast/load_file.h"
#include "bert.h"
#include "gpt2.h"
#include "lstm_tagger.h"
#include "mobilenet_v2.h"
#include "resnet.h"
#include "unet.h"
#include "vit_b_16.h"

namespace {

using ballast::DType;
using ballast::LayerKind;
using ballast::Shape;
using ballast::Tensor;

Tensor uniform(const Shape& shape, double low, double high, ballast::Generator& generator) {
  return ballast::rand(shape, generator) * (high - low) + low;
}

Tensor integers(const Shape& shape, std::int64_t below, ballast::Generator& generator) {
  return uniform(shape, 0, static_cast<double>(below), generator).to(DType::i64);
}

/// Numbers that neither grow nor fade on their way through the layers.
Tensor numbers_for(std::string_view path, const Tensor& tensor, LayerKind kind,
                   ballast::Generator& generator) {
  const Shape& shape = tensor.shape();
  if (tensor.dtype() != DType::f32) return Tensor::zeros(tensor.dtype(), shape);
  if (path.ends_with("gamma") || path.ends_with("running_var")) return uniform(shape, 0.5, 1.5, generator);
  if (shape.size() < 2) return uniform(shape, -0.1, 0.1, generator);
  if (kind == LayerKind::embedding) return uniform(shape, -0.5, 0.5, generator);
  const std::int64_t inputs = shape.size() == 2 ? shape[0] : tensor.numel() / shape[0];
  const double bound = std::sqrt(3 / static_cast<double>(inputs));
  return uniform(shape, -bound, bound, generator);
}

struct Output {
  std::string model;
  std::filesystem::path source;
  std::filesystem::path folder;
  ballast::Checkpoint inputs = {};
  bool written = false;

  template <class Model>
  void write(Model net) {
    ballast::Generator generator(1);
    ballast::for_each_tensor(net, [&](std::string_view path, Tensor& tensor, LayerKind kind) {
      tensor = numbers_for(path, tensor, kind, generator);
    });
    if constexpr (std::is_same_v<Model, models::Gpt2>) net.lm_head.weight = net.transformer.wte.weight.t();
    ballast::save(net, folder / (model + ".pt"), {.overwrite = true});
    if (std::filesystem::exists(source / "outputs.pt")) add_outputs();
    ballast::save(inputs, folder / (model + "_case.pt"), {.overwrite = true});
    written = true;
  }

  void add_outputs() {
    const ballast::Checkpoint kept = ballast::open(source / "outputs.pt");
    for (const char* what : {"tokens", "logits"}) {
      const std::string name = model + "." + what;
      if (kept.contains(name)) inputs.add(what, kept.tensor(name));
    }
  }
};

void write_texts(Output& out, ballast::Generator& random) {
  if (out.model == "gpt2") {
    const auto config = ballast::load_config<models::Gpt2Config>(out.source / "gpt2.json");
    out.inputs.add("prompt", integers({1, 8}, config.vocab_size, random));
    out.write(models::Gpt2(config));
  } else if (out.model == "bert") {
    const auto config = ballast::load_config<models::BertConfig>(out.source / "bert.json");
    out.inputs.add("tokens", integers({2, 12}, config.vocab_size, random));
    out.inputs.add("types", integers({2, 12}, config.type_vocab_size, random));
    const Tensor lengths = Tensor::from<std::int64_t>({12, 8}, {2, 1});
    out.inputs.add("words", ballast::lt(ballast::arange(0, 12), lengths));
    out.write(models::BertForSequenceClassification::make(config));
  } else if (out.model == "lstm_tagger") {
    out.inputs.add("words", integers({2, 10}, 100, random));
    out.write(models::LstmTagger::make(100, 32, 24, 7));
  }
}

void write_images(Output& out, ballast::Generator& random) {
  const std::int64_t size = out.model == "unet" ? 32 : 224;
  out.inputs.add("images", uniform({1, 3, size, size}, -1, 1, random));
  if (out.model == "resnet18") out.write(models::ResNet18());
  if (out.model == "resnet50") out.write(models::ResNet50());
  if (out.model == "mobilenet_v2") out.write(models::MobileNetV2());
  if (out.model == "vit_b_16") out.write(models::VitB16());
  if (out.model == "unet") out.write(models::UNet::make(3, 4, 8, 3));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: write_case MODEL SOURCE_FOLDER OUT_FOLDER\n";
    return 2;
  }
  Output out{argv[1], argv[2], argv[3]};
  std::filesystem::create_directories(out.folder);
  ballast::Generator random(2);
  if (out.model == "gpt2" || out.model == "bert" || out.model == "lstm_tagger")
    write_texts(out, random);
  else
    write_images(out, random);
  if (out.written) return 0;
  std::cerr << "no such model: " << out.model << '\n';
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
