// SPDX-License-Identifier: Apache-2.0
// Structs of many fields: found by reflection up to 128, listed by BALLAST_FIELDS beyond.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ballast/module.h"

namespace {

#define BALLAST_TEST_TEN(x) x##0, x##1, x##2, x##3, x##4, x##5, x##6, x##7, x##8, x##9
#define BALLAST_TEST_HUNDRED(x)                                                                       \
  BALLAST_TEST_TEN(x##0), BALLAST_TEST_TEN(x##1), BALLAST_TEST_TEN(x##2), BALLAST_TEST_TEN(x##3),     \
      BALLAST_TEST_TEN(x##4), BALLAST_TEST_TEN(x##5), BALLAST_TEST_TEN(x##6), BALLAST_TEST_TEN(x##7), \
      BALLAST_TEST_TEN(x##8), BALLAST_TEST_TEN(x##9)

struct Reflected {
  ballast::Tensor BALLAST_TEST_HUNDRED(f), BALLAST_TEST_TEN(g),
      BALLAST_TEST_TEN(h), i0, i1, i2, i3, i4, i5, i6, last;
};

struct Listed {
  explicit Listed(int) {}

  ballast::Tensor BALLAST_TEST_HUNDRED(f), BALLAST_TEST_HUNDRED(g), BALLAST_TEST_HUNDRED(h);
  BALLAST_FIELDS(BALLAST_TEST_HUNDRED(f), BALLAST_TEST_HUNDRED(g), BALLAST_TEST_HUNDRED(h));
};

template <class Model>
std::vector<std::string> names(const Model& model) {
  std::vector<std::string> found;
  ballast::for_each_tensor(model, [&](std::string_view path, const ballast::Tensor&, ballast::LayerKind) {
    found.emplace_back(path);
  });
  return found;
}

TEST(ManyFields, HundredAndTwentyEightAreFoundInTheirOrder) {
  const std::vector<std::string> found = names(Reflected{});
  ASSERT_EQ(found.size(), 128U);
  EXPECT_EQ(found.front(), "f00");
  EXPECT_EQ(found[86], "f86");
  EXPECT_EQ(found[127], "last");
}

TEST(ManyFields, MoreThanThatAreListed) {
  const std::vector<std::string> found = names(Listed(0));
  ASSERT_EQ(found.size(), 300U);
  EXPECT_EQ(found[100], "g00");
  EXPECT_EQ(found[299], "h99");
}

}  // namespace
