// SPDX-License-Identifier: Apache-2.0
// Keys and shapes of well-known models (tests/fixtures/models), as checkpoints without data.
#pragma once

#include <simdjson.h>

#include <string>

#include "ballast/checkpoint.h"

namespace ballast::testing_kit {

inline Checkpoint keys_of(const std::string& folder, const std::string& name) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load(folder + "/fixtures/models/" + name + ".json");
  Checkpoint checkpoint;
  checkpoint.path = name + ".pt";
  for (const simdjson::dom::element tensor : all["tensors"].get_array()) {
    Shape shape;
    for (const std::int64_t size : tensor["shape"].get_array()) shape.push_back(size);
    checkpoint.add(std::string_view(tensor["name"]),
                   Tensor(*dtype_from_code(std::string_view(tensor["dtype"])), shape));
  }
  return checkpoint;
}

/// Every kind of layer, and names C++ does not have.
inline Checkpoint zoo_keys() {
  Checkpoint zoo;
  zoo.path = "zoo.pt";
  const auto add = [&](const char* name, Shape shape, DType dtype = DType::f32) {
    zoo.add(name, Tensor(dtype, std::move(shape)));
  };
  for (const char* part : {"weight", "bias"}) {
    const bool weight = part[0] == 'w';
    const auto at = [&](const char* prefix) { return std::string(prefix) + "." + part; };
    add(at("conv1d").c_str(), weight ? Shape{4, 2, 3} : Shape{4});
    add(at("conv3d").c_str(), weight ? Shape{4, 2, 3, 3, 3} : Shape{4});
    add(at("up.deconv").c_str(), weight ? Shape{4, 6, 2, 2} : Shape{6});
    add(at("class").c_str(), weight ? Shape{3, 4} : Shape{3});
    add(at("conv1D_like").c_str(), weight ? Shape{4, 12} : Shape{12});
    add(at("attn.out_proj").c_str(), weight ? Shape{4, 4} : Shape{4});
  }
  add("attn.in_proj_weight", {12, 4});
  add("attn.in_proj_bias", {12});
  for (const char* suffix : {"_l0", "_l0_reverse", "_l1", "_l1_reverse"}) {
    const std::int64_t input = suffix[2] == '0' ? 3 : 10;
    add(("lstm.weight_ih" + std::string(suffix)).c_str(), {20, input});
    add(("lstm.weight_hh" + std::string(suffix)).c_str(), {20, 5});
    add(("lstm.bias_ih" + std::string(suffix)).c_str(), {20});
    add(("lstm.bias_hh" + std::string(suffix)).c_str(), {20});
  }
  add("gru.weight_ih_l0", {15, 3});
  add("gru.weight_hh_l0", {15, 5});
  add("embed_tokens.weight", {7, 3});
  add("norm.weight", {3});
  add("prelu.weight", {1});
  add("mask", {2, 2}, DType::boolean);
  add("ids", {2}, DType::i64);
  add("a-b.c d", {1});
  add("x_.y", {1});
  add("both", {1});
  add("both.inner", {2});
  add("model.model.model", {1});
  add("Conv.weight", {2, 2});
  add("seq.0.weight", {2, 2});
  add("seq.3.block.w", {2, 2});
  add("sparse.999.w", {1});
  add("one.0.weight", {2, 3});
  add("table.0", {2});
  add("table.1", {2});
  return zoo;
}

/// Keywords, macros, names of our own, names that meet a type's, and segments that are empty or deep.
inline Checkpoint odd_keys() {
  Checkpoint odd;
  odd.path = "odd.pt";
  const auto add = [&](const std::string& name, Shape shape = {1}) {
    odd.add(name, Tensor::zeros(DType::f32, shape));
  };
  for (const char* word :
       {"class",  "default", "new",      "co_await", "constexpr", "static_assert", "thread_local",
        "xor_eq", "this",    "template", "linux",    "unix",      "errno",         "assert",
        "NULL",   "EOF",     "NAN",      "INFINITY", "FILE",      "stdin"}) {
    add(std::string(word) + ".weight", {2, 3});
    add("inside." + std::string(word));
  }
  for (const char* word : {"nn", "ballast", "std", "vector", "Tensor", "Model", "model", "Modelx"})
    add(std::string(word) + ".own");
  add("Block");  // a tensor, and a type by that name from the next key
  add("block.a.b");
  add("blocks.0.c");
  add("blocks.1.c");
  for (const char* name : {"a..b", ".lead", "trail.", "two..", "dots...", "0", "0.1", "7.w", "007.w", "-1.w"})
    add(name);
  for (const char* name :
       {"sp ace.w", "tab\t.w", "quote\".w", "back\\slash.w", "caf\xC3\xA9.w", "what?\?/.w", "new\nline.w",
        "trailing_.w", "__double.w", "_Upper.w", "_under.w", "a/b/c", "x:0", "$.w"})
    add(name);
  std::string deep = "deep";
  for (int i = 0; i < 80; ++i) deep += ".d";
  add(deep);
  for (int i = 0; i < 70; ++i) add("wide.w" + std::to_string(i));
  for (int i = 0; i < 3; ++i) {  // vectors of sequences, of vectors, of layers, of tensors
    const std::string at = std::to_string(i);
    add("towers." + at + ".0.weight", {2, 2});
    add("towers." + at + ".2.weight", {2, 2});
    add("grid." + at + ".0.norm.weight", {4});
    add("grid." + at + ".1.norm.weight", {4});
    add("heads." + at + ".weight", {3, 2});
    add("heads." + at + ".bias", {3});
    add("lists." + at + ".0", {3});
    add("lists." + at + ".1", {3});
  }
  add("empty.weight", {0, 4});
  // Almost a layer: the shapes do not fit together.
  add("lstm.weight_ih_l0", {8, 3});
  add("lstm.weight_hh_l0", {8, 2});
  add("lstm.bias_ih_l0", {8});
  add("attn.in_proj_weight", {12, 4});
  add("attn.out_proj.weight", {4, 5});
  add("bn.running_mean", {4});
  add("bn.running_var", {5});
  return odd;
}

}  // namespace ballast::testing_kit
