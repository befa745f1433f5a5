// SPDX-License-Identifier: Apache-2.0
// What tensors mean besides their numbers goes through every step with them, or the step says no.
#include <gmock/gmock.h>

#include "ballast/quantized.h"
#include "ballast/steps.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

// q * scale by hand: 1 * 0.5, -2 * 0.5, 3 * 2, 127 * 2.
Checkpoint quantized() {
  Checkpoint in;
  in.path = "q.safetensors";
  in.add("a.q", Tensor::from<std::int8_t>({1, -2, 3, 127}, {2, 2}));
  in.add("a.s", Tensor::from<float>({0.5F, 2.0F}, {2}));
  in.add("a.b", Tensor::from<float>({7.0F}, {1}));
  in.metadata =
      Metadata{{"ballast.quantized", R"({"a.q":{"scheme":"int8","axis":0,"scale":"a.s","dtype":"F32"}})"},
               {"author", "somebody"}};
  return in;
}

std::vector<float> numbers(const Checkpoint& checkpoint, const std::string& name) {
  const Tensor made = dequantize(checkpoint).tensor(name).contiguous();
  const auto span = made.span<float>();
  return {span.begin(), span.end()};
}

Checkpoint tied() {
  Checkpoint in;
  in.add("wte.weight", Tensor::from<float>({1, 2}, {2}));
  in.metadata =
      Metadata{{"ballast.ties", R"({"lm_head.weight":"wte.weight"})"}, {"lm_head.weight", "wte.weight"}};
  return in;
}

std::vector<std::string> names(const Checkpoint& checkpoint) {
  std::vector<std::string> found;
  for (const Entry& entry : checkpoint) found.emplace_back(entry.name);
  return found;
}

TEST(Marks, ScalesFollowTheirIntegersToNewNames) {
  const std::vector<float> expected = {0.5F, -1.0F, 6.0F, 254.0F};
  EXPECT_EQ(numbers(rename(quantized(), {{"^a\\.", "x."}}).checkpoint, "x.q"), expected);
  EXPECT_EQ(numbers(rename(quantized(), {{"s$", "z"}}).checkpoint, "a.q"), expected);
  EXPECT_EQ(numbers(root(quantized(), "a"), "q"), expected);
  EXPECT_EQ(numbers(rules::apply(quantized(), {rules::Rename{"^a", "b"}}).checkpoint, "b.q"), expected);
  EXPECT_EQ(numbers(filter(quantized(), {}, {"b$"}), "a.q"), expected);
  EXPECT_EQ(numbers(in_memory(quantized()), "a.q"), expected);
  const std::vector<Checkpoint> parts = {quantized(), rename(quantized(), {{"^a", "c"}}).checkpoint};
  EXPECT_EQ(numbers(merge(parts), "a.q"), expected);
  EXPECT_EQ(numbers(merge(parts), "c.q"), expected);
}

TEST(Marks, IntegersDoNotLoseTheirScales) {
  EXPECT_EQ(code_of([] { static_cast<void>(filter(quantized(), {}, {"s$"})); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { static_cast<void>(rules::apply(quantized(), {rules::Drop{"s$"}})); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([] {
              static_cast<void>(rules::apply(quantized(), {rules::Change{"q$", {rules::Transpose{0, 1}}}}));
            }),
            Errc::invalid_argument);
  EXPECT_FALSE(is_quantized(filter(quantized(), {}, {"q$"})));
}

TEST(Marks, OtherMetadataLeavesWhatIsSaidOfTheTensors) {
  const Checkpoint out = with_metadata(quantized(), Metadata{{"license", "MIT"}});
  EXPECT_THAT(*out.metadata, ElementsAre(Key("ballast.quantized"), Key("license")));
  EXPECT_THAT(*with_metadata(quantized(), std::nullopt).metadata, ElementsAre(Key("ballast.quantized")));
  EXPECT_EQ(code_of([] {
              static_cast<void>(with_metadata(quantized(), Metadata{{"ballast.layout", "native"}}));
            }),
            Errc::invalid_argument);
  EXPECT_EQ(with_metadata(Checkpoint(), std::nullopt).metadata, std::nullopt);
}

TEST(Marks, EveryStepKeepsTheOtherNameOfATiedTensor) {
  EXPECT_THAT(names(rename(tied(), {{"^wte", "embed"}}).checkpoint),
              ElementsAre("embed.weight", "lm_head.weight"));
  EXPECT_THAT(names(filter(tied(), {}, {"^wte"})), ElementsAre("lm_head.weight"));
  EXPECT_THAT(names(filter(tied(), {"^wte"})), ElementsAre("wte.weight"));
  EXPECT_THAT(names(root(tied(), "lm_head")), ElementsAre("weight"));
  EXPECT_THAT(names(merge(std::vector<Checkpoint>{tied()})), ElementsAre("wte.weight", "lm_head.weight"));
  const Checkpoint cast_by_rule =
      rules::apply(tied(), {rules::Change{"weight", {rules::Cast{DType::f16}}}}).checkpoint;
  EXPECT_EQ(ties(cast_by_rule), (std::vector<Tie>{{.tensor = 1, .first = 0}}));
}

TEST(Marks, MetadataThatHappensToBeATensorsNameIsNoTie) {
  Checkpoint in;
  for (const char* name : {"pt", "1", "w", "a.weight"}) in.add(name, Tensor::from<float>({1}, {1}));
  in.metadata = Metadata{{"format", "pt"}, {"ballast.record", "1"}, {"best", "w"}, {"best.one", "a.weight"}};
  EXPECT_EQ(filter(in, {}).size(), 4U);
  in.metadata->emplace("b.weight", "a.weight");  // what Safetensors' save_model() writes
  EXPECT_THAT(ties(filter(in, {})), ElementsAre(Tie{.tensor = 4, .first = 3}));
}

TEST(Marks, FilesOfTwoLayoutsAreNotMerged) {
  Checkpoint native;
  native.add("a", Tensor::from<float>({1}, {1}));
  native.metadata = Metadata{{"ballast.layout", "native"}};
  Checkpoint other;
  other.add("b", Tensor::from<float>({1}, {1}));
  EXPECT_EQ(code_of([&] {
              static_cast<void>(merge(std::vector<Checkpoint>{native, other}));
            }),
            Errc::invalid_argument);
  other.metadata = Metadata{{"ballast.layout", "native"}, {"ballast.xxh3", "{}"}, {"ballast.record", "1"}};
  EXPECT_EQ(*merge(std::vector<Checkpoint>{native, other}).metadata,
            (Metadata{{"ballast.layout", "native"}}));
}

// One long name and very many short ones for the same tensor: each would say the long one again.
TEST(Marks, TiesThatSayALongNameAgainAndAgainAreRefused) {
  const Tensor tensor = Tensor::from<float>({1, 2}, {2});
  Checkpoint in;
  in.add(std::string(60'000, 'n'), tensor);
  for (int i = 0; i < 50; ++i) in.add(std::to_string(i), tensor);
  EXPECT_EQ(ties(in).size(), 50U);
  for (int i = 50; i < 1000; ++i) in.add(std::to_string(i), tensor);
  EXPECT_EQ(code_of([&] { static_cast<void>(ties(in)); }), Errc::expansion_limit);
}

}  // namespace
}  // namespace ballast
