// SPDX-License-Identifier: Apache-2.0
// Shape and Strides: short lists of 64-bit numbers that live inside the object up to six dimensions, which is
// all but a handful of the tensors in the world, and on the heap beyond. And Index, by which Tensor::index()
// takes a part of one.
//
// Throws: nothing but std::bad_alloc; positions outside a list are the caller's mistake and are not looked
// for (a debug build of the standard library may stop there). Owns: a Shape its numbers; a ShapeView nothing.
// Threads: reading one from several is safe, changing it is not. Costs: no allocation up to six numbers.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast {

class Dims;

/// A look at somebody's dimensions; prints like a Shape.
class ShapeView : public std::span<const std::int64_t> {
 public:
  ShapeView() = default;

  // One by one, not std::span's own: its tests of what a range is are dear to compile.
  /// `count` numbers from `dims` on, which must outlive it.
  ShapeView(const std::int64_t* dims, std::size_t count) : std::span<const std::int64_t>(dims, count) {}

  /// Of a span.
  ShapeView(std::span<const std::int64_t> dims) : std::span<const std::int64_t>(dims) {}

  /// Of a span that may be written to.
  ShapeView(std::span<std::int64_t> dims) : std::span<const std::int64_t>(dims) {}

  /// Of a vector, which must outlive it.
  ShapeView(const std::vector<std::int64_t>& dims) : ShapeView(dims.data(), dims.size()) {}

  /// Of a Shape, which must outlive it.
  ShapeView(const Dims& dims);

  /// Of an array, which must outlive it.
  template <std::size_t N>
  ShapeView(const std::int64_t (&dims)[N]) : ShapeView(dims, N) {}

  /// Of an array, which must outlive it.
  template <std::size_t N>
  ShapeView(const std::array<std::int64_t, N>& dims) : ShapeView(dims.data(), N) {}
};

/// A short list of 64-bit numbers, as a value: Shape and Strides.
class Dims {
 public:
  using value_type = std::int64_t;
  using iterator = std::int64_t*;
  using const_iterator = const std::int64_t*;

  Dims() = default;
  Dims(const Dims&) = default;
  Dims& operator=(const Dims&) = default;
  Dims(Dims&& other) noexcept;  ///< `other` is empty afterwards
  Dims& operator=(Dims&& other) noexcept;
  ~Dims() = default;

  /// {2, 3}
  Dims(std::initializer_list<std::int64_t> values) : Dims(ShapeView(values.begin(), values.size())) {}

  /// A copy; a view of dims is a shape.
  Dims(ShapeView values);  // a view of dims is a shape

  /// A copy.
  Dims(const std::vector<std::int64_t>& values) : Dims(ShapeView(values)) {}

  /// `count` times `value`.
  static Dims filled(std::size_t count, std::int64_t value);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  /// The first number; valid until the length changes.
  [[nodiscard]] std::int64_t* data() noexcept { return size_ <= kInline ? inline_ : heap_.data(); }

  /// The first number; valid until the length changes.
  [[nodiscard]] const std::int64_t* data() const noexcept {
    return size_ <= kInline ? inline_ : heap_.data();
  }

  [[nodiscard]] std::int64_t* begin() noexcept { return data(); }

  [[nodiscard]] std::int64_t* end() noexcept { return data() + size_; }

  [[nodiscard]] const std::int64_t* begin() const noexcept { return data(); }

  [[nodiscard]] const std::int64_t* end() const noexcept { return data() + size_; }

  std::int64_t& operator[](std::size_t i) noexcept { return data()[i]; }

  std::int64_t operator[](std::size_t i) const noexcept { return data()[i]; }

  [[nodiscard]] std::int64_t front() const noexcept { return data()[0]; }

  [[nodiscard]] std::int64_t back() const noexcept { return data()[size_ - 1]; }

  /// One more at the end.
  void push_back(std::int64_t value);
  /// Before `position`, which is size() at most.
  void insert(std::size_t position, std::int64_t value);
  /// The one at `position`, which is below size().
  void erase(std::size_t position);

  friend bool operator==(const Dims& a, const Dims& b) noexcept;

 private:
  static constexpr std::size_t kInline = 6;
  std::size_t size_ = 0;
  std::int64_t inline_[kInline] = {};
  std::vector<std::int64_t> heap_;
};

bool operator==(const Dims& a, const Dims& b) noexcept;  // here too: a friend alone is not exported

inline ShapeView::ShapeView(const Dims& dims) : ShapeView(dims.data(), dims.size()) {}

/// Sizes of the dimensions; none is negative in a Tensor.
using Shape = Dims;
using Strides = Dims;  ///< in elements, like PyTorch's; may be 0 (expanded) or negative (reversed)

/// Product of the dimensions; nullopt when one is negative or the product does not fit into int64.
[[nodiscard]] std::optional<std::int64_t> try_numel(ShapeView shape) noexcept;
/// Row-major strides of `shape`.
[[nodiscard]] Strides contiguous_strides(ShapeView shape);
/// "[2, 3]"
[[nodiscard]] std::string to_string(ShapeView shape);
std::ostream& operator<<(std::ostream& out, ShapeView shape);

inline std::ostream& operator<<(std::ostream& out, const Dims& dims) {
  return out << ShapeView(dims);
}

/// Python's start:stop:step; what is absent means what it means there.
struct Slice {
  std::optional<std::int64_t> start = {};  ///< absent: the first, or the last where step is negative
  std::optional<std::int64_t> stop = {};   ///< absent: to the end
  std::optional<std::int64_t> step = {};   ///< absent: 1; never 0
};

/// NumPy's "...": as many whole dimensions as are left.
struct Ellipsis {};

/// NumPy's None: a new dimension of size 1.
struct NewAxis {};

/// The value to write in an index.
inline constexpr Ellipsis ellipsis{};
/// The value to write in an index.
inline constexpr NewAxis new_axis{};

/// One of the indices of Tensor::index().
struct Index {
  /// What an index is.
  enum class Kind : std::uint8_t { number, slice, dots, axis };

  /// One position: the dimension goes.
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Index(Number position)
      : kind(Kind::number), number(static_cast<std::int64_t>(position)) {}

  /// A part of a dimension.
  Index(const Slice& part) : kind(Kind::slice), slice(part) {}

  /// As many whole dimensions as are left.
  Index(Ellipsis /*tag*/) : kind(Kind::dots) {}

  /// A new dimension of size 1.
  Index(NewAxis /*tag*/) : kind(Kind::axis) {}

  Kind kind;                ///< what it is
  std::int64_t number = 0;  ///< of Kind::number
  Slice slice = {};         ///< of Kind::slice
};

}  // namespace ballast

#pragma GCC visibility pop
