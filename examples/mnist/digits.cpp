// SPDX-License-Identifier: Apache-2.0
#include "digits.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

ballast::Tensor read_idx(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());

  const std::size_t rank = bytes.size() < 4 ? 0 : bytes[3];
  const std::size_t header = 4 + 4 * rank;
  if (rank < 1 || rank > 3 || bytes.size() < header || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != 8)
    throw std::runtime_error(path + ": not an IDX file of unsigned bytes");
  std::vector<std::int64_t> shape;
  std::size_t count = 1;
  for (std::size_t i = 4; i < header; i += 4) {
    const std::uint32_t size = std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 |
                               std::uint32_t{bytes[i + 2]} << 8 | bytes[i + 3];
    if (size != 0 && count > bytes.size() / size) throw std::runtime_error(path + ": cut short");
    shape.push_back(size);
    count *= size;
  }
  if (bytes.size() - header != count)
    throw std::runtime_error(path + ": the size is not what the header says");
  return ballast::Tensor::from<std::uint8_t>(bytes.subspan(header), shape);
}

namespace {

constexpr std::int64_t kMargin = 2;  // around every digit there are a few empty pixels
constexpr std::int64_t kWidth = 28 - 2 * kMargin;

/// Rows `row` and `row + 1` of one image, a character for each column.
void draw_rows(const ballast::Tensor& image, std::int64_t row, std::string& out) {
  const auto pixels = image.span<std::uint8_t>();
  for (std::int64_t column = kMargin; column < 28 - kMargin; ++column) {
    const bool upper = pixels[static_cast<std::size_t>(row * 28 + column)] >= 96;
    const bool lower = pixels[static_cast<std::size_t>((row + 1) * 28 + column)] >= 96;
    out += upper ? (lower ? "█" : "▀") : (lower ? "▄" : " ");
  }
}

}  // namespace

std::string draw(const ballast::Tensor& images, std::span<const std::string> captions) {
  std::string out;
  const std::int64_t count = images.shape()[0];
  for (std::int64_t row = kMargin; row < 28 - kMargin; row += 2) {
    for (std::int64_t i = 0; i < count; ++i) draw_rows(images.index({i}), row, out);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  for (const std::string& caption : captions) {
    const std::size_t space = caption.size() < kWidth ? kWidth - caption.size() : 0;
    out += std::string(space / 2, ' ') + caption + std::string(space - space / 2, ' ');
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out + '\n';
}
