// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

namespace ballast {
namespace {

std::optional<int> cores_of(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return static_cast<int>(std::clamp((quota + period - 1) / period, 1.0, double{INT_MAX}));
}

// "200000 100000": microseconds in a period; "max 100000" is no limit.
std::optional<int> limit_of_version_2(const std::string& folder) {
  double quota = 0;
  double period = 0;
  std::ifstream(folder + "/cpu.max") >> quota >> period;
  return cores_of(quota, period);
}

std::optional<int> limit_of_version_1(const std::string& folder) {
  double quota = 0;  // -1 is no limit
  double period = 0;
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return cores_of(quota, period);
}

void lower(std::optional<int>& least, std::optional<int> other) {
  if (other && (!least || *other < *least)) least = other;
}

bool names_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');)
    if (name == "cpu") return true;
  return false;
}

int cores_in_affinity_mask() noexcept {
  // The mask of a machine with very many cores does not fit cpu_set_t; the kernel says so by refusing.
  for (std::size_t cores = CPU_SETSIZE; cores <= (1U << 20U); cores *= 2) {
    cpu_set_t* mask = CPU_ALLOC(cores);
    if (mask == nullptr) break;
    const bool known = sched_getaffinity(0, CPU_ALLOC_SIZE(cores), mask) == 0;
    const int count = known ? CPU_COUNT_S(CPU_ALLOC_SIZE(cores), mask) : 0;
    CPU_FREE(mask);
    if (known && count > 0) return count;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<int> quota_cores(const std::string& root) {
  std::optional<int> least;
  std::ifstream groups(root + "/proc/self/cgroup");
  // hierarchy:controllers:path, where version 2 is hierarchy 0 and names no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version_2 = controllers.empty();
    if (!version_2 && !names_cpu(controllers)) continue;
    const std::string mount = root + "/sys/fs/cgroup" + (version_2 ? "" : "/cpu");
    // A limit above binds too. Inside a container the path may be the host's, which is not to be seen here;
    // what is mounted is then the container's own group.
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      lower(least, version_2 ? limit_of_version_2(mount + path) : limit_of_version_1(mount + path));
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}

std::optional<int> threads_in(const char* text) noexcept {
  if (text == nullptr) return std::nullopt;
  std::string_view rest = text;
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  int count = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  const bool ended = rest.empty() || rest.front() == ',';
  if (error != std::errc{} || count < 1 || !ended) return std::nullopt;
  return count;
}

int usable_cores() noexcept {
  int cores = std::max(1, cores_in_affinity_mask());
  try {
    cores = std::min(cores, quota_cores().value_or(cores));
  } catch (const std::exception&) {
    // No memory to read two files: the mask alone is a fair answer.
  }
  return cores;
}

int default_threads() noexcept {
  if (const auto asked = threads_in(std::getenv("OMP_NUM_THREADS"))) return *asked;
  return usable_cores();
}

}  // namespace ballast
