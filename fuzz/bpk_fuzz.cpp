// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Burnpack. Most inputs are metadata alone: header, length and data are put around it.

#include "open_and_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  if ((data[0] & 1U) == 0) {
    ballast::fuzzing::run(data + 1, size - 1, ".bpk");
    return 0;
  }
  std::string file("NRUB\1\0", 6);
  const auto length = static_cast<std::uint32_t>(size - 1);
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  file.append(reinterpret_cast<const char*>(data + 1), size - 1);
  file.resize((file.size() + 255) / 256 * 256 + 1024, '\7');
  ballast::fuzzing::run(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), ".bpk");
  return 0;
}
