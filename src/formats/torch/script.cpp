// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/script.h"

#include <algorithm>

namespace ballast::torch {
namespace {

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// ["weight", "bias", ]
std::vector<std::string> listed_names(std::string_view line) {
  std::vector<std::string> names;
  for (std::size_t at = line.find('"'); at != std::string_view::npos; at = line.find('"', at + 1)) {
    const std::size_t end = line.find('"', at + 1);
    if (end == std::string_view::npos) break;
    names.emplace_back(line.substr(at + 1, end - at - 1));
    at = end;
  }
  return names;
}

}  // namespace

void read_script_classes(std::string_view source, std::string_view module, ScriptClasses& classes) {
  std::string prefix(module);
  std::replace(prefix.begin(), prefix.end(), '/', '.');
  ScriptClass* current = nullptr;
  while (!source.empty()) {
    const std::string_view line = next_line(source);
    if (line.starts_with("class ")) {
      const std::string_view name = line.substr(6, line.find_first_of("(:", 6) - 6);
      current = &classes[prefix + "." + std::string(name)];
    } else if (current != nullptr && line.starts_with("  __parameters__ = ")) {
      current->parameters = listed_names(line);
    } else if (current != nullptr && line.starts_with("  __buffers__ = ")) {
      current->buffers = listed_names(line);
    }
  }
}

}  // namespace ballast::torch
