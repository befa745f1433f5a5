// SPDX-License-Identifier: Apache-2.0
// The first of the writer's two passes over a tree: everything in it can be written, its tensors are known,
// and what appears twice is known too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "formats/torch/tensor_pickle.h"
#include "formats/torch/tree_frame.h"

namespace ballast::torch {

class TreeSurvey {
 public:
  TreeSurvey(const FormOptions& options, TensorPickler& tensors) : options_(options), tensors_(tensors) {}

  /// Errc::not_representable names the dotted path of what cannot be written.
  void run(const Value& root);

  [[nodiscard]] bool is_shared(const Value& value) const { return shared_.contains(identity(value)); }

  [[nodiscard]] bool is_repeated(std::string_view text) const {
    const auto found = strings_.find(text);
    return found != strings_.end() && found->second;
  }

 private:
  void visit(const Value& given, bool must_hash);
  void note_text(const Value& value, Form form);
  void check_leaf(const Value& value, Form form) const;
  void check_attributes(const Value& attributes) const;
  [[nodiscard]] std::string path() const;

  FormOptions options_;
  TensorPickler& tensors_;
  std::vector<Frame> stack_;
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_set<std::uint64_t> shared_;
  std::unordered_set<std::uint64_t> open_;  // tuples and sets being surveyed
  NameViewMap<bool> strings_;
};

}  // namespace ballast::torch
