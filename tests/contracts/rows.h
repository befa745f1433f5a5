// SPDX-License-Identifier: Apache-2.0
// What the public headers say is thrown, provoked: a row is a function by its full name, the code its words
// name, and work that must end in it. scripts/check-contracts looks for the code in the words.
#pragma once

#include <cctype>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "ballast/error.h"
#include "ballast/tensor.h"
#include "base/scratch.h"

namespace ballast::contracts {

/// Files of a test's own.
class Place {
 public:
  explicit Place(std::string folder) : folder_(std::move(folder)) {}

  /// A path where nothing is yet.
  [[nodiscard]] std::string operator()(const std::string& name) const { return folder_ + "/" + name; }

  /// The path of a file with this text.
  std::string with(const std::string& name, const std::string& text) const {
    std::ofstream((*this)(name), std::ios::binary) << text;
    return (*this)(name);
  }

  /// The path of a Safetensors file that holds w, F32 [2].
  std::string weights(const std::string& name = "w.safetensors") const;

 private:
  std::string folder_;
};

struct Row {
  /// "Tensor::narrow", and after a space what is wrong.
  std::string_view name;
  Errc code;
  void (*provoke)(const Place& at);
};

inline std::ostream& operator<<(std::ostream& out, const Row& row) {
  return out << row.name;
}

/// For results nobody wants.
template <class... Results>
void drop(const Results&... /*results*/) {}

inline Tensor floats(std::initializer_list<float> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

/// F32 zeros.
inline Tensor of(Shape shape) {
  return Tensor::zeros(DType::f32, std::move(shape));
}

/// A test for each row.
#define BALLAST_CONTRACTS(suite, rows)                                                   \
  class suite : public Scratch, public testing::WithParamInterface<Row> {};              \
  TEST_P(suite, IsThrown) {                                                              \
    const Place at(path("."));                                                           \
    const Row& row = GetParam();                                                         \
    EXPECT_EQ(name(code_of([&] { row.provoke(at); })), name(row.code)) << row.name;      \
  }                                                                                      \
  INSTANTIATE_TEST_SUITE_P(Says, suite, testing::ValuesIn(rows), [](const auto& each) {  \
    std::string words = std::to_string(each.index) + "_" + std::string(each.param.name); \
    for (char& c : words)                                                                \
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';                         \
    return words;                                                                        \
  })

}  // namespace ballast::contracts
