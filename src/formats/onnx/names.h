// SPDX-License-Identifier: Apache-2.0
// Names of tensors in a file of several graphs. A tensor of the main graph is called what it is called; one
// of a subgraph has the way to it in front: the node, the attribute, then its own name, with slashes between.
#pragma once

#include <cstdint>
#include <string>

#include "base/hash.h"

namespace ballast::onnx_file {

class Names {
 public:
  /// Where the tensors of a graph are: "" for the main one, "loop_3/body/". No two graphs share one.
  [[nodiscard]] std::string scope(const std::string& parent, const std::string& wanted);
  /// The name in the whole file; one that only happens to look like another graph's gets a number behind it.
  /// Empty when this graph has a tensor of that name already.
  [[nodiscard]] std::string add(std::uint32_t graph, const std::string& scope, const std::string& name);

  [[nodiscard]] bool contains(std::uint32_t graph, const std::string& full_name) const;

  /// Of all names and scopes: what stands in the file once may be in front of a million names here.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  NameMap<std::uint32_t> graph_of_;  // by full name
  NameMap<std::uint64_t> scopes_;    // how often each was asked for
  NameMap<std::uint64_t> numbers_;   // the last one given to each that needed one
  std::uint64_t bytes_ = 0;
};

}  // namespace ballast::onnx_file
