// SPDX-License-Identifier: Apache-2.0
#include "ballast/steps.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>

#include "ballast/error.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Checkpoint with(const std::vector<std::string>& names) {
  Checkpoint checkpoint;
  for (const std::string& name : names) checkpoint.add(name, Tensor::from<float>({1, 2}, {2}));
  return checkpoint;
}

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> found;
  for (const Entry& entry : checkpoint) found.emplace_back(entry.name);
  return found;
}

Tensor counting(Shape shape) {
  std::vector<float> values(static_cast<std::size_t>(*try_numel(shape)));
  std::iota(values.begin(), values.end(), 0.F);
  return Tensor::from(std::span<const float>(values), std::move(shape));
}

std::vector<float> floats(const Tensor& tensor) {
  const Tensor row_major = tensor.contiguous();
  const auto span = row_major.span<float>();
  return {span.begin(), span.end()};
}

template <class F>
std::string message(Errc code, F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Rename, EveryMatchAndEveryRuleInOrder) {
  const Renamed result =
      rename(with({"encoder.a.gamma", "decoder.a.a.weight"}),
             {{R"(^encoder\.)", "transformer.encoder."}, {R"(\.gamma$)", ".weight"}, {"a", "b"}});
  EXPECT_THAT(names(result.checkpoint),
              ElementsAre("trbnsformer.encoder.b.weight",
                          "decoder.b.b.weight"));  // sic: unanchored patterns match anywhere
  EXPECT_EQ(result.changed.size(), 2U);
  EXPECT_THAT(result.unmatched, IsEmpty());
}

TEST(Rename, GroupsByNumberAndName) {
  const Checkpoint in = with({"layer.1.block.0.weight"});
  EXPECT_THAT(names(rename(in, {{R"((.+)\.block\.0\.(.+))", "$1.conv.$2"}}).checkpoint),
              ElementsAre("layer.1.conv.weight"));
  EXPECT_THAT(names(rename(in, {{R"(layer\.(?P<n>[0-9]))", "blocks.${n}x"}}).checkpoint),
              ElementsAre("blocks.1x.block.0.weight"));
  EXPECT_THAT(names(rename(in, {{R"(layer\.([0-9]))", "$$${1}0$0"}}).checkpoint),
              ElementsAre("$10layer.1.block.0.weight"));
  EXPECT_THAT(names(rename(in, {{"block", R"(a\1b)"}}).checkpoint), ElementsAre(R"(layer.1.a\1b.0.weight)"));
}

// Rust's and Python's answer for an empty match: before, between and after every character, but not right
// behind a match.
TEST(Rename, EmptyMatches) {
  EXPECT_THAT(names(rename(with({"abc"}), {{"x*", "-"}}).checkpoint), ElementsAre("-a-b-c-"));
  EXPECT_THAT(names(rename(with({"abaac"}), {{"a*", "-"}}).checkpoint), ElementsAre("-b-c-"));
  EXPECT_THAT(names(rename(with({"é"}), {{"x*", "-"}}).checkpoint), ElementsAre("-é-"));
}

TEST(Rename, SaysWhichRuleMatchedNothing) {
  const Renamed result = rename(with({"a"}), {{"^b", "c"}, {"^a", "b"}, {"^b", "c"}});
  EXPECT_THAT(names(result.checkpoint), ElementsAre("c"));
  EXPECT_THAT(result.unmatched, ElementsAre("^b"));
  EXPECT_THAT(result.checkpoint.notes, ElementsAre(HasSubstr("\"^b\" matched no key")));
}

TEST(Rename, RefusesTwoKeysOnOneName) {
  const std::string text = message(Errc::duplicate_key, [] {
    static_cast<void>(rename(with({"a.weight", "b.weight"}), {{"^[ab]", "x"}}));
  });
  EXPECT_THAT(text, HasSubstr("\"a.weight\" and \"b.weight\" both become \"x.weight\""));
}

TEST(Rename, RefusesBadPatternsAndGroups) {
  EXPECT_THAT(message(Errc::invalid_argument,
                      [] {
                        static_cast<void>(rename(with({"a"}), {{"(", ""}}));
                      }),
              HasSubstr("missing )"));
  EXPECT_THAT(message(Errc::invalid_argument,
                      [] {
                        static_cast<void>(rename(with({"a"}), {{"(a)", "$2"}}));
                      }),
              HasSubstr("names group \"2\""));
  EXPECT_THAT(message(Errc::invalid_argument,
                      [] {
                        static_cast<void>(rename(with({"a"}), {{"(a)", "${x}"}}));
                      }),
              HasSubstr("names group \"x\""));
  EXPECT_THAT(message(Errc::invalid_argument,
                      [] {
                        static_cast<void>(rename(with({"a"}), {{"(a)", "x$"}}));
                      }),
              HasSubstr("$$"));
}

TEST(Rename, ACatastrophicPatternTakesLinearTime) {
  const Checkpoint in = with({std::string(5000, 'a')});
  EXPECT_THAT(rename(in, {{"(a*)*(a*)*b", ""}}).unmatched, ElementsAre("(a*)*(a*)*b"));
}

TEST(StripCommonPrefixes, OnlyWhenAllKeysHaveThem) {
  const Renamed both = strip_common_prefixes(with({"module._orig_mod.a", "module._orig_mod.b"}));
  EXPECT_THAT(names(both.checkpoint), ElementsAre("a", "b"));
  EXPECT_THAT(both.checkpoint.notes, ElementsAre(HasSubstr("\"module._orig_mod.\"")));
  EXPECT_THAT(names(strip_common_prefixes(with({"module.a", "b"})).checkpoint), ElementsAre("module.a", "b"));
  EXPECT_THAT(names(strip_common_prefixes(with({"module."})).checkpoint), ElementsAre("module."));
  EXPECT_THAT(names(strip_common_prefixes(with({})).checkpoint), IsEmpty());
}

TEST(Reindex, CompactsEachPrefixByItself) {
  EXPECT_THAT(names(reindex(with({"fc.0.w", "fc.2.w", "fc.10.w"})).checkpoint),
              ElementsAre("fc.0.w", "fc.1.w", "fc.2.w"));
  EXPECT_THAT(names(reindex(with({"encoder.0.w", "encoder.2.w", "decoder.1.w", "decoder.5.w"})).checkpoint),
              ElementsAre("encoder.0.w", "encoder.1.w", "decoder.0.w", "decoder.1.w"));
  EXPECT_THAT(
      names(reindex(with({"f.layers.0.b.0.w", "f.layers.0.b.2.w", "f.layers.2.b.0.w", "f.layers.2.b.2.w"}))
                .checkpoint),
      ElementsAre("f.layers.0.b.0.w", "f.layers.0.b.1.w", "f.layers.1.b.0.w", "f.layers.1.b.1.w"));
  EXPECT_THAT(names(reindex(with({"a.1.b.2.c.3"})).checkpoint), ElementsAre("a.0.b.0.c.0"));
  EXPECT_THAT(names(reindex(with({"plain", "x1.w", "a.01.w"})).checkpoint),
              ElementsAre("plain", "x1.w", "a.01.w"));
}

TEST(Reindex, LeavesWhatHasNoGaps) {
  const std::vector<std::string> without_gaps{"fc.0.w", "fc.1.w", "fc.2.w"};
  EXPECT_EQ(names(reindex(with(without_gaps)).checkpoint), without_gaps);
  EXPECT_THAT(reindex(with(without_gaps)).changed, IsEmpty());
  EXPECT_THAT(names(reindex(with({})).checkpoint), IsEmpty());
  EXPECT_THAT(names(reindex(with({"encoder.w", "fc.1.w", "fc.3.w", "0.w", "4.w"})).checkpoint),
              ElementsAre("encoder.w", "fc.0.w", "fc.1.w", "0.w", "1.w"));
}

TEST(Rename, NoRulesAreNoChange) {
  EXPECT_THAT(rename(with({"a", "b"}), {}).changed, IsEmpty());
  EXPECT_THAT(names(rename(with({}), {{"a", "b"}}).checkpoint), IsEmpty());
}

TEST(Reindex, OnlyWherePrefixesSay) {
  EXPECT_THAT(names(reindex(with({"flows.0.w", "flows.2.w", "fc.0.w", "fc.2.w"}), {"^fc"}).checkpoint),
              ElementsAre("flows.0.w", "flows.2.w", "fc.0.w", "fc.1.w"));
}

TEST(Filter, IncludesAnyExcludesAny) {
  const Checkpoint in = with({"encoder.w", "encoder.b", "decoder.w", "head"});
  EXPECT_THAT(names(filter(in, {})), ElementsAre("encoder.w", "encoder.b", "decoder.w", "head"));
  EXPECT_THAT(names(filter(in, {R"(^encoder\.)", "^head$"})), ElementsAre("encoder.w", "encoder.b", "head"));
  EXPECT_THAT(names(filter(in, {R"(^encoder\.)"}, {R"(\.b$)"})), ElementsAre("encoder.w"));
  EXPECT_THAT(message(Errc::invalid_argument, [&] { static_cast<void>(filter(in, {"["})); }),
              HasSubstr("missing ]"));
}

TEST(Cast, FloatsOnlyAndTiedTensorsStayTied) {
  Checkpoint in;
  const Tensor shared = Tensor::from<float>({1.5F, -2}, {2});
  in.add("a", shared);
  in.add("ids", Tensor::from<std::int64_t>({7}, {1}));
  in.add("b", shared);
  const Checkpoint out = cast(in, Precision::half);
  EXPECT_EQ(out.at("a").dtype, DType::f16);
  EXPECT_EQ(out.at("ids").dtype, DType::i64);
  EXPECT_TRUE(out.tensor("a").same_view(out.tensor("b")));
  EXPECT_EQ(floats(out.tensor("b").to(DType::f32)), (std::vector<float>{1.5F, -2}));
  EXPECT_THROW(static_cast<void>(cast(in, Precision::as_model)), Error);
}

TEST(Merge, JoinsAndRefusesDuplicates) {
  const std::vector<Checkpoint> parts{with({"a"}), with({"b"})};
  EXPECT_THAT(names(merge(parts)), ElementsAre("a", "b"));
  const std::vector<Checkpoint> twice{with({"a"}), with({"a"})};
  message(Errc::duplicate_key, [&] { static_cast<void>(merge(twice)); });
}

TEST(Rules, ChangeTensors) {
  Checkpoint in;
  in.add("w", counting({2, 3}));
  const auto applied = [&](std::vector<rules::Operation> operations) {
    return rules::apply(in, {rules::Change{"^w$", std::move(operations), {}}}).checkpoint.tensor("w");
  };
  EXPECT_EQ(floats(applied({rules::Transpose{0, 1}})), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(applied({rules::Permute{{1, 0}}}).shape(), (Shape{3, 2}));
  EXPECT_EQ(applied({rules::Transpose{0, 1}, rules::Reshape{{-1}}}).shape(), (Shape{6}));
  EXPECT_EQ(floats(applied({rules::Slice{.dim = 1, .start = 1}})), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(applied({rules::Cast{DType::bf16}}).dtype(), DType::bf16);
  EXPECT_THAT(message(Errc::shape_mismatch, [&] { static_cast<void>(applied({rules::Reshape{{4}}})); }),
              HasSubstr("rule \"^w$\" on \"w\""));
}

TEST(Rules, SplitAndJoinAreInverse) {
  Checkpoint in;
  in.add("l.0.qkv", counting({6, 2}));
  in.add("l.1.qkv", counting({6, 2}));
  const auto split = rules::apply(in, {rules::Split{R"((.*)\.qkv$)", {"$1.q", "$1.k", "$1.v"}, 0, {}}});
  EXPECT_THAT(names(split.checkpoint), ElementsAre("l.0.q", "l.0.k", "l.0.v", "l.1.q", "l.1.k", "l.1.v"));
  EXPECT_EQ(floats(split.checkpoint.tensor("l.1.k")), (std::vector<float>{4, 5, 6, 7}));
  const auto joined =
      rules::apply(split.checkpoint, {rules::Concat{R"((.*)\.q$)", {"$1.k", "$1.v"}, "$1.qkv", 0}});
  EXPECT_THAT(names(joined.checkpoint), ElementsAre("l.0.qkv", "l.1.qkv"));
  EXPECT_THAT(joined.origins, ElementsAre("l.0.q + l.0.k + l.0.v", "l.1.q + l.1.k + l.1.v"));
  EXPECT_EQ(floats(joined.checkpoint.tensor("l.1.qkv")), floats(counting({6, 2})));
}

TEST(Rules, JoinsInnerDimensionsAndStacks) {
  Checkpoint in;
  in.add("a", counting({2, 2}));
  in.add("b", counting({2, 1}));
  const Tensor joined = rules::apply(in, {rules::Concat{"^a$", {"b"}, "c", 1}}).checkpoint.tensor("c");
  EXPECT_EQ(floats(joined), (std::vector<float>{0, 1, 0, 2, 3, 1}));
  std::vector<std::byte> piece(7);
  joined.read(6, piece);  // a range across rows and parts, inside elements
  const Tensor whole = joined.clone();
  EXPECT_EQ(std::memcmp(piece.data(), whole.data() + 6, 7), 0);
  Checkpoint equal;
  equal.add("x", counting({2}));
  equal.add("y", counting({2}));
  EXPECT_EQ(floats(rules::apply(equal, {rules::Stack{"^x$", {"y"}, "s", 0}}).checkpoint.tensor("s")),
            (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(rules::apply(equal, {rules::Stack{"^x$", {"y"}, "s", 1}}).checkpoint.tensor("s").shape(),
            (Shape{2, 2}));
  message(Errc::shape_mismatch, [&] {
    static_cast<void>(rules::apply(in, {rules::Concat{"^a$", {"b"}, "c", 0}}));
  });
  message(Errc::not_found, [&] {
    static_cast<void>(rules::apply(in, {rules::Concat{"^a$", {"z"}, "c", 0}}));
  });
}

TEST(Rules, DropAliasAndIdle) {
  const Checkpoint in = with({"wte.weight", "mask", "x"});
  const auto result = rules::apply(
      in,
      {rules::Drop{"^mask$"}, rules::Alias{R"(^wte\.weight$)", "lm_head.weight"}, rules::Drop{"^nothing$"}});
  EXPECT_THAT(names(result.checkpoint), ElementsAre("wte.weight", "lm_head.weight", "x"));
  EXPECT_TRUE(result.checkpoint.tensor("wte.weight").same_view(result.checkpoint.tensor("lm_head.weight")));
  EXPECT_THAT(result.unmatched, ElementsAre("^nothing$"));
}

// A file of rules may be a stranger's: what it asks for is bounded by what was there.
TEST(Rules, CannotPileUpWithoutEnd) {
  Checkpoint in;
  in.add("a", Tensor::zeros(DType::f32, {4}));
  const auto code = [&](const std::vector<rules::Rule>& rules) {
    return code_of([&] { static_cast<void>(rules::apply(in, rules)); });
  };
  const auto casts = [](std::size_t count) {
    return rules::Change{.match = "^a$",
                         .operations = std::vector<rules::Operation>(count, rules::Cast{DType::f64})};
  };
  EXPECT_EQ(rules::apply(in, {casts(64)}).checkpoint.tensor("a").dtype(), DType::f64);
  EXPECT_EQ(code({casts(65)}), Errc::too_deep);
  EXPECT_EQ(code(std::vector<rules::Rule>(65, casts(1))), Errc::too_deep);
  std::vector<rules::Rule> doubled;  // split and joined again, and so on
  for (int i = 0; i < 100; ++i) {
    doubled.emplace_back(rules::Split{.match = "^a$", .to = {"b", "c"}});
    doubled.emplace_back(rules::Concat{.match = "^b$", .with = {"c"}, .to = "a"});
  }
  EXPECT_EQ(code(doubled), Errc::too_deep);
  std::vector<rules::Rule> grown;  // joined with a copy of itself: twice as large each time
  for (int i = 0; i < 40; ++i) {
    grown.emplace_back(rules::Alias{.match = "^a$", .to = "b"});
    grown.emplace_back(rules::Concat{.match = "^a$", .with = {"b"}, .to = "a"});
  }
  EXPECT_EQ(code(grown), Errc::expanded_view);
  std::string groups;
  for (int i = 0; i < 101; ++i) groups += "(a?)";
  EXPECT_EQ(code({rules::Rename{.match = groups, .to = "x"}}), Errc::too_many);
  EXPECT_EQ(rules::apply(in, {rules::Rename{.match = groups.substr(4), .to = "x"}}).checkpoint.size(), 1U);
}

// A short template makes a long name of a long one, and there may be many of both: what is too much is
// refused before it is made.
TEST(Rules, MakeNoMoreTextThanIsTaken) {
  Checkpoint in;
  in.add(std::string(60'000, 'a'), Tensor::zeros(DType::f32, {0}));
  std::string repeated;
  for (int i = 0; i < 200'000; ++i) repeated += "$0";  // 12 GB
  const std::vector<std::string> many(200'000, "$0");
  const std::vector<std::int64_t> sizes(many.size(), 0);
  const auto code = [&](const rules::Rule& rule) {
    return code_of([&] { static_cast<void>(rules::apply(in, {rule})); });
  };
  EXPECT_EQ(code(rules::Rename{.match = "^a+$", .to = repeated}), Errc::too_many);
  EXPECT_EQ(code(rules::Alias{.match = "^a+$", .to = repeated}), Errc::too_many);
  EXPECT_EQ(code(rules::Change{.match = "^a+$", .operations = {rules::Cast{DType::f16}}, .to = repeated}),
            Errc::too_many);
  EXPECT_EQ(code(rules::Split{.match = "^a+$", .to = many, .dim = 0, .sizes = sizes}), Errc::too_many);
  EXPECT_EQ(code(rules::Concat{.match = "^a+$", .with = many, .to = "b"}), Errc::too_many);
  EXPECT_EQ(code(rules::Stack{.match = "^a+$", .with = many, .to = "b"}), Errc::too_many);
}

TEST(Rules, ReadFromJson) {
  const auto parsed = rules::parse(R"JSON({"rules": [
    {"match": "^a\\.(.*)", "to": "b.$1"},
    {"match": "w$", "do": [{"transpose": [0, 1]}, {"reshape": [-1, 2]}], "to": "v"},
    {"match": "e$", "slice": {"dim": 0, "stop": 5}, "cast": "bf16"},
    {"match": "(.*)\\.qkv", "split": {"to": ["$1.q", "$1.k"], "dim": 1, "sizes": [4, 2]}},
    {"match": "(.*)\\.q", "concat": {"with": ["$1.k"], "to": "$1.qk"}},
    {"match": "mask", "drop": true},
    {"match": "wte", "alias": "head", "comment": "tied"}]})JSON");
  ASSERT_EQ(parsed.size(), 7U);
  EXPECT_EQ(std::get<rules::Rename>(parsed[0].value()).to, "b.$1");
  EXPECT_EQ(std::get<rules::Change>(parsed[1].value()).operations.size(), 2U);
  const auto& change = std::get<rules::Change>(parsed[2].value());
  EXPECT_EQ(std::get<rules::Slice>(change.operations[0].value()).stop, 5);
  EXPECT_EQ(std::get<rules::Cast>(change.operations[1].value()).dtype, DType::bf16);
  EXPECT_THAT(std::get<rules::Split>(parsed[3].value()).sizes, ElementsAre(4, 2));
  EXPECT_EQ(std::get<rules::Concat>(parsed[4].value()).to, "$1.qk");
}

TEST(Rules, AreWrittenAsTheyAreRead) {
  const std::string text =
      R"JSON({"rules":[{"match":"^a\\.(.*)","to":"b.$1"},{"match":"gone","to":""},)JSON"
      R"JSON({"match":"w$","do":[{"transpose":[0,1]},{"permute":[1,0]},{"reshape":[-1,2]},)JSON"
      R"JSON({"slice":{"dim":1,"start":-3,"stop":5,"step":2}},{"slice":{"dim":0}},{"cast":"I8"}],"to":"v"},)JSON"
      R"JSON({"match":"k","do":[{"cast":"F8_E4M3"}]},)JSON"
      R"JSON({"match":"(.*)\\.qkv","split":{"to":["$1.q","$1.k"],"dim":1,"sizes":[4,2]}},)JSON"
      R"JSON({"match":"s","split":{"to":["x"],"dim":0}},)JSON"
      R"JSON({"match":"(.*)\\.q","concat":{"with":["$1.k"],"to":"$1.qk","dim":0}},)JSON"
      R"JSON({"match":"t","stack":{"with":["u","v"],"to":"w","dim":-1}},)JSON"
      R"JSON({"match":"mask","drop":true},{"match":"wte","alias":"head \"x\""}]})JSON";
  EXPECT_EQ(rules::to_json(rules::parse(text)), text);
}

TEST(Steps, AreTakenInTheirOrderAndRememberWhereTensorsComeFrom) {
  Checkpoint in = with({"module.l.1.w", "module.l.3.w", "module.l.3.b", "module.m.2.w"});
  const Stepped done = apply_steps(in, {.root = "",
                                        .rename = {{"w$", "weight"}},
                                        .rules = {rules::Drop{R"(\.l\.1)"}},
                                        .strip_prefixes = true,
                                        .include = {"^l", "^m", "^module"},
                                        .exclude = {"b$"},
                                        .reindex = {""},
                                        .keep_positions = {R"(^m\.)"},
                                        .dtype = DType::f16,
                                        .keep_dtype = {"^m"}});
  EXPECT_THAT(names(done.checkpoint), ElementsAre("l.0.weight", "m.2.weight"));
  EXPECT_THAT(done.origins, ElementsAre("module.l.3.w", "module.m.2.w"));
  EXPECT_THAT(done.unmatched, ElementsAre("^module"));
  EXPECT_EQ(done.checkpoint[0].dtype, DType::f16);
  EXPECT_EQ(done.checkpoint[1].dtype, DType::f32);
  EXPECT_EQ(done.cast, 1U);
  EXPECT_THAT(names(done.taken), ElementsAre("module.l.1.w", "module.l.3.w", "module.l.3.b", "module.m.2.w"));
}

TEST(Steps, RefuseADtypeThatIsNotFloating) {
  EXPECT_THAT(message(Errc::bad_dtype,
                      [] { static_cast<void>(apply_steps(with({"a"}), {.root = "", .dtype = DType::i32})); }),
              HasSubstr("I32"));
  message(Errc::invalid_argument,
          [] { static_cast<void>(apply_steps(with({"a"}), {.root = "", .dtype = Precision::as_model})); });
}

TEST(Rules, RefusesFilesThatMakeNoSense) {
  const auto refused = [](const char* json) {
    return message(Errc::bad_json, [&] { static_cast<void>(rules::parse(json)); });
  };
  EXPECT_THAT(refused("[]"), HasSubstr("rules"));
  EXPECT_THAT(refused(R"({"rules": [{"match": "a", "transpse": [0, 1]}]})"),
              HasSubstr("did you mean \"transpose\""));
  EXPECT_THAT(refused(R"({"rules": [{"to": "a"}]})"), HasSubstr("rule 1: has no \"match\""));
  EXPECT_THAT(refused(R"({"rules": [{"match": "a"}]})"), HasSubstr("nothing to do"));
  EXPECT_THAT(refused(R"({"rules": [{"match": "a", "transpose": [0]}]})"), HasSubstr("two dimensions"));
  EXPECT_THAT(refused(R"({"rules": [{"match": "a", "reshape": [1.5]}]})"), HasSubstr("whole number"));
  EXPECT_THAT(refused("{"), HasSubstr("rules"));
}

}  // namespace
}  // namespace ballast
