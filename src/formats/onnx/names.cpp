// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/names.h"

#include <fmt/format.h>

namespace ballast::onnx_file {

std::string Names::scope(const std::string& parent, const std::string& wanted) {
  for (std::string text = parent + wanted;;) {
    bytes_ += text.size();
    const std::uint64_t count = ++scopes_[text];
    if (count == 1) return text + '/';
    text += fmt::format("#{}", count);
  }
}

std::string Names::add(std::uint32_t graph, const std::string& scope, const std::string& name) {
  std::string full = scope + name;
  bytes_ += full.size();
  const auto [found, added] = graph_of_.try_emplace(full, graph);
  if (added) return full;
  if (found->second == graph) return {};
  std::uint64_t& number = numbers_.try_emplace(full, 1).first->second;
  for (;;) {
    std::string other = fmt::format("{}#{}", full, ++number);
    if (graph_of_.try_emplace(other, graph).second) return other;
  }
}

bool Names::contains(std::uint32_t graph, const std::string& full_name) const {
  const auto found = graph_of_.find(full_name);
  return found != graph_of_.end() && found->second == graph;
}

}  // namespace ballast::onnx_file
