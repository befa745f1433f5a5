// SPDX-License-Identifier: Apache-2.0
// What a hostile file must not get: a .pt of ours that runs code, a stack that overflows, a verdict it does
// not deserve.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/scan.h"
#include "ballast/torch.h"
#include "formats/torch/roles.h"

namespace ballast {
namespace {

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Its frames are several times as large, and it takes ten times as long.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) != 0;
#else
constexpr bool kIsSanitized = false;
#endif

// Every third under a sanitizer, where TorchAttacks opens them all.
std::vector<std::string> chosen(std::vector<std::string> files) {
  std::size_t index = 0;
  if (kIsSanitized) std::erase_if(files, [&](const std::string&) { return index++ % 3 != 0; });
  return files;
}

std::vector<std::string> hostile_files() {
  return chosen(files_of(BALLAST_TEST_OUTPUT "/attacks"));
}

std::vector<std::string> honest_files() {
  return chosen(files_of(BALLAST_TEST_DATA "/fixtures/torch/files"));
}

// The file, or nothing when it is refused.
std::optional<Checkpoint> open_inert(const std::string& path) {
  try {
    return open(path, {.inert = true});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Every .pt that can be made of a file is clean; returns how many could.
std::size_t check_rewritten(const std::string& path) {
  const auto opened = open_inert(path);
  if (!opened) return 0;
  // In memory where there is such a place: thousands of files are made sure to be on the disk otherwise.
  static const std::string out = std::filesystem::is_directory("/dev/shm")
                                     ? "/dev/shm/ballast-trust-" + std::to_string(getpid()) + ".pt"
                                     : BALLAST_TEST_OUTPUT "/trust.pt";
  std::size_t written = 0;
  for (const bool legacy : {false, true}) {
    for (const bool simplify : {false, true}) {
      try {
        torch::save(*opened, out,
                    {.format = legacy ? formats::torch_legacy : formats::torch_zip,
                     .simplify = simplify,
                     .overwrite = true});
      } catch (const Error&) {
        continue;
      }
      ++written;
      const ScanReport report = scan(out);
      EXPECT_EQ(report.verdict(), Verdict::clean)
          << path << (legacy ? ", legacy" : "") << (simplify ? ", simplified" : "")
          << (report.findings.empty() ? "" : ": " + report.findings.front().what);
    }
  }
  return written;
}

TEST(TorchTrust, WhateverIsReadWhatWeWriteIsClean) {
  std::size_t written = 0;
  for (const std::string& path : hostile_files()) written += check_rewritten(path);
  for (const std::string& path : honest_files()) written += check_rewritten(path);
  std::filesystem::remove("/dev/shm/ballast-trust-" + std::to_string(getpid()) + ".pt");
  EXPECT_GT(written, kIsSanitized ? 600U : 2000U);
}

TEST(TorchTrust, TextOfAConstantsClassThatPyTorchDoesNotHaveIsNotWritten) {
  const std::string out = BALLAST_TEST_OUTPUT "/trust.pt";
  const std::string evil = "float32\ncposix\nsystem\n(X\x04";
  for (const std::string type :
       {"torch.dtype", "torch.layout", "torch.qscheme", "torch.memory_format", "torch.device"}) {
    // torch.load(weights_only=True) knows no memory formats.
    for (const std::string& text : {evil, std::string(), std::string("float33"), std::string("cuda:x"),
                                    std::string("torch.channels_last"), std::string("zzz")}) {
      const Value root = Value::dict({{Value("bad"), Value(text).as_type(type)}});
      try {
        torch::save(root, out, {.overwrite = true});
        ADD_FAILURE() << type << " of " << text << " was written";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::not_representable);
        EXPECT_NE(std::string(error.what()).find("bad"), std::string::npos) << error.what();
      }
    }
  }
}

constexpr std::size_t kSmallStack = (kIsSanitized ? std::size_t{1024} : std::size_t{256}) << 10U;

// Runs `work` where nothing can go deep.
void on_a_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kSmallStack);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* given) -> void* {
                  (*static_cast<std::function<void()>*>(given))();
                  return nullptr;
                },
                &work),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(TorchTrust, NoHostileFileGoesDeepOnTheStack) {
  on_a_small_stack([] {
    for (const std::string& path : hostile_files()) {
      if (const auto opened = open_inert(path); opened && opened->tree) {
        ValueWalk walk(*opened->tree, {.steps = 5000, .depth = 1000});
        while (const auto step = walk.next()) static_cast<void>(step->value.summary());
      }
      try {
        static_cast<void>(scan(path));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::unknown_format) << path;
      }
    }
  });
}

TEST(TorchTrust, WhatCurrentPyTorchSavesIsCleanButForModelsAndPrograms) {
  const std::set<std::string> unknown = {"nested_tensor.pt", "whole_model.pt", "whole_model_legacy.pth",
                                         "scripted.pt", "traced.pt"};
  std::size_t clean = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(BALLAST_TEST_DATA "/fixtures/torch_current")) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".pt" && extension != ".pth" && extension != ".bin") continue;
    const bool is_clean = scan(entry.path().string()).verdict() == Verdict::clean;
    EXPECT_EQ(is_clean, !unknown.contains(entry.path().filename().string())) << entry.path();
    clean += is_clean ? 1 : 0;
  }
  EXPECT_GT(clean, 60U);
}

TEST(TorchTrust, OnlyPlainDataIsCleanInTheTableOfRoles) {
  std::size_t clean = 0;
  for (const torch::KnownGlobal& row : torch::known_globals()) {
    EXPECT_FALSE(torch::is_forbidden(row.module, row.name)) << row.module << '.' << row.name;
    EXPECT_EQ(row.name.find('.'), std::string::npos) << row.name;
    EXPECT_EQ(torch::find_known_global(row.module, row.name), &row);
    clean += row.verdict == Verdict::clean ? 1 : 0;
  }
  EXPECT_EQ(torch::find_known_global("torch", "nn.parameter.Parameter"), nullptr);
  EXPECT_EQ(torch::find_known_global("torch.nn", "parameter.Parameter"), nullptr);
  EXPECT_LT(clean, 230U);
}

}  // namespace
}  // namespace ballast
