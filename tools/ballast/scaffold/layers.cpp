// SPDX-License-Identifier: Apache-2.0
#include "scaffold/layers.h"

#include <algorithm>
#include <set>

#include "fail.h"
#include "scaffold/names.h"

namespace tool {
namespace {

class Guess {
 public:
  Guess(std::string_view key, const std::map<std::string, ballast::Tensor>& tensors, Lying around)
      : key_(key), tensors_(tensors), around_(around) {}

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
  const ballast::Shape* take(const std::string& name, std::size_t rank) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end() || found->second.rank() != rank) return nullptr;
    explained_.insert(name);
    return &found->second.shape();
  }

  [[nodiscard]] bool named(std::initializer_list<std::string_view> words) const {
    const std::string lower = lowered(key_);
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return lower.find(word) != lower.npos; });
  }

  // One of exactly this shape.
  bool take(const std::string& name, const ballast::Shape& shape) {
    const ballast::Shape* found = take(name, shape.size());
    return found != nullptr && *found == shape;
  }

  std::optional<GuessedLayer> batch_norm() {
    const ballast::Shape* mean = take("running_mean", 1);
    if (mean == nullptr || !take("running_var", *mean)) return std::nullopt;
    static_cast<void>(take("num_batches_tracked", ballast::Shape{}));
    const bool affine = tensors_.contains("weight");
    if (affine && !(take("weight", *mean) && take("bias", *mean))) return std::nullopt;
    return GuessedLayer{"nn::BatchNorm2d",
                        fmt::format("{}{}", (*mean)[0], affine ? "" : ", {.affine = false}"), ""};
  }

  std::optional<GuessedLayer> attention() {
    const ballast::Shape* packed = take("in_proj_weight", 2);
    if (packed == nullptr) return std::nullopt;
    const std::int64_t size = (*packed)[1];
    if (*packed != ballast::Shape{3 * size, size} || !take("out_proj.weight", ballast::Shape{size, size}))
      return std::nullopt;
    const bool bias = tensors_.contains("in_proj_bias");
    if (bias &&
        !(take("in_proj_bias", ballast::Shape{3 * size}) && take("out_proj.bias", ballast::Shape{size})))
      return std::nullopt;
    const bool extra = tensors_.contains("bias_k");
    if (extra && !(take("bias_k", ballast::Shape{1, 1, size}) && take("bias_v", ballast::Shape{1, 1, size})))
      return std::nullopt;
    std::string options;
    if (!bias) options += ".bias = false";
    if (extra) options += std::string(options.empty() ? "" : ", ") + ".add_bias_kv = true";
    return GuessedLayer{"nn::MultiheadAttention",
                        fmt::format("{}, 1{}", size, options.empty() ? "" : ", {" + options + "}"),
                        "the number of heads is not in the file"};
  }

  struct Recurrent {
    std::int64_t input = 0;
    std::int64_t hidden = 0;
    std::int64_t projection = 0;  // 0: none
    std::int64_t gates = 0;
    std::int64_t layers = 1;
    bool both = false;
    bool bias = false;

    [[nodiscard]] std::int64_t output() const { return projection > 0 ? projection : hidden; }
  };

  // True when the tensors are exactly those a layer of these sizes has.
  bool take_all(const Recurrent& sizes) {
    for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
      for (const char* direction : {"", "_reverse"}) {
        if (direction[0] != 0 && !sizes.both) continue;
        const auto at = [&](const char* name) { return fmt::format("{}_l{}{}", name, layer, direction); };
        const std::int64_t rows = sizes.gates * sizes.hidden;
        const std::int64_t input = layer == 0 ? sizes.input : sizes.output() * (sizes.both ? 2 : 1);
        if (!take(at("weight_ih"), ballast::Shape{rows, input}) ||
            !take(at("weight_hh"), ballast::Shape{rows, sizes.output()}))
          return false;
        if (sizes.bias &&
            !(take(at("bias_ih"), ballast::Shape{rows}) && take(at("bias_hh"), ballast::Shape{rows})))
          return false;
        if (sizes.projection > 0 && !take(at("weight_hr"), ballast::Shape{sizes.projection, sizes.hidden}))
          return false;
      }
    }
    return true;
  }

  std::optional<GuessedLayer> recurrent() {
    const ballast::Shape* input = take("weight_ih_l0", 2);
    const ballast::Shape* hidden = take("weight_hh_l0", 2);
    if (input == nullptr || hidden == nullptr) return std::nullopt;
    const ballast::Shape* projection = take("weight_hr_l0", 2);
    Recurrent sizes{.input = (*input)[1],
                    .hidden = projection != nullptr ? (*projection)[1] : (*hidden)[1],
                    .projection = projection != nullptr ? (*projection)[0] : 0,
                    .both = tensors_.contains("weight_ih_l0_reverse"),
                    .bias = tensors_.contains("bias_ih_l0")};
    if (sizes.hidden == 0 || (*hidden)[0] % sizes.hidden != 0) return std::nullopt;
    sizes.gates = (*hidden)[0] / sizes.hidden;
    while (tensors_.contains(fmt::format("weight_ih_l{}", sizes.layers))) ++sizes.layers;
    const char* type = sizes.gates == 4   ? "nn::LSTM"
                       : sizes.gates == 3 ? "nn::GRU"
                       : sizes.gates == 1 ? "nn::RNN"
                                          : nullptr;
    const bool projects = sizes.projection > 0;
    if (type == nullptr || (projects && (sizes.gates != 4 || sizes.projection >= sizes.hidden)) ||
        !take_all(sizes))
      return std::nullopt;
    std::string options;
    const auto option = [&](bool wanted, const std::string& text) {
      if (wanted) options += (options.empty() ? "" : ", ") + text;
    };
    option(sizes.layers > 1, fmt::format(".num_layers = {}", sizes.layers));
    option(!sizes.bias, ".bias = false");
    option(sizes.both, ".bidirectional = true");
    option(projects, fmt::format(".proj_size = {}", sizes.projection));
    return GuessedLayer{
        type,
        fmt::format("{}, {}{}", sizes.input, sizes.hidden, options.empty() ? "" : ", {" + options + "}"), ""};
  }

  std::optional<GuessedLayer> by_weight() {
    const auto weight = tensors_.find("weight");
    if (weight == tensors_.end()) return std::nullopt;
    explained_.insert("weight");
    const ballast::Shape& shape = weight->second.shape();
    const ballast::Shape* bias = take("bias", 1);
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

  std::optional<GuessedLayer> vector_weight(const ballast::Shape& shape, const ballast::Shape* bias) {
    if (bias != nullptr && *bias != shape) return std::nullopt;
    if (bias != nullptr)
      return GuessedLayer{"nn::LayerNorm", std::to_string(shape[0]),
                          named({"group", "gn"}) ? "or a GroupNorm?" : ""};
    if (named({"prelu", "act"})) return GuessedLayer{"nn::PReLU", std::to_string(shape[0]), ""};
    return GuessedLayer{"nn::RMSNorm", std::to_string(shape[0]), ""};
  }

  std::optional<GuessedLayer> matrix_weight(const ballast::Shape& shape, const ballast::Shape* bias) {
    if (bias == nullptr && named({"emb", "wte", "wpe", "token", "vocab"}))
      return GuessedLayer{"nn::Embedding", fmt::format("{}, {}", shape[0], shape[1]), ""};
    if (bias != nullptr && (*bias)[0] != shape[0])
      return std::nullopt;  // stored [in, out], like GPT-2's: not PyTorch's Linear
    if (bias != nullptr && shape[0] == shape[1] && around_ != Lying::out_in) return std::nullopt;
    return GuessedLayer{
        "nn::Linear", fmt::format("{}, {}{}", shape[1], shape[0], bias != nullptr ? "" : ", {.bias = false}"),
        ""};
  }

  std::optional<GuessedLayer> convolution(const ballast::Shape& shape, const ballast::Shape* bias) {
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
  const std::map<std::string, ballast::Tensor>& tensors_;
  Lying around_;
  std::set<std::string> explained_;
};

}  // namespace

std::optional<GuessedLayer> guess_layer(std::string_view key,
                                        const std::map<std::string, ballast::Tensor>& tensors, Lying around) {
  if (std::any_of(tensors.begin(), tensors.end(), [](const auto& item) {
        const bool has_values = item.second.numel() > 0;
        return !has_values ||
               (!ballast::is_floating(item.second.dtype()) && item.first != "num_batches_tracked");
      }))
    return std::nullopt;
  return Guess(key, tensors, around).run();
}

}  // namespace tool
