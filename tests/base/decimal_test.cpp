// SPDX-License-Identifier: Apache-2.0
#include "base/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace ballast {
namespace {

// Values as CPython's float() has them.
TEST(Decimal, IsTheNearestDoubleAndBelowTheRangeAZeroWithItsSign) {
  EXPECT_EQ(double_of("0.1"), 0.1);
  EXPECT_EQ(double_of("-1.5e3"), -1500.0);
  EXPECT_EQ(double_of("1.7976931348623157e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(double_of("1.797693134862315807e308"), std::numeric_limits<double>::max());
  EXPECT_EQ(double_of("4.9e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(double_of("3e-324"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(double_of("inf"), std::numeric_limits<double>::infinity());
  for (const std::string text :
       {"2e-324", "1.5e-400", "0.000001e-390", "1e-99999999999999999999999", "0e999"}) {
    EXPECT_EQ(double_of(text), 0.0) << text;
    EXPECT_FALSE(std::signbit(double_of(text).value())) << text;
    EXPECT_TRUE(std::signbit(double_of("-" + text).value())) << text;
  }
  const std::string zeros(1000, '0');
  EXPECT_EQ(double_of("0." + zeros + "1"), 0.0);
  EXPECT_EQ(double_of("0." + zeros + "1e1001"), 1.0);
  EXPECT_EQ(double_of("1" + zeros + "e-1001"), 0.1);
}

TEST(Decimal, IsNothingBeyondTheRangeAndOfOtherText) {
  const std::string zeros(1000, '0');
  for (const std::string& text :
       {std::string("1.797693134862315808e308"), std::string("1e309"), std::string("-1.5e400"),
        std::string("0.001e999"), std::string("1e99999999999999999999999"), "1" + zeros,
        "0." + zeros + "1e2000", std::string(), std::string("1,5"), std::string("1.5 "), std::string("e5"),
        std::string("0x10")})
    EXPECT_EQ(double_of(text), std::nullopt) << text;
}

}  // namespace
}  // namespace ballast
