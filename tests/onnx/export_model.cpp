// SPDX-License-Identifier: Apache-2.0
// export_onnx_model MODEL FOLDER: loads FOLDER/MODEL.pt into a model of examples/models and writes
// FOLDER/MODEL.<opset>.onnx at opset 11, 13 and 17. whole_models.py compares them with PyTorch.
#include <iostream>
#include <string>

#include "../examples/models/bert.h"
#include "../examples/models/gpt2.h"
#include "../examples/models/lstm_tagger.h"
#include "../examples/models/mobilenet_v2.h"
#include "../examples/models/resnet.h"
#include "../examples/models/unet.h"
#include "../examples/models/vit_b_16.h"
#include "ballast/load_file.h"
#include "ballast/onnx.h"

namespace {

using ballast::DType;
using ballast::InputSpec;

const InputSpec kImage{"images", {"batch", 3, 224, 224}};
const InputSpec kTokens{"tokens", {"batch", "seq"}, DType::i64};

struct Job {
  std::string model;
  std::string folder;
  bool done = false;

  [[nodiscard]] std::string weights() const { return folder + "/" + model + ".pt"; }

  template <class Model>
  void run(Model net, std::vector<InputSpec> inputs, ballast::LoadOptions options = {}) {
    ballast::load(net, weights(), options);
    const ballast::Graph graph = ballast::trace(net, inputs);
    for (const int opset : {11, 13, 17}) {
      const std::string path = folder + "/" + model + "." + std::to_string(opset) + ".onnx";
      ballast::onnx::save(net, graph, path,
                          {.inputs = inputs, .outputs = {"logits"}, .opset = opset, .overwrite = true});
    }
    done = true;
  }
};

void run_images(Job& job) {
  if (job.model == "resnet18") job.run(models::ResNet18{}, {kImage});
  if (job.model == "resnet50") job.run(models::ResNet50{}, {kImage});
  if (job.model == "mobilenet_v2") job.run(models::MobileNetV2{}, {kImage});
  if (job.model == "vit_b_16") job.run(models::VitB16{}, {kImage}, models::VitB16::load_options());
  if (job.model == "unet")
    job.run(models::UNet::make(3, 4, 8, 3), {{"images", {"batch", 3, "height", "width"}}});
}

void run_texts(Job& job, const std::string& configs) {
  if (job.model == "gpt2") {
    const bool own_head = ballast::open(job.weights()).contains("lm_head.weight");
    job.run(models::Gpt2(ballast::load_config<models::Gpt2Config>(configs + "/gpt2.json")), {kTokens},
            models::Gpt2::load_options(own_head));
  }
  if (job.model == "bert")
    job.run(models::BertForSequenceClassification::make(
                ballast::load_config<models::BertConfig>(configs + "/bert.json")),
            {kTokens, {"types", {"batch", "seq"}, DType::i64}, {"words", {"batch", "seq"}, DType::boolean}});
  if (job.model == "lstm_tagger")
    job.run(models::LstmTagger::make(100, 32, 24, 7), {{"words", {"batch", "seq"}, DType::i64}});
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: export_onnx_model MODEL FOLDER CONFIG_FOLDER\n";
    return 2;
  }
  Job job{argv[1], argv[2]};
  run_images(job);
  run_texts(job, argv[3]);
  if (!job.done) std::cerr << "no model " << job.model << '\n';
  return job.done ? 0 : 2;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
