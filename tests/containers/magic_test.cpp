// SPDX-License-Identifier: Apache-2.0
#include "containers/magic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace ballast {
namespace {

using namespace std::string_view_literals;
using testing::StartsWith;

std::string what(std::string_view bytes) {
  return std::string(containers::what_is_it(as_bytes(bytes)));
}

TEST(Magic, KnowsArchivesImagesAndModels) {
  EXPECT_THAT(what("\xfd"
                   "7zXZ\0\0"sv),
              "an xz file");
  EXPECT_THAT(what("\x28\xb5\x2f\xfd"
                   "abcd"),
              "a zstd file");
  EXPECT_THAT(what("7z\xbc\xaf\x27\x1c\0\x04"sv), "a 7z archive");
  EXPECT_THAT(what("\x89PNG\r\n\x1a\n"), "a PNG image");
  EXPECT_THAT(what("\x93NUMPY\x01\0"sv), "a NumPy .npy file");
  EXPECT_THAT(what("\x89HDF\r\n\x1a\n"), StartsWith("an HDF5 file"));
  EXPECT_THAT(what("\x80\x04\x95\x10\0\0\0\0\0\0\0"sv), StartsWith("a pickle"));
}

TEST(Magic, KnowsTextOfEveryKind) {
  EXPECT_THAT(what("\xEF\xBB\xBF \n<HTML lang=en>"), StartsWith("an HTML page"));
  EXPECT_THAT(what("<?xml version=\"1.0\"?><Error>"), StartsWith("an XML document"));
  EXPECT_THAT(what("<Error><Code>AccessDenied"), StartsWith("an XML document"));
  EXPECT_THAT(what("[1, 2]"), "JSON text");
  EXPECT_THAT(what("déjà vu"), "plain text");
  EXPECT_THAT(what("cut inside a character \xc3"), "plain text");
}

TEST(Magic, KnowsATarByItsChecksum) {
  std::string block(512, '\0');
  block.replace(0, 8, "sys_info");
  block.replace(148, 8, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  block.replace(148, 7, std::string_view(digits, 7));
  EXPECT_THAT(what(block), StartsWith("a tar archive"));
  block[0] = 'x';
  EXPECT_EQ(what(block), "");
}

TEST(Magic, SaysNothingAboutTheUnknown) {
  EXPECT_EQ(what(""), "");
  EXPECT_EQ(what("\0\0\0\0\0\0\0\0"sv), "");
  EXPECT_EQ(what("\xff\xfe\0\x01\x02\x03"sv), "");
}

}  // namespace
}  // namespace ballast
