// SPDX-License-Identifier: Apache-2.0
#include "model/scaffold_layers.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/fail.h"

namespace ballast {
namespace {

class Guess {
 public:
  Guess(std::string_view key, const std::map<std::string, Tensor>& tensors) : key_(key), tensors_(tensors) {}

  std::optional<GuessedLayer> run() {
    for (const auto attempt : {&Guess::batch_norm, &Guess::attention, &Guess::recurrent, &Guess::by_weight}) {
      explained_.clear();
      auto layer = (this->*attempt)();
      if (layer && explained_.size() == tensors_.size()) return layer;
    }
    return std::nullopt;
  }

 private:
  // A tensor of this rank, noted as explained; null when there is none.
  const Shape* take(const std::string& name, std::size_t rank) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.rank() != rank) return nullptr;
    explained_.insert(name);
    return &found->second.shape();
  }

  [[nodiscard]] bool named(std::initializer_list<std::string_view> words) const {
    std::string lower(key_);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return lower.find(word) != lower.npos; });
  }

  std::optional<GuessedLayer> batch_norm() {
    const Shape* mean = take("running_mean", 1);
    if (mean == nullptr || take("running_var", 1) == nullptr) return std::nullopt;
    static_cast<void>(take("num_batches_tracked", 0));
    const bool affine = take("weight", 1) != nullptr && take("bias", 1) != nullptr;
    return GuessedLayer{"nn::BatchNorm2d",
                        fmt::format("{}{}", (*mean)[0], affine ? "" : ", {.affine = false}"), ""};
  }

  std::optional<GuessedLayer> attention() {
    const Shape* packed = take("in_proj_weight", 2);
    if (packed == nullptr || (*packed)[0] != 3 * (*packed)[1] || take("out_proj.weight", 2) == nullptr)
      return std::nullopt;
    const bool bias = take("in_proj_bias", 1) != nullptr && take("out_proj.bias", 1) != nullptr;
    const bool extra = take("bias_k", 3) != nullptr && take("bias_v", 3) != nullptr;
    std::string options;
    if (!bias) options += ".bias = false";
    if (extra) options += std::string(options.empty() ? "" : ", ") + ".add_bias_kv = true";
    return GuessedLayer{"nn::MultiheadAttention",
                        fmt::format("{}, 1{}", (*packed)[1], options.empty() ? "" : ", {" + options + "}"),
                        "the number of heads is not in the file"};
  }

  std::optional<GuessedLayer> recurrent() {
    const Shape* input = take("weight_ih_l0", 2);
    const Shape* hidden = take("weight_hh_l0", 2);
    if (input == nullptr || hidden == nullptr) return std::nullopt;
    const Shape* projection = take("weight_hr_l0", 2);
    const std::int64_t size = projection != nullptr ? (*projection)[1] : (*hidden)[1];
    if (size == 0 || (*hidden)[0] % size != 0) return std::nullopt;
    const std::int64_t gates = (*hidden)[0] / size;
    const char* type = gates == 4 ? "nn::LSTM" : gates == 3 ? "nn::GRU" : gates == 1 ? "nn::RNN" : nullptr;
    if (type == nullptr) return std::nullopt;
    std::int64_t layers = 1;
    while (tensors_.contains(fmt::format("weight_ih_l{}", layers))) ++layers;
    const bool both = tensors_.contains("weight_ih_l0_reverse");
    const bool bias = tensors_.contains("bias_ih_l0");
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      for (const char* direction : {"", "_reverse"}) {
        for (const char* name : {"weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh"})
          take_any(fmt::format("{}_l{}{}", name, layer, direction));
      }
    }
    std::string options;
    const auto option = [&](bool wanted, const std::string& text) {
      if (wanted) options += (options.empty() ? "" : ", ") + text;
    };
    option(layers > 1, fmt::format(".num_layers = {}", layers));
    option(!bias, ".bias = false");
    option(both, ".bidirectional = true");
    option(projection != nullptr,
           fmt::format(".proj_size = {}", projection != nullptr ? (*projection)[0] : 0));
    return GuessedLayer{
        type, fmt::format("{}, {}{}", (*input)[1], size, options.empty() ? "" : ", {" + options + "}"), ""};
  }

  void take_any(const std::string& name) {
    if (tensors_.contains(name)) explained_.insert(name);
  }

  std::optional<GuessedLayer> by_weight() {
    const auto weight = tensors_.find("weight");
    if (weight == tensors_.end()) return std::nullopt;
    explained_.insert("weight");
    const Shape& shape = weight->second.shape();
    const Shape* bias = take("bias", 1);
    switch (shape.size()) {
      case 1:
        return vector_weight(shape, bias);
      case 2:
        return matrix_weight(shape, bias);
      case 3:
      case 4:
      case 5:
        return convolution(shape, bias);
      default:
        return std::nullopt;
    }
  }

  std::optional<GuessedLayer> vector_weight(const Shape& shape, const Shape* bias) {
    if (bias != nullptr && *bias != shape) return std::nullopt;
    if (bias != nullptr)
      return GuessedLayer{"nn::LayerNorm", std::to_string(shape[0]),
                          named({"group", "gn"}) ? "or a GroupNorm?" : ""};
    if (named({"prelu", "act"})) return GuessedLayer{"nn::PReLU", std::to_string(shape[0]), ""};
    return GuessedLayer{"nn::RMSNorm", std::to_string(shape[0]), ""};
  }

  std::optional<GuessedLayer> matrix_weight(const Shape& shape, const Shape* bias) {
    if (bias == nullptr && named({"emb", "wte", "wpe", "token", "vocab"}))
      return GuessedLayer{"nn::Embedding", fmt::format("{}, {}", shape[0], shape[1]), ""};
    if (bias != nullptr && (*bias)[0] != shape[0])
      return std::nullopt;  // stored [in, out], like GPT-2's: not PyTorch's Linear
    return GuessedLayer{
        "nn::Linear", fmt::format("{}, {}{}", shape[1], shape[0], bias != nullptr ? "" : ", {.bias = false}"),
        ""};
  }

  std::optional<GuessedLayer> convolution(const Shape& shape, const Shape* bias) {
    const bool transposed = bias != nullptr ? (*bias)[0] == shape[1] && ((*bias)[0] != shape[0] ||
                                                                         named({"up", "deconv", "transpose"}))
                                            : named({"upconv", "deconv", "transpose"});
    if (bias != nullptr && !transposed && (*bias)[0] != shape[0]) return std::nullopt;
    std::string kernel;
    for (std::size_t i = 2; i < shape.size(); ++i)
      kernel += (kernel.empty() ? "" : ", ") + std::to_string(shape[i]);
    if (shape.size() > 3) kernel = "{" + kernel + "}";
    const std::int64_t in = transposed ? shape[0] : shape[1];
    const std::int64_t out = transposed ? shape[1] : shape[0];
    return GuessedLayer{
        fmt::format("nn::Conv{}{}d", transposed ? "Transpose" : "", shape.size() - 2),
        fmt::format("{}, {}, {}{}", in, out, kernel, bias != nullptr ? "" : ", {.bias = false}"),
        "stride, padding and groups are not in the file"};
  }

  std::string_view key_;
  const std::map<std::string, Tensor>& tensors_;
  std::set<std::string> explained_;
};

}  // namespace

std::optional<GuessedLayer> guess_layer(std::string_view key, const std::map<std::string, Tensor>& tensors) {
  if (std::any_of(tensors.begin(), tensors.end(), [](const auto& item) {
        return !is_floating(item.second.dtype()) && item.first != "num_batches_tracked";
      }))
    return std::nullopt;
  return Guess(key, tensors).run();
}

}  // namespace ballast
