// SPDX-License-Identifier: Apache-2.0
// What the examples share: saying how near a result is to PyTorch's.
#pragma once

#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/config.h"
#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/ops.h"
#include "models/checks.h"

namespace examples {

inline constexpr double kMostError = 1e-4;

/// Prints |ours - theirs| / |theirs| and whether the largest elements along `dim` are in the same places.
/// False when the error is above 1e-4, or a place differs.
inline bool agrees(const ballast::Tensor& ours, const ballast::Tensor& theirs, std::int64_t dim = -1) {
  if (ours.shape() != theirs.shape()) {
    std::cout << "PyTorch's output is " << theirs.shape() << ", ours " << ours.shape() << '\n';
    return false;
  }
  const double error = ballast::norm(ours - theirs).item() / ballast::norm(theirs).item();
  const ballast::Tensor same = ballast::eq(ballast::argmax(ours, dim), ballast::argmax(theirs, dim));
  std::cout << "PyTorch's output and ours, " << ours.shape() << ": relative error " << error
            << ", argmax equal in " << ballast::sum(same).item() << " of " << same.numel() << '\n';
  return error <= kMostError && ballast::all(same).item() != 0;
}

/// Prints |ours - theirs| / |theirs|. False when it is above 2e-6: sums in another order make no more.
inline bool near(const ballast::Tensor& ours, const ballast::Tensor& theirs, double most = 2e-6) {
  if (ours.shape() != theirs.shape()) {
    std::cout << "PyTorch's output is " << theirs.shape() << ", ours " << ours.shape() << '\n';
    return false;
  }
  const double error = ballast::norm(ours - theirs).item() / ballast::norm(theirs).item();
  std::cout << "PyTorch's output and ours, " << ours.shape() << ": relative error " << error << '\n';
  return error <= most;
}

/// The configuration in a folder with weights, its sizes checked.
template <class Config>
Config config_of(const std::string& folder) {
  const std::string path = folder + "/config.json";
  const ballast::Value config = ballast::open_value(path);
  models::require_sizes(config, static_cast<std::int64_t>(ballast::open(folder).size()));
  return ballast::read_config<Config>(config, ballast::display(path));
}

/// main() of an example that takes FOLDER, with a config.json and weights, and CASE, with inputs and
/// PyTorch's outputs for them; `agree` says whether ours are the same.
template <class Agree>
int main_of(int argc, char** argv, const Agree& agree) try {
  if (argc != 3) {
    std::cerr << "usage: " << argv[0] << " FOLDER CASE\n";
    return 2;
  }
  return agree(std::string(argv[1]), ballast::open(argv[2])) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}

/// The numbers of a tensor of integers in one line.
inline void print_numbers(std::string_view what, const ballast::Tensor& numbers) {
  std::cout << what;
  for (const std::int64_t number : numbers.contiguous().span<std::int64_t>()) std::cout << ' ' << number;
  std::cout << '\n';
}

/// Greedy decoding, each token computed once: the first of `expected`'s prompts one token at a time, then
/// what is most likely. `forward` takes I64 [1, 1] and remembers what it has seen. True when logits and
/// tokens are PyTorch's, which computes every one from all before it.
template <class Forward>
bool continues(const ballast::Checkpoint& expected, const Forward& forward) {
  const ballast::Tensor prompt = expected.tensor("prompts").narrow(0, 0, 1);
  const std::int64_t given = prompt.size(1);
  const std::int64_t steps = given + expected.tensor("tokens").size(1) - 1;
  std::vector<ballast::Tensor> logits;
  std::vector<ballast::Tensor> tokens;
  for (std::int64_t i = 0; i < steps; ++i) {
    logits.push_back(forward(i < given ? prompt.narrow(1, i, 1) : tokens.back()));  // [1, 1, vocabulary]
    if (i + 1 >= given) tokens.push_back(ballast::argmax(logits.back(), -1));       // [1, 1]
  }
  const ballast::Tensor generated = ballast::concat(tokens, 1);
  print_numbers("generated:", generated);
  print_numbers("PyTorch's:", expected.tensor("tokens"));
  return near(ballast::concat(logits, 1), expected.tensor("generated_logits")) &&
         ballast::all(generated == expected.tensor("tokens")).item<bool>();
}

}  // namespace examples
