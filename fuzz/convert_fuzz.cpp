// SPDX-License-Identifier: Apache-2.0
// The round trip: any bytes as a file, strictly or inertly; what is opened is written in every format there
// is and opened again, and must be the same or have been refused. What is written for PyTorch is clean to a
// scan and holds the same values.
#include "ballast/scan.h"
#include "same_values.h"
#include "torch_mutator.h"
#include "watched.h"

namespace {

using namespace ballast;
using namespace ballast::fuzzing;

constexpr std::uint64_t kCopies = std::uint64_t{256} << 20U;  // two checkpoints, and what is being written

void check_scan(const std::string& path) {
  const ScanReport report = scan(path);
  if (report.verdict() == Verdict::clean) return;
  std::string what = "written, and not clean:";
  for (const ScanFinding& finding : report.findings) what += ' ' + finding.what;
  for (const ScanGlobal& global : report.globals) what += ' ' + global.name;
  complain(what);
}

void check_torch(const Checkpoint& checkpoint, const std::string& path, const Checkpoint& copy) {
  check_scan(path);
  // What is an object is written as the tensors in it.
  if (!checkpoint.tree || checkpoint.tree->kind() == Kind::object) return;
  const std::string difference = ValueComparison().run(*checkpoint.tree, *copy.tree);
  if (!difference.empty()) complain("a copy holds other values, " + difference);
}

void convert(const Checkpoint& checkpoint, Format format) {
  const bool is_torch = format->holds_tree;
  const std::string path = copy_path(".copy");
  const auto copy = copy_of(checkpoint, path, {.format = format});
  if (copy && format == formats::npy) {  // one tensor without a name
    if (copy->size() != 1 || !is_same((*copy)[0], checkpoint[0])) complain("an array is another");
  } else if (copy) {
    check_copy(checkpoint, *copy);
    if (is_torch) check_torch(checkpoint, path, *copy);
  } else if (is_torch && copy_of(checkpoint, path, {.format = format, .simplify = true})) {
    check_scan(path);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Limits limits(size, kCopies);
  const auto bytes = Storage::heap(size);
  if (size != 0) std::memcpy(bytes->mutable_data(), data, size);
  Checkpoint checkpoint;
  try {
    checkpoint = open_bytes(bytes, {.inert = size % 2 == 1});
    if (!is_readable(checkpoint)) return 0;
  } catch (const Error&) {
    return 0;
  }
  for (const Format format : writable_formats()) convert(checkpoint, format);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  return put(TorchMutator(seed, max_size).mutate(as_view(data, size)), data, max_size);
}
