// SPDX-License-Identifier: Apache-2.0
// Reads digits with a network that PyTorch trained.
//   example_mnist WEIGHTS IMAGES LABELS [TORCH_ANSWERS [ANSWERS_OUT]]
// WEIGHTS is mnist.pt, or anything it was converted to; IMAGES and LABELS are files of MNIST. TORCH_ANSWERS
// has the digits PyTorch sees in the same images: exit 1 when one of ours differs. Ours go to ANSWERS_OUT.
#include "mnist.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

#include "ballast/load_file.h"
#include "digits.h"

namespace {

constexpr std::int64_t kBatch = 500;

Tensor classify(const Mnist& net, const Tensor& images) {
  std::vector<Tensor> parts;
  for (const Tensor& batch : ballast::split(images, kBatch)) parts.push_back(net.forward(batch));
  return ballast::concat(parts);  // [count, 10]
}

/// What the network makes of every image.
struct Answers {
  Tensor digit;        // I64 [count]
  Tensor probability;  // [count]
};

Answers answers_of(const Tensor& logits) {
  const ballast::Sorted best = ballast::topk(ballast::softmax(logits), 1);  // [count, 1]
  return {best.indices.squeeze(1), best.values.squeeze(1)};
}

/// Pictures of some digits, with the answer below each.
void show(const Tensor& which, const Tensor& images, const Tensor& labels, const Answers& answers) {
  std::vector<std::string> captions;
  for (const std::int64_t i : which.contiguous().span<std::int64_t>()) {
    const auto answer = static_cast<int>(answers.digit.index({i}).item());
    const auto label = static_cast<int>(labels.index({i}).item());
    char text[64];
    std::snprintf(text, sizeof text, "a %d, %.1f %%", answer, 100 * answers.probability.index({i}).item());
    captions.emplace_back(text);
    if (answer != label) captions.back() += ", is a " + std::to_string(label);
  }
  std::cout << draw(ballast::index_select(images, 0, which), captions);
}

std::string as_text(const Tensor& answers) {
  std::string text;
  for (const std::int64_t answer : answers.contiguous().span<std::int64_t>())
    text += static_cast<char>('0' + answer);
  return text;
}

/// The digits of a text file; line ends do not count.
std::string read_digits(const std::string& path) {
  std::ifstream file(path);
  std::string digits;
  for (std::string line; std::getline(file, line);) digits += line;
  return digits;
}

bool same_as_torch(const std::string& ours, const std::string& path) {
  const std::string theirs = read_digits(path).substr(0, ours.size());
  std::size_t same = 0;
  for (std::size_t i = 0; i < theirs.size(); ++i) same += ours[i] == theirs[i] ? 1 : 0;
  std::cout << "PyTorch sees the same digit in " << same << " of " << ours.size() << '\n';
  return same == ours.size();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4 || argc > 6) {
    std::cerr << "usage: example_mnist WEIGHTS IMAGES LABELS [TORCH_ANSWERS [ANSWERS_OUT]]\n";
    return 2;
  }
  Mnist net;
  std::cout << ballast::load(net, argv[1], {.unused = ballast::OnUnused::error});
  ballast::print(net, std::cout);

  const Tensor images = read_idx(argv[2]);
  const Tensor labels = read_idx(argv[3]);
  const Answers answers = answers_of(classify(net, images));
  const std::int64_t shown = std::min(std::int64_t{3}, labels.numel());
  std::cout << "The first of them:\n";
  show(ballast::arange(0, shown), images, labels, answers);
  std::cout << "Those it is least sure of:\n";
  show(ballast::topk(answers.probability, shown, 0, false).indices, images, labels, answers);

  const auto right = static_cast<int>(ballast::sum(ballast::eq(answers.digit, labels)).item());
  std::cout << "right: " << right << " of " << labels.numel() << '\n';
  const std::string text = as_text(answers.digit);
  if (argc > 5) std::ofstream(argv[5]) << text << '\n';
  return argc < 5 || same_as_torch(text, argv[4]) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
