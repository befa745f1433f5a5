// SPDX-License-Identifier: Apache-2.0
// Runs every case of a bundle and counts those that differ from what torch gave: for scripts/check-ops.
//   check_ops CASES.safetensors
#include <algorithm>
#include <cmath>
#include <exception>
#include <iostream>

#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

// Empty when all is as expected.
std::string difference(const Run& run, const Case& one) {
  Tensors got;
  try {
    got = run(one.inputs, one.args);
  } catch (const std::exception& error) {
    return error.what();
  }
  if (got.size() != one.expected.size()) return "another number of results";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double most = one.exact ? 0 : tolerance(got[i].dtype());
    // Where all values are small, what remains of a difference of larger ones has few digits: in torch's F32
    // too.
    const double least = 0.01 * std::sqrt(static_cast<double>(std::max<std::int64_t>(got[i].numel(), 1)));
    const double error = error_of(got[i], one.expected[i], least);
    if (!(error <= most)) return "error " + std::to_string(error);
  }
  return {};
}

std::string description(const Case& one) {
  std::string text = one.args.dump();
  for (const Tensor& input : one.inputs) {
    if (!input.defined()) continue;
    text += "; " + std::string(info(input.dtype()).code) + ' ' + to_string(input.shape()) + " strides " +
            to_string(input.strides()) + " at byte " + std::to_string(input.bit_offset() / 8 % 64);
  }
  return text;
}

int check(const std::string& path) {
  const Checkpoint bundle = safetensors::open(path);
  std::size_t count = 0;
  std::size_t different = 0;
  for (const auto& [name, run] : operations()) {
    for (const Case& one : cases_of(bundle, name)) {
      ++count;
      const std::string what = difference(run, one);
      if (what.empty()) continue;
      ++different;
      std::cout << name << ": " << what << "; " << description(one) << '\n';
    }
  }
  std::cout << count << " cases, " << different << " different\n";
  return different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ballast::ops_tests

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "check_ops CASES.safetensors\n";
    return 2;
  }
  try {
    return ballast::ops_tests::check(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
