// SPDX-License-Identifier: Apache-2.0
// Every case of tests/formats/safetensors/cases.tsv: the reference's verdict and, where it accepts, the
// reference's view of the content.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors/header.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

// What the reference prints for an accepted file: "name":DTYPE[dims]#bytes …, by name, then the metadata.
std::string rust_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\0')
      out += "\\0";
    else if (c == '"' || c == '\\')
      (out += '\\') += c;
    else
      out += c;
  }
  return out + '"';
}

std::string describe(const Header& header) {
  std::map<std::string_view, std::string> tensors;
  for (const HeaderEntry& entry : header.tensors) {
    tensors[entry.name()] = fmt::format("{}:{}[{}]#{} ", rust_quoted(entry.name()), info(entry.dtype).code,
                                        fmt::join(header.shape(entry), ", "), entry.end - entry.begin);
  }
  std::string out;
  for (const auto& [name, text] : tensors) out += text;
  const auto metadata = metadata_of(header);
  if (!metadata) return out + "meta=None";
  std::vector<std::string> pairs;
  for (const auto& [key, value] : *metadata) pairs.push_back(rust_quoted(key) + ": " + rust_quoted(value));
  return out + fmt::format("meta=Some({{{}}})", fmt::join(pairs, ", "));
}

// What each refusal of the reference may be called here.
const std::map<std::string, std::set<Errc>> kCodes = {
    {"HeaderTooSmall", {Errc::truncated}},
    {"HeaderTooLarge", {Errc::header_too_large}},
    {"InvalidHeaderLength", {Errc::truncated}},
    {"InvalidHeader", {Errc::bad_utf8}},
    {"InvalidHeaderDeserialization", {Errc::bad_json, Errc::bad_dtype, Errc::duplicate_key}},
    {"InvalidOffset", {Errc::overlap, Errc::gap, Errc::offset_out_of_range}},
    {"TensorInvalidInfo", {Errc::size_mismatch}},
    {"MetadataIncompleteBuffer", {Errc::truncated, Errc::trailing_data}},
    {"ValidationOverflow", {Errc::size_overflow}},
    {"MisalignedSlice", {Errc::misaligned}},
};

// Cases the reference accepts and strict mode does not.
const std::map<std::string, Errc> kStrictRefusals = {
    {"dup_tensor_same", Errc::duplicate_key},    {"dup_tensor_lastwins_valid", Errc::duplicate_key},
    {"dup_tensor_escaped", Errc::duplicate_key}, {"dup_meta_key", Errc::duplicate_key},
    {"shape_u64max", Errc::size_overflow},       {"shape_0_then_max", Errc::size_overflow},
    {"shape_0_max_max", Errc::size_overflow},    {"name_nul", Errc::bad_name},
};

std::string verdict(const Case& test, Mode mode) {
  try {
    return "OK " + describe(read_header(*in_memory(test.file), test.name, mode));
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
}

TEST(SafetensorsConformance, HasAllCases) {
  EXPECT_EQ(conformance_cases().size(), 137U);
}

TEST(SafetensorsConformance, ReferenceModeAgreesWithTheReferenceOnVerdictAndContent) {
  for (const Case& test : conformance_cases()) {
    SCOPED_TRACE(test.name);
    const std::string found = verdict(test, Mode::reference);
    if (test.verdict == "OK") {
      EXPECT_EQ(found, "OK " + test.detail);
    } else {
      ASSERT_TRUE(kCodes.contains(test.verdict)) << test.verdict;
      std::set<std::string> allowed;
      for (const Errc code : kCodes.at(test.verdict)) allowed.emplace(name(code));
      EXPECT_TRUE(allowed.contains(found)) << found << " for " << test.verdict;
    }
  }
}

TEST(SafetensorsConformance, StrictModeDiffersOnlyWhereItShould) {
  for (const Case& test : conformance_cases()) {
    SCOPED_TRACE(test.name);
    const std::string strict = verdict(test, Mode::strict);
    if (const auto refused = kStrictRefusals.find(test.name); refused != kStrictRefusals.end()) {
      EXPECT_EQ(strict, name(refused->second));
    } else if (test.name == "dup_tensor_lastinvalid") {
      EXPECT_EQ(strict, "duplicate-key");  // and not the misleading overlap
    } else {
      EXPECT_EQ(strict, verdict(test, Mode::reference));
    }
  }
}

TEST(SafetensorsConformance, OpenAndParseGiveTheSameVerdictsAsTheHeader) {
  for (const Case& test : conformance_cases()) {
    SCOPED_TRACE(test.name);
    const TemporaryFile file(test.file);
    const auto result = [](auto&& read) {
      try {
        return fmt::format("OK {}", read().total_bytes());
      } catch (const Error& error) {
        return fmt::format("{} in {}", name(error.code()), error.where());
      }
    };
    const std::string mapped = result([&] { return open(file.path(), {.mode = Mode::reference}); });
    const std::string positioned =
        result([&] { return open(file.path(), {.mode = Mode::reference, .io = Io::read}); });
    const std::string parsed = result([&] { return parse(in_memory(test.file), {.mode = Mode::reference}); });
    EXPECT_EQ(mapped, positioned);
    EXPECT_EQ(mapped.substr(0, mapped.find(" in ")), parsed.substr(0, parsed.find(" in ")));
    EXPECT_EQ(mapped.starts_with("OK "), test.verdict == "OK");
    EXPECT_TRUE(test.verdict == "OK" || mapped.ends_with(" in " + file.path())) << mapped;
  }
}

}  // namespace
}  // namespace ballast::safetensors
