// SPDX-License-Identifier: Apache-2.0
#include "ballast/verify.h"

#include <gmock/gmock.h>

#include <cmath>

#include "ballast/convert.h"
#include "ballast/record.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VerifyTest : public Scratch {
 protected:
  VerifyTest() {
    Checkpoint in;
    in.add("good", counting({3, 4}));
    in.add("dead", Tensor::from({0.0F, -0.0F}, {2}));
    in.add("odd", Tensor::from({1.0F, NAN, INFINITY, -INFINITY, NAN}, {5}));
    save(in, path("in.safetensors"));
  }
};

std::vector<std::string> words(const VerifyReport& report) {
  std::vector<std::string> out;
  for (const VerifyFinding& finding : report.findings)
    out.push_back(fmt::format("{} {} {}/{}", finding.name, name(finding.kind), finding.count, finding.of));
  return out;
}

TEST_F(VerifyTest, FindsWhatIsNotFiniteAndWhatIsDead) {
  const VerifyReport report = verify(path("in.safetensors"));
  EXPECT_THAT(words(report), ElementsAre("dead zero 2/2", "odd nan 2/5", "odd inf 2/5"));
  EXPECT_FALSE(report.clean());
  EXPECT_EQ(report.format.name(), "safetensors");
  EXPECT_EQ(report.tensors, 3U);
  EXPECT_EQ(report.bytes, 4U * (12 + 2 + 5));
  EXPECT_EQ(report.findings[1].shape, (Shape{5}));
  EXPECT_EQ(report.findings[1].detail, "2 of 5 values");
}

TEST_F(VerifyTest, LooksAtWhatIsAskedFor) {
  EXPECT_THAT(words(verify(path("in.safetensors"), {.exclude = {"odd"}, .allow_zeros = true})), IsEmpty());
  EXPECT_THAT(words(verify(path("in.safetensors"), {.include = {"good"}, .max_abs = 5})),
              ElementsAre("good large 1/12"));
}

TEST_F(VerifyTest, ARecordsChecksumNamesItsTensor) {
  convert(path("in.safetensors"), path("r.record"), {.include = {"good"}});
  EXPECT_TRUE(verify(path("r.record")).clean());
  std::string bytes = content(path("r.record"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write(path("r.record"), bytes);
  const VerifyReport report = verify(path("r.record"));
  EXPECT_THAT(words(report), ElementsAre("good checksum 1/0"));
  EXPECT_THAT(report.findings[0].detail, HasSubstr("XXH3"));
}

TEST_F(VerifyTest, AReceiptIsNotedWhenItFitsAndAFindingWhenItDoesNot) {
  const VerifyOptions options{.include = {"good"}, .receipt = path("r.json")};
  convert(path("in.safetensors"), path("out.pt"), {.receipt = path("r.json")});
  EXPECT_THAT(verify(path("out.pt"), options).notes, Contains(HasSubstr("wrote, bit for bit")));
  EXPECT_THAT(verify(path("in.safetensors"), options).notes, Contains(HasSubstr("read, bit for bit")));
  convert(path("in.safetensors"), path("other.safetensors"), {.rename = {{"odd", "even"}}});
  const VerifyReport report = verify(path("other.safetensors"), options);
  ASSERT_FALSE(report.clean());
  EXPECT_EQ(report.findings[0].kind, Fault::receipt);
  EXPECT_EQ(report.findings[0].name, "");
}

TEST_F(VerifyTest, AReceiptThatSpeaksTwiceOfATensorDoesNotHold) {
  convert(path("in.safetensors"), path("out.pt"), {.receipt = path("r.json")});
  Receipt receipt = read_receipt(path("r.json"));
  EXPECT_THAT(check_receipt(path("out.pt"), receipt).problems, IsEmpty());
  receipt.output.tensors.push_back(receipt.output.tensors[0]);
  receipt.output.tensors.back().sha256.assign(64, '0');
  EXPECT_THAT(check_receipt(path("out.pt"), receipt).problems, ElementsAre(HasSubstr("twice")));
}

TEST_F(VerifyTest, WhatCannotBeReadIsAnError) {
  EXPECT_EQ(error_of([&] { static_cast<void>(verify(path("absent.pt"))); }).code(), Errc::file_not_found);
}

}  // namespace
}  // namespace ballast
