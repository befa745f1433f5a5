// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tar archive: refused, or members that lie inside it one behind the other, each with a name
// of its own that leads nowhere else. A mutator of its own keeps the checksums right: behind a wrong one
// nothing is looked at.
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

#include "ballast/error.h"
#include "containers/tar.h"
#include "watched.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using namespace ballast;
using fuzzing::complain;

constexpr std::size_t kBlock = 512;
constexpr std::size_t kSumAt = 148;
constexpr std::size_t kSumSize = 8;
constexpr std::size_t kMagicAt = 257;

void check_members(const std::vector<containers::TarMember>& members, std::uint64_t size) {
  std::set<std::string> names;
  std::uint64_t end = 0;
  for (const containers::TarMember& member : members) {
    const bool leads_out =
        member.name.starts_with('/') || ("/" + member.name + "/").find("/../") != std::string::npos;
    if (member.name.empty() || leads_out || member.name.find('\0') != std::string::npos)
      complain("a member is called " + member.name);
    if (!names.insert(member.name).second) complain("two members are called " + member.name);
    if (member.offset < end + kBlock || member.offset % kBlock != 0) complain("a member without a header");
    end = member.offset + member.size;
    if (end < member.offset || end > size) complain("a member that ends behind the file");
  }
}

// The checksum of a header is the sum of its bytes, with spaces where it stands itself.
void repair(std::uint8_t* header) {
  std::memset(header + kSumAt, ' ', kSumSize);
  unsigned sum = 0;
  for (std::size_t i = 0; i < kBlock; ++i) sum += header[i];
  std::snprintf(reinterpret_cast<char*>(header + kSumAt), kSumSize, "%06o", sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  try {
    const auto source = memory_source(Storage::borrow(static_cast<const void*>(data), size), "fuzz");
    check_members(containers::read_tar_members(*source), size);
  } catch (const Error&) {
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0) return size;
  for (std::size_t at = 0; at + kBlock <= size; at += kBlock) {
    if (std::memcmp(data + at + kMagicAt, "ustar", 5) == 0) repair(data + at);
  }
  return size;
}
