// SPDX-License-Identifier: Apache-2.0
// Names of tensors are paths: segments joined by dots, "layers.0.norm.weight".
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::key_path {

/// each(before, segment) in order; `before` is everything up to the segment, with its dot. An empty path is
/// one empty segment.
template <class Each>
void for_each_segment(std::string_view path, Each&& each) {
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    each(path.substr(0, begin), path.substr(begin, end - begin));
    begin = end + 1;
  }
}

[[nodiscard]] inline std::vector<std::string_view> segments(std::string_view path) {
  std::vector<std::string_view> found;
  for_each_segment(path, [&](std::string_view, std::string_view segment) { found.push_back(segment); });
  return found;
}

/// The last segment: "weight".
[[nodiscard]] constexpr std::string_view last(std::string_view path) noexcept {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0
}

/// What stands before the last segment, with its dot: "layers.0.norm."; empty for one segment.
[[nodiscard]] constexpr std::string_view before_last(std::string_view path) noexcept {
  return path.substr(0, path.rfind('.') + 1);
}

/// A dot between them, unless the path is empty. The segment may be: a dict may have the key "".
[[nodiscard]] inline std::string joined(std::string_view path, std::string_view segment) {
  std::string both(path);
  if (!path.empty()) both += '.';
  return both += segment;
}

/// Whether `path` is `parent` or lies below it. Everything lies below the empty path.
[[nodiscard]] constexpr bool is_under(std::string_view path, std::string_view parent) noexcept {
  return parent.empty() || path == parent ||
         (path.size() > parent.size() && path.starts_with(parent) && path[parent.size()] == '.');
}

}  // namespace ballast::key_path
