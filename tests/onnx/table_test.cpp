// SPDX-License-Identifier: Apache-2.0
// The exporter's column of the table of operations.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "onnx/lowering.h"
#include "ops/operations.h"

namespace ballast::onnx {
namespace {

TEST(OnnxTable, HasATranslationOfEveryOperationAndOfNothingElse) {
  for (const Operation* row : operations::table())
    EXPECT_TRUE(translations().contains(row)) << row->name << " has no translation, nor a reason why not";
  EXPECT_EQ(translations().size(), operations::table().size());
}

TEST(OnnxTable, IsDocumentedLineByLine) {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/../docs/onnx.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string page = text.str();
  const std::string section = page.substr(page.find("## Operations and opsets"));
  std::set<std::string> words;
  const std::regex word("[a-z_0-9]+");
  for (std::sregex_iterator at(section.begin(), section.end(), word), end; at != end; ++at)
    words.insert(at->str());
  for (const Operation* row : operations::table())
    EXPECT_TRUE(words.contains(row->name)) << row->name << " is not in docs/onnx.md";
}

}  // namespace
}  // namespace ballast::onnx
