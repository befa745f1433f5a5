// SPDX-License-Identifier: Apache-2.0
// The files of a model as they are signed: those of a folder and all below it, or one file by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ballast/runtime.h"
#include "seal/statement.h"

namespace ballast::seal {

struct ModelFile {
  std::string name;  // as in SignedFile
  std::string path;
  std::uint64_t size = 0;
  std::string state;  // device, number, size and times: another text when it changed
  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

/// What counts, as `model_signing` has it.
struct FileRules {
  std::vector<std::string> ignored;  // plain paths (statement.h), each with all below it
  bool allow_symlinks = false;
};

struct ModelFiles {
  std::vector<ModelFile> files;             // in the order of before_path()
  std::vector<std::string> linked_folders;  // which are not followed
  friend bool operator==(const ModelFiles&, const ModelFiles&) = default;
};

/// Every regular file. Symbolic links that are not allowed, links that lead nowhere, pipes, sockets and
/// devices are refused, also where they are ignored.
[[nodiscard]] ModelFiles list_files(const std::string& model, const FileRules& rules);

/// The same for these names alone, as far as they are there.
[[nodiscard]] ModelFiles find_files(const std::string& model, const std::vector<SignedFile>& names,
                                    const FileRules& rules);

/// Of each file, in their order: many at a time, the largest first, each from its beginning to its end.
[[nodiscard]] std::vector<Sha256::Digest> hash_files(const std::vector<ModelFile>& files,
                                                     const Progress& progress);

/// What the model is called: the last part of its path.
[[nodiscard]] std::string model_name(const std::string& model);

/// The place of `path` in the model with all links resolved, as a plain path; empty when it is not in it.
[[nodiscard]] std::string place_in_model(const std::string& model, const std::string& path);

}  // namespace ballast::seal
