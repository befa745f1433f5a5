// SPDX-License-Identifier: Apache-2.0
// Any bytes as a whole file: zip, TorchScript, legacy stream, tar, bare pickle. Beyond not crashing, on a
// small stack and within the budget: every tensor that is listed can be read or refused; for a share of the
// inputs, what a scan calls clean is opened strictly, and what is refused as able to run code is a danger.
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "ballast/error.h"
#include "ballast/scan.h"
#include "ballast/steps.h"
#include "formats/open.h"
#include "torch_mutator.h"
#include "watched.h"

namespace {

using namespace ballast;

std::optional<Errc> refusal_of(const std::shared_ptr<Storage>& bytes) {
  try {
    static_cast<void>(open_bytes(bytes));
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

void check_scan(const std::shared_ptr<Storage>& bytes) {
  const std::string path = "/dev/shm/ballast-fuzz-scan-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  const auto refused = refusal_of(bytes);
  try {
    const Verdict verdict = scan(path).verdict();
    if (verdict == Verdict::clean && refused) fuzzing::complain("clean, and refused");
    if (verdict != Verdict::danger && refused == Errc::forbidden_global)
      fuzzing::complain("able to run code, and no danger to a scan");
  } catch (const Error& error) {
    if (!refused) fuzzing::complain("opened, and not scanned: " + std::string(error.what()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  const auto copy = Storage::heap(size);
  if (size != 0) std::memcpy(copy->mutable_data(), data, size);
  if (size % 4 == 0) check_scan(copy);
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
