// SPDX-License-Identifier: Apache-2.0
// docs/compatibility.md says of each format what the table of formats says.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "ballast/dtype.h"
#include "ballast/format.h"

namespace ballast {
namespace {

std::string words(Format format) {
  std::string text;
  const auto add = [&](bool holds, std::string_view word) {
    if (holds) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(format->holds_metadata, "metadata");
  add(format->holds_layout, "layout");
  add(format->holds_ties, "ties");
  add(format->holds_tree, "other values");
  add(format->holds_strides, "strides");
  add(format->has_checksums, "checksums");
  return text.empty() ? "-" : text;
}

// "all", "all but F4, F6_E2M3", "F32, F16", or "-" where nothing is written.
std::string dtypes(Format format) {
  if (format->holds == nullptr) return "-";
  std::vector<std::string_view> held;
  std::vector<std::string_view> missing;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    (format->holds(dtype) ? held : missing).push_back(info(dtype).code);
  }
  if (missing.empty()) return "all";
  return missing.size() < held.size() ? fmt::format("all but {}", fmt::join(missing, ", "))
                                      : fmt::format("{}", fmt::join(held, ", "));
}

std::string line_of(Format format) {
  std::string extensions;
  for (const std::string_view extension : format->extensions)
    if (!extension.empty()) extensions += (extensions.empty() ? "`" : ", `") + std::string(extension) + "`";
  return fmt::format(
      "| `{}` | {} | {} | {} | {} | {} |", format.name(), extensions.empty() ? "-" : extensions,
      format->save != nullptr ? "read, written" : "read", dtypes(format), words(format), format->layout);
}

TEST(Compatibility, TheDocumentHasALineForEveryFormatOfTheTable) {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/../docs/compatibility.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  for (const Format format : all_formats()) EXPECT_THAT(document, testing::HasSubstr(line_of(format) + "\n"));
}

}  // namespace
}  // namespace ballast
