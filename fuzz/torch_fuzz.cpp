// SPDX-License-Identifier: Apache-2.0
// Any bytes as a whole file: zip, TorchScript, legacy stream, tar, bare pickle. Beyond not crashing, on a
// small stack and within the budget: every tensor that is listed can be read or refused.
#include <cstdint>
#include <cstring>

#include "ballast/error.h"
#include "ballast/root.h"
#include "formats/open.h"
#include "limits.h"
#include "torch_mutator.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  ballast::fuzzing::watch_memory();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ballast;
  const fuzzing::Limits limits(size);
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
    if (find_root(checkpoint).checkpoint.size() > checkpoint.size())
      fuzzing::complain("a root with more tensors");
  } catch (const Error&) {
    return 0;
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace ballast::fuzzing;
  return put(TorchMutator(seed, max_size).mutate(as_view(data, size)), data, max_size);
}
