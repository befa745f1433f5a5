// SPDX-License-Identifier: Apache-2.0
// file_probe: what Ballast makes of whole files, for scripts/check-states, which asks Python the same. stdin:
// files, each behind its length (4 bytes, little-endian). stdout, a line for each:
//
//   <verdict> <value>      of a scan; the value (CanonicalText) when it is clean, "-" otherwise
//   ! <error code>         no model file; or clean and refused, with "clean" before the code
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/scan.h"
#include "oracle/canonical_text.h"

namespace {

using namespace ballast;

std::string line_of(const std::string& path) {
  std::string verdict;
  try {
    verdict = name(scan(path).verdict());
    if (verdict != "clean") return verdict + " -";
    const Checkpoint opened = open(path);
    return verdict + " " + (opened.tree ? testing::CanonicalText::of(*opened.tree) : "-");
  } catch (const Error& error) {
    return "! " + (verdict.empty() ? "" : verdict + "-") + std::string(name(error.code()));
  }
}

}  // namespace

int main() {
  std::uint32_t size = 0;
  while (std::fread(&size, 1, sizeof size, stdin) == sizeof size) {
    std::string bytes(size, '\0');
    if (std::fread(bytes.data(), 1, size, stdin) != size) return 1;
    const int file = memfd_create("probe", MFD_CLOEXEC);
    if (file < 0 || write(file, bytes.data(), size) != static_cast<ssize_t>(size)) return 1;
    std::cout << line_of("/proc/self/fd/" + std::to_string(file)) << std::endl;  // at once, as pickle_probe
    close(file);
  }
  return 0;
}
