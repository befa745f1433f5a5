// SPDX-License-Identifier: Apache-2.0
#include "model/layer_words.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/words.h"

namespace ballast::words {
namespace {

// What people call embeddings and Linears. A name alone decides only where one list has it and the other has
// not, and it is said.
constexpr std::array<std::string_view, 5> kEmbeddingWords = {"emb", "wte", "wpe", "token", "vocab"};
constexpr std::array<std::string_view, 13> kLinearWords = {"linear",     "proj",  "fc",  "dense", "head",
                                                           "classifier", "query", "key", "value", "qkv",
                                                           "mlp",        "to_q",  "gate"};
constexpr std::array<std::string_view, 16> kLinearNames = {
    "q", "k", "v", "o", "wq", "wk", "wv", "wo", "w1", "w2", "w3", "wi", "wi_0", "wi_1", "in", "out"};
// Fields of layers, by which a name that could not be taken apart betrays one.
constexpr std::array<std::string_view, 4> kFields = {"weight", "bias", "gamma", "beta"};
// Matrices of PyTorch's that no table has: of weight norm (old and new) and of recurrent cells.
constexpr std::array<std::string_view, 6> kUnknownMatrices = {"weight_g",  "weight_v",  "original0",
                                                              "original1", "weight_ih", "weight_hh"};
constexpr std::array<std::string_view, 2> kNormWords = {"norm", "ln"};
constexpr std::array<std::string_view, 1> kNormNames = {"rms"};
constexpr std::array<std::string_view, 2> kActivationWords = {"prelu", "act"};

template <std::size_t N>
bool has_word(const std::string& name, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

}  // namespace

std::string called(std::string_view path) {
  for (;;) {
    const std::size_t dot = path.rfind('.');
    const std::string_view last = path.substr(dot == path.npos ? 0 : dot + 1);
    if (dot != path.npos && !last.empty() && all_digits(last)) {
      path = path.substr(0, dot);
      continue;
    }
    return lowered(last);
  }
}

bool say_embedding(const std::string& name) {
  return has_word(name, kEmbeddingWords);
}

bool say_linear(const std::string& name) {
  return has_word(name, kLinearWords) || is_among(kLinearNames, name);
}

bool say_norm(const std::string& name) {
  return has_word(name, kNormWords) || is_among(kNormNames, name);
}

bool say_activation(const std::string& name) {
  return has_word(name, kActivationWords);
}

bool is_field(std::string_view name) {
  return is_among(kFields, name);
}

bool is_unknown_matrix(std::string_view name) {
  return is_among(kUnknownMatrices, name);
}

}  // namespace ballast::words
