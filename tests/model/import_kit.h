// SPDX-License-Identifier: Apache-2.0
// Files PyTorch made, and what PyTorch says is in them.
#pragma once

#include <simdjson.h>

#include <map>
#include <string>

#include "ballast/load_file.h"
#include "formats/sha256.h"
#include "model/model_kit.h"

namespace ballast::testing_kit {

inline const std::string kTorchFiles = BALLAST_TEST_DATA "/fixtures/torch/files/";
inline const std::string kImportFiles = BALLAST_TEST_DATA "/fixtures/import/";

using Digests = std::map<std::string, std::string>;  // key → SHA-256 of the row-major bytes

/// Of a file in fixtures/torch/files; empty when it is not known.
inline Digests torch_digests(const std::string& file) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load(BALLAST_TEST_DATA "/fixtures/torch/expect.json");
  Digests found;
  simdjson::dom::element expected;
  if (all["files"][file].get(expected) != simdjson::SUCCESS) return found;
  for (const simdjson::dom::element tensor : expected["tensors"].get_array()) {
    found.emplace(std::string(std::string_view(tensor["name"])),
                  std::string(std::string_view(tensor["sha256"])));
  }
  return found;
}

/// Of a file in fixtures/import.
inline Digests import_digests(const std::string& file) {
  simdjson::dom::parser parser;
  const simdjson::dom::element all = parser.load(kImportFiles + "expect.json");
  Digests found;
  for (const auto& [key, value] : all[file].get_object())
    found.emplace(std::string(key), std::string(std::string_view(value)));
  return found;
}

inline std::string digest(const Tensor& tensor) {
  const Tensor row_major = tensor.contiguous();
  return testing::sha256({row_major.data(), static_cast<std::size_t>(row_major.size_bytes())});
}

/// By key, of what to_checkpoint() would write.
template <class Model>
Digests digests_of(const Model& model) {
  Digests found;
  for (const Entry& entry : to_checkpoint(model))
    found.emplace(std::string(entry.name), digest(entry.tensor()));
  return found;
}

}  // namespace ballast::testing_kit
