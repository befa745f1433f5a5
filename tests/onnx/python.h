// SPDX-License-Identifier: Apache-2.0
// An ONNX file as the official Python package sees it, one line for each thing in it (look.py).
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace onnx_tests {

inline std::string look(const std::string& path) {
  const std::string command =
      std::string(BALLAST_PYTHON) + " -B " + BALLAST_TEST_DATA + "/onnx/look.py '" + path + "' 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), size);
  EXPECT_EQ(pclose(pipe), 0) << text;
  return text;
}

}  // namespace onnx_tests
