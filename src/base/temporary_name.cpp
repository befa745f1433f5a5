// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is POSIX
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <random>

namespace ballast {
namespace {

// Where a process's number means something: this boot of this machine, and the space its numbers are counted
// in.
std::uint32_t process_space() {
  static const std::uint32_t made = [] {
    std::array<char, 256> text{};
    std::size_t size = 0;
    if (const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); file >= 0) {
      size = static_cast<std::size_t>(std::max<ssize_t>(0, read(file, text.data(), 128)));
      close(file);
    }
    size += static_cast<std::size_t>(
        std::max<ssize_t>(0, readlink("/proc/self/ns/pid", text.data() + size, text.size() - size)));
    std::uint32_t mixed = 2166136261U;  // FNV-1a: the same in every process
    for (const char c : std::string_view(text.data(), size))
      mixed = (mixed ^ static_cast<unsigned char>(c)) * 16777619U;
    return mixed;
  }();
  return made;
}

// What a temporary's name is cut to, so that it is legal wherever the target's is.
constexpr std::size_t kLongestBase = 200;

}  // namespace

// ".NAME.SPACE-PROCESS-RANDOM.tmp", the three in hexadecimal.
std::string temporary_name(const std::string& target) {
  const std::size_t slash = target.rfind('/');
  const std::size_t name_at = slash == std::string::npos ? 0 : slash + 1;
  std::random_device random;
  return target.substr(0, name_at) + fmt::format(".{}.{:08x}-{:x}-{:08x}.tmp",
                                                 target.substr(name_at, kLongestBase), process_space(),
                                                 static_cast<unsigned>(getpid()), random());
}

bool is_left_behind(std::string_view name, std::string_view target) {
  const std::string_view base = target.substr(0, kLongestBase);
  constexpr std::string_view kSuffix = ".tmp";
  if (!name.starts_with("." + std::string(base)) || !name.ends_with(kSuffix)) return false;
  name.remove_suffix(kSuffix.size());
  const std::string mark = fmt::format(".{:08x}-", process_space());
  const std::size_t at = name.rfind(mark);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = name.substr(at + mark.size());
  unsigned process = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), process, 16);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '-') return false;
  return kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
}

}  // namespace ballast
