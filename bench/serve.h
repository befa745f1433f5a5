// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of operations and models share: times of named cases, as a table, or one by one as
// bench/run.py asks for them so that it can take turns with a peer.
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "ballast/runtime.h"

namespace ballast::bench {

struct Case {
  std::function<void()> run;
  double work = 0;  // floating-point operations, or bytes touched where `unit` says so
  const char* unit = "";
};

using Cases = std::map<std::string, Case>;

struct Time {
  double wall;
  double cpu;  // of all threads: what counts when others use the machine too
};

inline double cpu_now() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

inline double median(std::vector<double>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

inline Time time_of_one(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_now();
  run();
  const double cpu = cpu_now() - cpu_start;
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu};
}

/// The medians of as many runs as fit into `least` seconds, three at least; a single run when that is 0.
inline Time time_of(const std::function<void()>& run, double least = 0.1) {
  if (least == 0) return time_of_one(run);
  std::vector<double> wall;
  std::vector<double> cpu;
  run();
  double total = 0;
  while (total < least || wall.size() < 3) {
    const Time one = time_of_one(run);
    wall.push_back(one.wall);
    cpu.push_back(one.cpu);
    total += one.wall;
  }
  return {median(wall), median(cpu)};
}

/// Neighbours that use every core this process may use, until it ends.
inline void keep_cores_busy() {
  for (int i = thread_count(); i > 0; --i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::atomic<unsigned> turns = 0;;) ++turns;
  }
}

/// The same work for as many callers at once, as in a server: four calls each.
inline std::function<void()> called_by(int callers, const std::function<void()>& run) {
  if (callers == 1) return run;
  return [callers, run] {
    std::vector<std::thread> threads;
    for (int i = 0; i < callers; ++i)
      threads.emplace_back([&run] {
        for (int round = 0; round < 4; ++round) run();
      });
    for (std::thread& thread : threads) thread.join();
  };
}

/// main() of such a program: [--threads N] [--callers N] [--busy] [--seconds S] [--serve], or names of cases
/// to print (all without).
inline int main_of(int argc, char** argv, Cases (*make)()) {
  bool serve = false;
  int callers = 1;
  double least = 0.1;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--serve")
      serve = true;
    else if (option == "--busy")
      keep_cores_busy();
    else if (option == "--callers" && i + 1 < argc)
      callers = std::max(1, std::atoi(argv[++i]));
    else if (option == "--threads" && i + 1 < argc)
      set_thread_count(std::atoi(argv[++i]));
    else if (option == "--seconds" && i + 1 < argc)
      least = std::atof(argv[++i]);
    else
      wanted.push_back(option);
  }
  Cases cases = make();
  for (auto& [name, one] : cases) one.run = called_by(callers, one.run);
  if (serve) {
    for (std::string name; std::getline(std::cin, name);) {
      const auto found = cases.find(name);
      const Time time = found == cases.end() ? Time{-1, -1} : time_of(found->second.run, least);
      std::cout << time.wall << ' ' << time.cpu << std::endl;
    }
    return 0;
  }
  for (const auto& [name, one] : cases) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    const Time time = time_of(one.run, least);
    std::printf("%-40s %9.1f us %9.1f us cpu %8.1f %s\n", name.c_str(), time.wall * 1e6, time.cpu * 1e6,
                one.work / time.wall * 1e-9, one.unit);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace ballast::bench
