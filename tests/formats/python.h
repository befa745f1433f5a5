// SPDX-License-Identifier: Apache-2.0
// Python as the oracle of format tests: scripts that make files, and torch that reads ours.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ballast {

/// A folder of this process, gone with it: test programs run side by side.
inline const std::string& python_folder() {
  struct Folder {
    std::string path = std::string(BALLAST_TEST_OUTPUT) + "/python/" + std::to_string(getpid());

    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };

  static const Folder folder;
  return folder.path;
}

/// Runs `script` with a fresh folder as its argument; the folder. A script that fails fails the test.
inline std::string run_python(const std::string& folder, const std::string& script,
                              const std::string& more_arguments = {}) {
  const std::string path = python_folder() + "/" + folder;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  std::ofstream(path + "/script.py") << script;
  const std::string command = std::string(BALLAST_PYTHON) + " '" + path + "/script.py' '" + path + "' " +
                              more_arguments + " > '" + path + "/log' 2>&1";
  if (std::system(command.c_str()) != 0) {  // NOLINT(cert-env33-c): a test's own command
    std::ifstream log(path + "/log");
    ADD_FAILURE() << command << '\n' << log.rdbuf();
  }
  return path;
}

/// Whether this machine's Python has torch.
inline bool has_torch() {
  static const bool found =
      std::system((std::string(BALLAST_PYTHON) + " -c 'import torch' > /dev/null 2>&1").c_str()) ==
      0;  // NOLINT
  return found;
}

}  // namespace ballast
