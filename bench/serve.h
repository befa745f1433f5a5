// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of operations and models share: times of named cases, as a table, or one by one as
// bench/run.py asks for them so that it can take turns with a peer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ballast/threads.h"

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

/// main() of such a program: [--threads N] [--seconds S] [--serve], or names of cases to print (all without).
inline int main_of(int argc, char** argv, Cases (*make)()) {
  bool serve = false;
  double least = 0.1;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--serve")
      serve = true;
    else if (option == "--threads" && i + 1 < argc)
      set_thread_count(std::atoi(argv[++i]));
    else if (option == "--seconds" && i + 1 < argc)
      least = std::atof(argv[++i]);
    else
      wanted.push_back(option);
  }
  const Cases cases = make();
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
