// SPDX-License-Identifier: Apache-2.0
// The second of the writer's two passes over a tree: opcodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/torch/tree_survey.h"

namespace ballast::torch {

inline constexpr std::size_t kBatch = 1000;  // items between two marks, as Python does it

class TreePickler {
 public:
  TreePickler(const FormOptions& options, const TreeSurvey& survey, PickleEmitter& emitter,
              TensorPickler& tensors)
      : options_(options), survey_(survey), out_(emitter), tensors_(tensors) {}

  /// A tree that was surveyed.
  void run(const Value& root);

 private:
  void step();
  void open(const Value& value, Form form);
  void close_batch(Form form);
  void close(const Frame& frame);
  void remember(const Value& value);
  void write(const Value& given);
  void write_leaf(const Value& value, Form form);
  void write_integer(const Value& value);
  void write_string(std::string_view text);
  void write_constant(std::string_view name);
  void write_device(std::string_view text);
  void write_layout(std::string_view text);

  FormOptions options_;
  const TreeSurvey& survey_;
  PickleEmitter& out_;
  TensorPickler& tensors_;
  std::vector<Frame> stack_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
};

}  // namespace ballast::torch
