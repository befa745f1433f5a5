// SPDX-License-Identifier: Apache-2.0
// Loads a model of examples/models and prints {"seconds", "read_seconds", "rss_mb", "read_rss_mb"}: the load
// alone, and with every byte read after it; bench/run.py compares with torch.load and load_state_dict.
//   load_bench resnet50|vit_b_16|gpt2|wide FILE [f16|bf16]
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "../examples/models/gpt2.h"
#include "../examples/models/resnet.h"
#include "../examples/models/vit_b_16.h"
#include "ballast/load_file.h"

namespace {

// 128 matrices of 4096 x 4096 floats: 8 GiB.
struct Wide {
  std::vector<ballast::nn::Linear> layers =
      ballast::nn::repeat<ballast::nn::Linear>(128, 4096, 4096, ballast::nn::LinearOptions{.bias = false});
};

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

std::uint64_t sum_of(const ballast::Tensor& tensor) {
  const ballast::Tensor rows = tensor.is_contiguous() ? tensor : tensor.t();  // as it lies in memory
  const auto bytes = static_cast<std::size_t>(rows.size_bytes());
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 8 <= bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(rows.data()) + at, 8);
    sum += word;
  }
  return sum;
}

template <class Model>
int measure(const std::string& path, ballast::LoadOptions options, bool read_all = true) {
  using Clock = std::chrono::steady_clock;
  options.unused = ballast::OnUnused::error;
  const double before = resident_mb();
  const auto start = Clock::now();
  Model model;
  ballast::load(model, path, options);
  const auto loaded = Clock::now();
  const double after = resident_mb();
  std::uint64_t sum = 0;
  ballast::for_each_tensor(model, [&](std::string_view, const ballast::Tensor& tensor, ballast::LayerKind) {
    if (read_all) sum += tensor.rank() <= 2 || tensor.is_contiguous() ? sum_of(tensor) : 0;
  });
  const auto read = Clock::now();
  const auto seconds = [](auto a, auto b) { return std::chrono::duration<double>(b - a).count(); };
  std::printf(R"({"seconds": %.6f, "read_seconds": %.6f, "rss_mb": %.1f, "read_rss_mb": %.1f, "sum": "%llu"})"
              "\n",
              seconds(start, loaded), seconds(start, read), after - before, resident_mb() - before,
              static_cast<unsigned long long>(sum));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string model = argc == 3 || argc == 4 ? argv[1] : "";
  const auto with_dtype = [&](ballast::LoadOptions options) {
    if (argc == 4)
      options.dtype = argv[3] == std::string("f16") ? ballast::Precision::half : ballast::Precision::bf16;
    return options;
  };
  if (model == "resnet50") return measure<models::ResNet50>(argv[2], with_dtype({}));
  if (model == "vit_b_16")
    return measure<models::VitB16>(argv[2], with_dtype(models::VitB16::load_options()));
  if (model == "gpt2") return measure<models::Gpt2>(argv[2], with_dtype(models::Gpt2::load_options(true)));
  if (model == "wide") return measure<Wide>(argv[2], {}, false);
  std::cerr << "usage: load_bench resnet50|vit_b_16|gpt2|wide FILE [f16|bf16]\n";
  return 2;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
