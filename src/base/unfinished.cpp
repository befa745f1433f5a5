// SPDX-License-Identifier: Apache-2.0
#include "base/unfinished.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstring>

#include "base/atomic_file.h"

namespace ballast {
namespace {

constexpr std::size_t kMaxUnfinished = 512;  // the shards of the largest models

enum : int { kFree, kBeingFilled, kListed, kDiscarded };

struct UnfinishedEntry {
  std::atomic<int> state{kFree};
  std::atomic<Unfinished> kind{Unfinished::plain};
  std::array<char, PATH_MAX> path{};
};

std::array<UnfinishedEntry, kMaxUnfinished> unfinished;  // constant-initialised: no static constructor runs

// One pass over a folder by the system's own calls: opendir() allocates, which a signal handler may not.
// Whether something went.
bool remove_files_of(int folder) noexcept {
  constexpr std::size_t kLengthAt = 16;  // of struct linux_dirent64: inode, offset, length, kind, name
  constexpr std::size_t kNameAt = 19;
  alignas(std::uint64_t) std::array<char, 4096> entries{};
  bool any = false;
  lseek(folder, 0, SEEK_SET);
  while (true) {
    const long got = syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (got <= 0) return any;
    for (long at = 0; at < got;) {
      std::uint16_t length = 0;
      std::memcpy(&length, entries.data() + at + kLengthAt, sizeof length);
      any = unlinkat(folder, entries.data() + at + kNameAt, 0) == 0 || any;
      at += length;
    }
  }
}

// Again while something goes: another thread may still be writing there.
void empty_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  while (remove_files_of(folder)) {
  }
  close(folder);
}

}  // namespace

int list_unfinished(const std::string& path, Unfinished kind) noexcept {
  if (path.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < unfinished.size(); ++i) {
    int expected = kFree;
    if (!unfinished[i].state.compare_exchange_strong(expected, kBeingFilled)) continue;
    std::memcpy(unfinished[i].path.data(), path.c_str(), path.size() + 1);
    unfinished[i].kind.store(kind);
    unfinished[i].state.store(kListed);
    return static_cast<int>(i);
  }
  return -1;
}

void unlist_unfinished(int entry) noexcept {
  int expected = kListed;
  if (entry >= 0) unfinished[static_cast<std::size_t>(entry)].state.compare_exchange_strong(expected, kFree);
}

void discard_unfinished_files() noexcept {
  for (UnfinishedEntry& entry : unfinished) {
    // Taken out of the list first, so that nobody reuses the entry while its name is read.
    int expected = kListed;
    if (entry.state.compare_exchange_strong(expected, kDiscarded)) unlink(entry.path.data());
  }
  for (UnfinishedEntry& entry : unfinished) {  // folders, now that they are empty
    if (entry.state != kDiscarded) continue;
    if (entry.kind.load() == Unfinished::scratch) empty_folder(entry.path.data());
    rmdir(entry.path.data());
  }
}

}  // namespace ballast
