// SPDX-License-Identifier: Apache-2.0
#include "ballast/value.h"

#include <gtest/gtest.h>

#include <complex>

#include "ballast/checkpoint.h"
#include "ballast/error.h"
#include "base/error_of.h"
#include "checkpoint/value_tree.h"

namespace ballast {
namespace {

Value sample() {
  return Value::dict(
      {{"epoch", 3},
       {"optimizer",
        Value::dict({{"param_groups",
                      Value::list({Value::dict({{"lr", 0.5}, {"betas", Value::tuple({0.9, 0.999})}})})},
                     {"state", Value::dict({{0, Value::dict({{"step", 7}})}})}})},
       {"layer.0.weight", "dotted"},
       {"layer", Value::dict({{"0", Value::dict({{"bias", true}})}})}});
}

TEST(Value, PathsGoThroughKeysIndicesAndIntegerKeys) {
  const Value root = sample();
  EXPECT_EQ(root.at("epoch").as_int(), 3);
  EXPECT_EQ(root.at("optimizer.param_groups.0.lr").as_float(), 0.5);
  EXPECT_EQ(root.at("optimizer.param_groups.0.betas.1").as_float(), 0.999);
  EXPECT_EQ(root.at("optimizer.state.0.step").as_int(), 7);
  EXPECT_EQ(root.at("").size(), 4U);
}

TEST(Value, KeysThatContainDotsAreReached) {
  const Value root = sample();
  EXPECT_EQ(root.at("layer.0.weight").as_string(), "dotted");
  EXPECT_TRUE(root.at("layer.0.bias").as_bool());
  // The longer key leads nowhere here, so the shorter one is tried.
  const Value tricky = Value::dict({{"a.b", Value::dict({{"x", 1}})}, {"a", Value::dict({{"b.c", 2}})}});
  EXPECT_EQ(tricky.at("a.b.c").as_int(), 2);
  EXPECT_EQ(tricky.at("a.b.x").as_int(), 1);
}

TEST(Value, AMissingPathSaysHowFarItGot) {
  const Value root = sample();
  EXPECT_EQ(code_of([&] { static_cast<void>(root.at("optimizer.param_groups.1.lr")); }), Errc::not_found);
  try {
    static_cast<void>(root.at("optimizer.param_groups.0.momentum"));
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"optimizer.param_groups.0\" is there"), std::string::npos)
        << error.what();
  }
  EXPECT_FALSE(root.find_path("nope").has_value());
  EXPECT_FALSE(root.find_path("optimizer.param_groups.0.").has_value());
}

TEST(Value, LeavesGiveWhatTheyAreAndRefuseTheRest) {
  EXPECT_EQ(Value(UINT64_MAX).as_decimal(), "18446744073709551615");
  EXPECT_EQ(Value(INT64_MIN).as_int(), INT64_MIN);
  EXPECT_EQ(Value(-1).as_float(), -1.0);
  EXPECT_EQ(Value(true).as_int(), 1);
  EXPECT_EQ(Value(std::complex<double>(1, 2)).as_complex(), std::complex<double>(1, 2));
  EXPECT_EQ(code_of([] { static_cast<void>(Value("x").as_int()); }), Errc::type_mismatch);
  EXPECT_EQ(code_of([] { static_cast<void>(Value(1).as_bool()); }), Errc::type_mismatch);
  EXPECT_EQ(code_of([] { static_cast<void>(Value(UINT64_MAX).as_int()); }), Errc::size_overflow);
  EXPECT_EQ(code_of([] { static_cast<void>(Value::list({1}).element(1)); }), Errc::offset_out_of_range);
  EXPECT_EQ(code_of([] { static_cast<void>(Value::integer("12a")); }), Errc::invalid_argument);
}

TEST(Value, BigIntegersPrintAsPythonPrintsThem) {
  ValueTree tree;
  using namespace std::string_view_literals;
  const auto decimal = [&](std::string_view bytes) {
    auto owner = std::make_shared<ValueTree>();
    return ValueTree::value(owner, owner->big_integer(owner->store(bytes))).as_decimal();
  };
  EXPECT_EQ(decimal("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv),
            "119547037146038801333356");  // torch's magic number
  EXPECT_EQ(decimal("\xff"sv), "-1");
  EXPECT_EQ(decimal("\x00\x80"sv), "-32768");
  EXPECT_EQ(decimal(""sv), "0");
  EXPECT_EQ(decimal("\x00\x00\x00\x00\x00\x00\x00\x80"sv), "-9223372036854775808");
  EXPECT_EQ(decimal("\x00\x00\x00\x00\x00\x00\x00\x00\xff"sv), "-18446744073709551616");
  EXPECT_EQ(decimal("\x00\x00\x00\x00\x00\x00\x00\x00\x01"sv), "18446744073709551616");
}

TEST(Value, SharedPartsStayShared) {
  const Value tensor(Tensor::zeros(DType::f32, {2}));
  const Value pair = Value::list({tensor, tensor, Value(Tensor::zeros(DType::f32, {2}))});
  EXPECT_TRUE(pair.element(0).same_object(pair.element(1)));
  EXPECT_FALSE(pair.element(0).same_object(pair.element(2)));
  EXPECT_TRUE(pair.element(0).as_tensor().same_view(pair.element(1).as_tensor()));
}

TEST(Value, TypesAreKeptApartFromStructure) {
  const Value ordered = Value::dict({{"a", 1}})
                            .as_type("collections.OrderedDict")
                            .with_attributes(Value::dict({{"_metadata", "m"}}));
  EXPECT_EQ(ordered.kind(), Kind::dict);
  EXPECT_EQ(ordered.type(), "collections.OrderedDict");
  EXPECT_EQ(ordered.at("a").as_int(), 1);
  EXPECT_EQ(ordered.attributes().at("_metadata").as_string(), "m");
  EXPECT_EQ(Value::object("__main__.Net", {}, Value::dict({{"x", 5}})).at("x").as_int(), 5);
}

TEST(Value, DeepNestingIsBuiltWalkedAndFreedWithoutRecursion) {
  Value nested = Value::list({});
  for (int i = 0; i < 200'000; ++i) nested = Value::list({nested});
  ValueWalk walk(nested);
  std::size_t steps = 0;
  while (walk.next()) ++steps;
  EXPECT_EQ(steps, 200'001U);
  EXPECT_FALSE(walk.cut());
}

TEST(Value, WalksShowSharedContainersOnceAndEndOnCycles) {
  auto tree = std::make_shared<ValueTree>();
  ValueNode* list = tree->make(NodeKind::list);
  const Ref self[] = {Ref(list), Ref::small(1), Ref(list)};
  tree->append(list, self);
  ValueWalk walk(ValueTree::value(tree, Ref(list)));
  std::vector<bool> repeated;
  while (const auto step = walk.next()) repeated.push_back(step->repeated);
  EXPECT_EQ(repeated, (std::vector<bool>{false, true, false, true}));
}

TEST(Value, LargeDictsAreFoundByKeyAndTheLastOfEqualKeysWins) {
  std::vector<std::pair<Value, Value>> pairs;
  for (int i = 0; i < 1000; ++i) pairs.emplace_back("k" + std::to_string(i), i);
  pairs.emplace_back("k7", -7);
  pairs.emplace_back(42, "integer key");
  const Value dict = Value::dict(pairs);
  EXPECT_EQ(dict.at("k999").as_int(), 999);
  EXPECT_EQ(dict.at("k7").as_int(), -7);
  EXPECT_EQ(dict.at("42").as_string(), "integer key");
  EXPECT_FALSE(dict.contains("k1000"));
}

TEST(Value, CheckpointsWithoutATreeSaySo) {
  EXPECT_EQ(code_of([] { static_cast<void>(Checkpoint().value("epoch")); }), Errc::not_found);
}

TEST(Value, SummariesFitOnOneLine) {
  EXPECT_EQ(Value(1.0).summary(), "1.0");
  EXPECT_EQ(Value(0.001).summary(), "0.001");
  EXPECT_EQ(Value("a\n").summary(), "\"a\\n\"");
  EXPECT_EQ(Value::list({1, 2}).summary(), "list of 2");
  EXPECT_EQ(Value::dict({}).as_type("collections.OrderedDict").summary(),
            "dict of 0 (collections.OrderedDict)");
  EXPECT_EQ(Value(Tensor::zeros(DType::f32, {2, 3})).summary(), "F32 [2, 3]");
}

TEST(Value, DictsMadeByHandAreSearchedByKey) {
  const Value dict = Value::dict({{"a", 1}, {"b", Value::list({2})}});
  EXPECT_EQ(dict.find("a")->as_int(), 1);
  EXPECT_EQ(dict.at("b.0").as_int(), 2);
  EXPECT_FALSE(dict.contains("c"));
}

}  // namespace
}  // namespace ballast
