// SPDX-License-Identifier: Apache-2.0
#include "ballast/shape.h"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <utility>

#include "base/checked.h"

namespace ballast {

Dims::Dims(ShapeView values) : size_(values.size()) {
  if (size_ > kInline)
    heap_.assign(values.begin(), values.end());
  else
    std::copy(values.begin(), values.end(), inline_);
}

Dims::Dims(Dims&& other) noexcept : size_(std::exchange(other.size_, 0)), heap_(std::move(other.heap_)) {
  std::copy(std::begin(other.inline_), std::end(other.inline_), inline_);
}

Dims& Dims::operator=(Dims&& other) noexcept {
  if (this == &other) return *this;
  size_ = std::exchange(other.size_, 0);
  heap_ = std::move(other.heap_);
  std::copy(std::begin(other.inline_), std::end(other.inline_), inline_);
  return *this;
}

Dims Dims::filled(std::size_t count, std::int64_t value) {
  return {std::vector<std::int64_t>(count, value)};
}

// A file may give a tensor hundreds of thousands of dimensions: one more must not cost a copy of all.
void Dims::push_back(std::int64_t value) {
  if (size_ < kInline) {
    inline_[size_] = value;
  } else {
    if (size_ == kInline) heap_.assign(std::begin(inline_), std::end(inline_));
    heap_.push_back(value);
  }
  ++size_;
}

void Dims::insert(std::size_t position, std::int64_t value) {
  push_back(value);
  std::rotate(begin() + position, end() - 1, end());
}

void Dims::erase(std::size_t position) {
  std::copy(begin() + position + 1, end(), begin() + position);
  --size_;
  if (size_ > kInline)
    heap_.pop_back();
  else if (size_ == kInline)
    std::copy_n(heap_.begin(), kInline, inline_);
}

bool operator==(const Dims& a, const Dims& b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::optional<std::int64_t> try_numel(ShapeView shape) noexcept {
  // An empty tensor has no elements however large its other dimensions are.
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    const auto next = try_mul(product, dim);
    if (!next) return std::nullopt;
    product = *next;
  }
  return product;
}

Strides contiguous_strides(ShapeView shape) {
  Strides strides = Dims::filled(shape.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    // Of an empty tensor no stride is ever used; they must only not overflow.
    stride = try_mul(stride, std::max<std::int64_t>(shape[i], 1)).value_or(1);
  }
  return strides;
}

std::string to_string(ShapeView shape) {
  // A file may give a tensor hundreds of thousands of dimensions.
  constexpr std::size_t kMost = 512;
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    if (text.size() >= kMost) return text + fmt::format("… ({} dimensions)]", shape.size());
    text += std::to_string(shape[i]);
  }
  return text + ']';
}

std::ostream& operator<<(std::ostream& out, ShapeView shape) {
  return out << to_string(shape);
}

}  // namespace ballast
