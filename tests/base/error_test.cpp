// SPDX-License-Identifier: Apache-2.0
#include "ballast/error.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/fail.h"

namespace ballast {
namespace {

// What programs may have kept: rows are added here, never changed and never taken away.
constexpr std::pair<int, std::string_view> kCodes[] = {
    {1, "invalid-argument"},   {2, "not-found"},
    {3, "already-exists"},     {4, "unsupported"},
    {5, "not-representable"},  {20, "file-not-found"},
    {21, "permission-denied"}, {22, "io-error"},
    {23, "no-space"},          {24, "not-regular-file"},
    {25, "file-changed"},      {26, "unknown-format"},
    {27, "truncated"},         {28, "trailing-data"},
    {40, "header-too-large"},  {41, "bad-utf8"},
    {42, "bad-json"},          {43, "duplicate-key"},
    {44, "bad-name"},          {45, "bad-dtype"},
    {46, "size-overflow"},     {47, "size-mismatch"},
    {48, "misaligned"},        {49, "offset-out-of-range"},
    {50, "overlap"},           {51, "gap"},
    {52, "shape-mismatch"},    {70, "forbidden-global"},
    {71, "forbidden-opcode"},  {72, "bad-pickle"},
    {73, "frame-violation"},   {74, "type-mismatch"},
    {75, "memo-range"},        {76, "too-deep"},
    {77, "too-many"},          {78, "expansion-limit"},
    {79, "expanded-view"},     {80, "missing-storage"},
    {100, "bad-zip"},          {101, "zip-ambiguous"},
    {102, "name-mismatch"},    {103, "duplicate-entry"},
    {104, "encrypted-flag"},   {105, "unsupported-method"},
    {106, "bad-crc"},          {107, "bad-tar"},
    {108, "bad-gzip"},         {109, "bad-burn"},
    {110, "bad-npy"},          {111, "bad-onnx"},
    {112, "path-escape"},      {113, "missing-shard"},
    {114, "index-mismatch"},   {115, "bad-age"},
    {116, "cannot-decrypt"},   {117, "bad-tag"},
    {118, "bad-bundle"},       {119, "bad-packed"},
    {120, "wrong-signature"},  {140, "load-failed"},
    {150, "traced-value"},     {151, "baked-dimension"},
    {152, "not-exportable"},   {153, "onnx-invalid"},
};

TEST(Error, NumbersOfCodesNeverChange) {
  for (const auto& [number, text] : kCodes) EXPECT_EQ(name(static_cast<Errc>(number)), text) << number;
}

TEST(Error, EveryCodeHasANumberAndANameOfItsOwn) {
  std::map<int, std::string_view> known(std::begin(kCodes), std::end(kCodes));
  std::set<std::string_view> names;
  for (int number = 0; number <= 255; ++number) {
    const std::string_view text = name(static_cast<Errc>(number));
    EXPECT_EQ(text != "unknown", known.contains(number)) << number << ' ' << text;
    if (text == "unknown") continue;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
  EXPECT_EQ(names.size(), std::size(kCodes));
}

TEST(Error, SaysWhereAndWhat) {
  const Error error(Errc::overlap, "a.safetensors", "two on one place");
  EXPECT_STREQ(error.what(), "a.safetensors: two on one place");
  EXPECT_EQ(error.where(), "a.safetensors");
  EXPECT_STREQ(Error(Errc::overlap, "", "alone").what(), "alone");
}

TEST(Error, SystemErrorsBecomeTheCodeThatFits) {
  const auto code_of = [](int number) {
    try {
      fail_errno(number, "here", "cannot");
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code_of(ENOSPC), Errc::no_space);
  EXPECT_EQ(code_of(EDQUOT), Errc::no_space);
  EXPECT_EQ(code_of(EFBIG), Errc::no_space);
  EXPECT_EQ(code_of(ENOENT), Errc::file_not_found);
  EXPECT_EQ(code_of(EEXIST), Errc::already_exists);
  EXPECT_EQ(code_of(EACCES), Errc::permission_denied);
  EXPECT_EQ(code_of(EPERM), Errc::permission_denied);
  EXPECT_EQ(code_of(EIO), Errc::io_error);
}

}  // namespace
}  // namespace ballast
