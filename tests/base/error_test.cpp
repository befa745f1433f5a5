// SPDX-License-Identifier: Apache-2.0
#include "ballast/error.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <set>

#include "base/fail.h"

namespace ballast {
namespace {

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Errc::onnx_invalid); ++code) {
    const std::string_view text = name(static_cast<Errc>(code));
    EXPECT_NE(text, "unknown") << code;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
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
