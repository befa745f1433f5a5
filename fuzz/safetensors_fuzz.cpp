// SPDX-License-Identifier: Apache-2.0
// Any bytes as a Safetensors file. Beyond not crashing: our verdict is that of a second parser, strict mode
// accepts a part of what reference mode accepts, a file on the disk is read like one in memory, and what is
// read can be written and read again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "formats/safetensors_properties.h"

namespace {

using namespace ballast;
using namespace ballast::safetensors;

std::string outcome(const std::string& path, std::string_view file, const OpenOptions& options) {
  try {
    const Checkpoint checkpoint =
        path.empty() ? parse(Storage::borrow(static_cast<const void*>(file.data()), file.size()), options)
                     : open(path, options);
    std::string text = fmt::format("{} tensors", checkpoint.size());
    for (const Entry& entry : checkpoint) {
      text += entry.name;
      for (const std::byte b : properties::bytes_of(entry)) text += static_cast<char>(b);
    }
    return text;
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
}

// The same bytes as a file, which is slow: for a share of the inputs.
void check_on_disk(std::string_view file) {
  const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
  if (descriptor < 0 || write(descriptor, file.data(), file.size()) != static_cast<ssize_t>(file.size()))
    std::abort();
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  const std::string in_memory = outcome("", file, {});
  if (outcome(path, file, {.io = Io::read}) != in_memory ||
      outcome(path, file, {.io = Io::map}) != in_memory) {
    std::fputs("a file on the disk is read differently\n", stderr);
    std::abort();
  }
  close(descriptor);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  // Most inputs are a header with the right length put before it, so that the fuzzer does not have to guess
  // one. The first byte says what is what.
  if (given.empty()) return 0;
  std::string file;
  if ((data[0] & 1U) != 0) {
    const std::size_t tail = std::min<std::size_t>(data[0] >> 3U, given.size() - 1);
    const std::uint64_t length = given.size() - 1 - tail;
    file.assign(8, '\0');
    std::memcpy(file.data(), &length, 8);
  }
  file += given.substr(1);
  const std::string complaint = properties::broken(file);
  if (!complaint.empty()) {
    std::fprintf(stderr, "%s\n", complaint.c_str());
    std::abort();
  }
  if ((data[0] & 6U) == 6U && std::hash<std::string_view>()(file) % 16 == 0) check_on_disk(file);
  return 0;
}
