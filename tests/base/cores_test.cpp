// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "ballast/runtime.h"
#include "base/scratch.h"

namespace ballast {
namespace {

// A made-up /proc and /sys.
class Cores : public Scratch {
 protected:
  void put(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(file)).parent_path());
    write(path(file), text);
  }

  [[nodiscard]] std::optional<int> quota() const { return quota_cores(path("")); }

  // What a child of this process counts that was changed first.
  template <class Change>
  static int counted_by_child(const Change& change) {
    const pid_t child = fork();
    if (child == 0) {
      change();
      std::_Exit(default_threads());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(Cores, WithoutControlGroupsThereIsNoQuota) {
  EXPECT_EQ(quota(), std::nullopt);
  put("proc/self/cgroup", "nonsense\n::\n0::/\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(Cores, AQuotaIsRoundedUpToCores) {
  put("proc/self/cgroup", "0::/job\n");
  const std::vector<std::pair<std::string, std::optional<int>>> rows = {{"200000 100000", 2},
                                                                        {"150000 100000", 2},
                                                                        {"1000 100000", 1},
                                                                        {"100001 100000", 2},
                                                                        {"100000 100000", 1},
                                                                        {"max 100000", {}},
                                                                        {"-1 100000", {}},
                                                                        {"", {}},
                                                                        {"50000 0", {}},
                                                                        {"nan 100000", {}},
                                                                        {"9000000000000000 1", INT_MAX}};
  for (const auto& [text, cores] : rows) {
    put("sys/fs/cgroup/job/cpu.max", text);
    EXPECT_EQ(quota(), cores) << text;
  }
}

TEST_F(Cores, TheSmallestQuotaOnTheWayUpBinds) {
  put("proc/self/cgroup", "0::/a/b/c\n");
  put("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000");
  put("sys/fs/cgroup/a/cpu.max", "300000 100000");
  EXPECT_EQ(quota(), 3);
  put("sys/fs/cgroup/cpu.max", "200000 100000");  // a container's own group, whose path is the host's
  EXPECT_EQ(quota(), 2);
}

TEST_F(Cores, ControlGroupsOfVersionOneCount) {
  put("proc/self/cgroup", "5:cpuset:/x\n3:cpu,cpuacct:/docker/1\n0::/\n");
  put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "-1");
  put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), std::nullopt);
  put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(quota(), 3);
}

TEST_F(Cores, OmpNumThreadsIsReadAsOpenMpReadsIt) {
  const std::vector<std::pair<const char*, std::optional<int>>> rows = {
      {nullptr, {}}, {"", {}},   {"4", 4},     {" 4 ", 4}, {"4,2,1", 4}, {"4 , 2", 4},
      {"0", {}},     {"-2", {}}, {"many", {}}, {"4x", {}}, {"4.5", {}},  {"99999999999", {}}};
  for (const auto& [text, threads] : rows) EXPECT_EQ(threads_in(text), threads) << (text ? text : "none");
}

#if !defined(__SANITIZE_THREAD__)
TEST_F(Cores, AProcessCountsTheCoresItIsAllowed) {
  const auto one_core = [] {
    unsetenv("OMP_NUM_THREADS");
    cpu_set_t mask;
    sched_getaffinity(0, sizeof mask, &mask);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    sched_setaffinity(0, sizeof mask, &mask);
  };
  EXPECT_EQ(counted_by_child(one_core), 1);
  EXPECT_EQ(counted_by_child([&] {
              one_core();
              setenv("OMP_NUM_THREADS", "7", 1);
            }),
            7);
}
#endif

}  // namespace
}  // namespace ballast
