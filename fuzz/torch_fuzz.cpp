// SPDX-License-Identifier: Apache-2.0
// Any bytes as a whole file: zip, TorchScript, legacy stream, tar, bare pickle. Beyond not crashing: every
// tensor that is listed can be read or refused.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "ballast/error.h"
#include "ballast/root.h"
#include "formats/open.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ballast;
  const auto copy = Storage::heap(size);
  if (size != 0) std::memcpy(copy->mutable_data(), data, size);
  Checkpoint checkpoint;
  try {
    checkpoint = open_bytes(copy, {.inert = size % 2 == 1});
  } catch (const Error&) {
    return 0;
  }
  for (const Entry& entry : checkpoint) {
    try {
      const Tensor tensor = entry.tensor();
      if (!tensor.has_data() || tensor.size_bytes() > 65536) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
      tensor.read(0, bytes);
    } catch (const Error&) {
      continue;
    }
  }
  try {
    if (find_root(checkpoint).checkpoint.size() > checkpoint.size()) std::abort();
  } catch (const Error&) {
    return 0;
  }
  return 0;
}
