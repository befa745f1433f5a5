// SPDX-License-Identifier: Apache-2.0
// Small files that ask for much: what a pickle may make is bounded by its own size, whatever its calls
// repeat.
#include <gtest/gtest.h>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "formats/pickle_asm.h"

namespace ballast {
namespace {

using namespace testing::pickle;

// One text of a megabyte, made into bytes again and again: an array each time.
TEST(PickleBudget, ArraysCopiedOutOfOneTextAreBounded) {
  const std::size_t size = 1U << 20U;
  std::string code = "B" + le(size, 4) + std::string(size, 'x') + "q\x01" + "0";
  code += global("numpy", "dtype") + text("u1") + "\x85Rq\x02" + "0";
  code += global("numpy.core.numeric", "_frombuffer") + "q\x03" + "0](";
  const std::string array = "h\x03(h\x01h\x02" + tuple({static_cast<std::int64_t>(size)}) + text("C") + "tR";
  for (int i = 0; i < 100; ++i) code += array;
  EXPECT_EQ(refusal(whole(code + "e", 3)), Errc::expansion_limit);
}

TEST(PickleBudget, AFileThatIsAllObjectsIsBounded) {
  EXPECT_EQ(refusal(whole("(" + std::string(5'000'000, '}') + "l")), Errc::expansion_limit);
}

// 100,000 names that all lead to the dict they are in: looking behind each of them again would not end.
TEST(PickleBudget, AStateDictIsLookedForInEachContainerOnce) {
  std::string code = "}q\x01(";
  for (int i = 0; i < 100'000; ++i) code += text("k" + std::to_string(i)) + "h\x01";
  const FoundRoot found = find_root(read(whole(code + "u", 3)));
  EXPECT_EQ(found.path, "");
  EXPECT_EQ(found.checkpoint.size(), 0U);
}

// The same tensor below `count` keys, as {"0": shared, "1": shared, …}: five bytes of pickle for a name each.
std::string shared_under(const std::string& name, int count) {
  const std::string one = tensor(storage("0", "Float", 100), 0, tuple({100}), tuple({1}));
  std::string code = "}q\x01" + text(name) + one + "s0}(";
  for (int i = 0; i < count; ++i) code += text(std::to_string(i)) + "h\x01";
  return legacy(code + "u", kFloats);
}

TEST(PickleBudget, NamesThatSharedObjectsMakeAreBoundedByAllThatIsMadeOfThem) {
  EXPECT_EQ(read(shared_under("weight", 50'000)).size(), 50'000U);
  EXPECT_EQ(refusal(shared_under("weight", 200'000)), Errc::expansion_limit);
  EXPECT_EQ(read(shared_under(std::string(500, 'a'), 10'000)).size(), 10'000U);
  EXPECT_EQ(refusal(shared_under(std::string(500, 'a'), 30'000)), Errc::expansion_limit);
  // Each is six bytes in a header: "\\u0001".
  EXPECT_EQ(refusal(shared_under(std::string(500, '\1'), 10'000)), Errc::expansion_limit);
}

}  // namespace
}  // namespace ballast
