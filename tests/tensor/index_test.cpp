// SPDX-License-Identifier: Apache-2.0
// Tensor::index against NumPy: index_cases.txt comes from make_index_cases.py.
#include <gmock/gmock.h>

#include <fstream>
#include <numeric>
#include <sstream>

#include "ballast/error.h"
#include "ballast/tensor.h"

namespace ballast {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::string part;
  for (std::istringstream in(text); std::getline(in, part, separator);) parts.push_back(part);
  if (text.empty() || text.back() == separator) parts.emplace_back();
  return parts;
}

Shape shape_from(const std::string& text) {
  Shape shape;
  if (text == "-") return shape;
  for (const std::string& dim : split(text, ',')) shape.push_back(std::stoll(dim));
  return shape;
}

std::vector<Index> index_from(const std::string& text) {
  std::vector<Index> indices;
  if (text == "-") return indices;
  for (const std::string& item : split(text, ',')) {
    if (item == "...") {
      indices.emplace_back(ellipsis);
    } else if (item == "N") {
      indices.emplace_back(new_axis);
    } else if (item.find(':') == std::string::npos) {
      indices.emplace_back(std::int64_t{std::stoll(item)});
    } else {
      std::optional<std::int64_t> parts[3];
      const auto texts = split(item, ':');
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (!texts[i].empty()) parts[i] = std::stoll(texts[i]);
      }
      indices.emplace_back(Slice{parts[0], parts[1], parts[2]});
    }
  }
  return indices;
}

Tensor arange(const Shape& shape) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(*try_numel(shape)));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from(std::span<const std::int64_t>(values), shape);
}

std::string fnv(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.size_bytes());
  tensor.read(0, bytes);
  std::uint64_t state = 0xCBF29CE484222325U;
  for (const std::byte byte : bytes) state = (state ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3U;
  std::ostringstream text;
  text << std::hex << state;
  return text.str();
}

TEST(Index, AgreesWithNumPyOnThousandsOfExpressions) {
  std::ifstream file(BALLAST_TEST_DATA "/tensor/index_cases.txt");
  std::size_t cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const auto fields = split(line, ' ');
    const Tensor whole = arange(shape_from(fields.at(0)));
    const auto indices = index_from(fields.at(1));
    if (fields.at(2) == "!") {
      EXPECT_THROW(static_cast<void>(whole.index(indices)), Error) << line;
      continue;
    }
    const Tensor view = whole.index(indices);
    EXPECT_EQ(view.shape(), shape_from(fields.at(2))) << line;
    EXPECT_EQ(fnv(view), fields.at(3)) << line;
    EXPECT_EQ(view.storage(), whole.storage()) << line;
    // The same view of a tensor that is itself a view.
    if (whole.rank() >= 2) {
      const Tensor twisted = whole.transpose(0, -1).contiguous().transpose(0, -1);
      EXPECT_EQ(fnv(twisted.index(indices)), fields.at(3)) << line;
    }
  }
  EXPECT_GT(cases, 4000U);
}

std::string message_of(const Tensor& tensor, std::initializer_list<Index> indices) {
  try {
    static_cast<void>(tensor.index(indices));
  } catch (const Error& error) {
    return std::string(name(error.code())) + " " + error.what();
  }
  return "";
}

TEST(Index, SaysWhichIndexIsWrong) {
  const Tensor tensor = arange({2, 3});
  EXPECT_EQ(message_of(tensor, {1, -4}),
            "offset-out-of-range tensor I64 [2, 3]: index -4 is outside dimension 1 of size 3");
  EXPECT_EQ(message_of(tensor, {0, 0, 0}),
            "shape-mismatch tensor I64 [2, 3]: has 2 dimensions, 3 were indexed");
  EXPECT_EQ(message_of(tensor, {Slice{{}, {}, 0}}),
            "invalid-argument tensor I64 [2, 3]: a slice cannot have step 0");
  EXPECT_EQ(message_of(tensor, {ellipsis, ellipsis}),
            "invalid-argument tensor I64 [2, 3]: an index can have one ellipsis, not 2");
}

}  // namespace
}  // namespace ballast
