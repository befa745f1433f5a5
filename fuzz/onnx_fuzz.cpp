// SPDX-License-Identifier: Apache-2.0
// Any bytes as an ONNX model, whatever they begin with: refused with an Error, or opened; what is opened can
// be read to the last byte, and is the same read in pieces and as a whole.
#include <cstring>

#include "formats/onnx/onnx.h"
#include "open_and_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ballast;
  const auto bytes = Storage::borrow(static_cast<const void*>(data), size);
  try {
    const Checkpoint checkpoint = onnx_file::open_onnx(*memory_source(bytes, "fuzz"), kExpansion);
    std::uint64_t total = 0;
    for (const Entry& entry : checkpoint) {
      if ((total += entry.bytes) > fuzzing::kMostBytes) return 0;
      const std::vector<std::byte> read = fuzzing::bytes_of(entry);
      if (info(entry.dtype).bits < 8 || read.empty()) continue;
      if (std::memcmp(entry.tensor().data(), read.data(), read.size()) != 0)
        fuzzing::complain("a tensor's bytes differ from what reading it gives");
    }
  } catch (const Error&) {
  }
  fuzzing::run(data, size, ".any");
  return 0;
}
