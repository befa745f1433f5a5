// SPDX-License-Identifier: Apache-2.0
// Any bytes as an index of shards: refused, or a list of names none of which leads out of the folder.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ballast/error.h"
#include "formats/shards/shards.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ballast;
  try {
    const shards::Index index =
        shards::parse_index(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    for (const std::string& file : index.files) {
      if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
          file.find('\0') != std::string::npos)
        std::abort();
    }
    for (std::size_t i = 0; i < index.map.size(); ++i) {
      if (index.map[i].second >= index.files.size()) std::abort();
      if (i > 0 && !(index.map[i - 1].first < index.map[i].first)) std::abort();
    }
  } catch (const Error&) {
  }
  return 0;
}
