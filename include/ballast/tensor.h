// SPDX-License-Identifier: Apache-2.0
// Tensor: a view (dtype, shape, strides) of a Storage. Copying a Tensor copies the view, never the bytes;
// transpose, permute, slice and most reshapes are views too. A tensor may have no bytes at all (shape only):
// a model's parameters before they are loaded.
//
// Throws: where elements are wanted, Errc::invalid_argument when there are none (a shape alone, or
// undefined), unsupported when they lie on another device, traced_value for a value of a trace (graph.h), and
// what reading them throws (file_changed, truncated, io_error, bad_crc, …); std::bad_alloc. Owns: every
// tensor, views too, keeps its storage alive: pointers and spans are valid as long as one of them is.
// Threads: const functions from several at once. Costs: views copy some 200 bytes and read nothing; copies
// take memory of their own.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ballast/dtype.h"
#include "ballast/shape.h"
#include "ballast/storage.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What casts did to the values that were read through them; a value read twice counts twice.
struct CastCount {
  std::atomic<std::uint64_t> rounded{0};     ///< finite before and after, and not the same value
  std::atomic<std::uint64_t> overflowed{0};  ///< finite before, not after
};

template <class T>
class KeptSpan;

/// A view (dtype, shape, strides) of a Storage. A value of some 200 bytes: copying one copies the view,
/// never the elements. const functions are safe to call from several threads.
class Tensor {
 public:
  /// An empty tensor: no elements, a dtype without meaning, defined() is false.
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // A tensor with a name becomes another view. One without (t[0] = x) would be forgotten at once, and
  // nothing be written.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;

  /// Does not compile: a view without a name would be forgotten.
  template <class Values>
  void operator=(Values&&) && {
    static_assert(sizeof(Values) == 0,
                  "ballast: this would change a view that nobody has; assign(t[0], x) "
                  "writes x into the elements");
  }

  /// Shape only. Errc::size_overflow for a negative dimension, or more bits than 63 bits can count.
  Tensor(DType dtype, Shape shape);
  /// A view of `storage` that starts `bit_offset` bits into it; strides in elements.
  /// Errc::offset_out_of_range when an element lies outside the storage, invalid_argument without a storage
  /// or with more or fewer strides than dimensions, size_overflow. Reads nothing.
  Tensor(DType dtype, Shape shape, Strides strides, std::shared_ptr<const Storage> storage,
         std::uint64_t bit_offset = 0);
  /// A row-major view that starts `byte_offset` bytes into the storage; Errc::size_overflow,
  /// offset_out_of_range as of the constructor.
  static Tensor contiguous_view(DType dtype, Shape shape, std::shared_ptr<const Storage> storage,
                                std::uint64_t byte_offset = 0);
  /// New memory, not initialised. Errc::size_overflow as for a shape, std::bad_alloc.
  static Tensor empty(DType dtype, Shape shape);
  /// New memory, all zeros; refused as by empty().
  static Tensor zeros(DType dtype, Shape shape);

  /// A copy of `values` in row-major order: a span, an initializer list, a std::vector, a std::array,
  /// whatever a std::span can look at. The dtype is that of the values' type. Errc::size_mismatch when there
  /// are more or fewer of them than `shape` has elements.
  template <class T>
  static Tensor from(std::span<const T> values, Shape shape) {
    return copy_of(dtype_of<T>, std::move(shape), std::as_bytes(values));
  }

  /// Of {1, 2, 3}.
  template <class T>
  static Tensor from(std::initializer_list<T> values, Shape shape) {
    return from(std::span<const T>(values.begin(), values.size()), std::move(shape));
  }

  /// Of a vector, an array, whatever a std::span can look at.
  template <class Values>
  requires requires(const Values& values) { std::span(values); }
  static Tensor from(const Values& values, Shape shape) {
    return from(std::span<const typename decltype(std::span(values))::value_type>(values), std::move(shape));
  }

  /// BOOL.
  static Tensor from(const std::vector<bool>& values, Shape shape);

  /// The same with every value converted as to() does, by a second copy: how F16 and BF16 are made from
  /// floats.
  template <class Values>
  requires requires(const Values& values) { from(values, Shape()); }
  static Tensor from(const Values& values, Shape shape, DType dtype) {
    return from(values, std::move(shape)).to(dtype);
  }

  /// The same of {1, 2, 3}.
  template <class T>
  static Tensor from(std::initializer_list<T> values, Shape shape, DType dtype) {
    return from(values, std::move(shape)).to(dtype);
  }

  /// False for the empty tensor of the default constructor alone.
  [[nodiscard]] bool defined() const noexcept { return defined_; }

  /// Of the elements; without meaning when the tensor is not defined.
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }

  /// Valid as long as the tensor.
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }

  /// In elements; valid as long as the tensor.
  [[nodiscard]] const Strides& strides() const noexcept { return strides_; }

  /// The number of dimensions.
  [[nodiscard]] std::size_t rank() const noexcept { return shape_.size(); }

  /// The number of elements: 1 when there is no dimension.
  [[nodiscard]] std::int64_t numel() const noexcept { return numel_; }

  /// Of one dimension; a negative one counts from the last. Errc::shape_mismatch when there is none.
  [[nodiscard]] std::int64_t size(std::int64_t dim) const { return shape_[axis(dim, rank())]; }

  /// Of the row-major form: what a file needs to hold it.
  [[nodiscard]] std::uint64_t size_bytes() const noexcept;
  /// Where the bytes lie; the CPU for a shape alone.
  [[nodiscard]] Device device() const noexcept;

  /// False for shape-only tensors.
  [[nodiscard]] bool has_data() const noexcept { return storage_ != nullptr; }

  /// Row-major, without gaps; always true of one element or none.
  [[nodiscard]] bool is_contiguous() const noexcept;

  /// Null for a shape alone. Keeps the bytes alive.
  [[nodiscard]] const std::shared_ptr<const Storage>& storage() const noexcept { return storage_; }

  /// Of the first element in the storage.
  [[nodiscard]] std::uint64_t bit_offset() const noexcept { return bit_offset_; }

  /// Same storage, same place, same view: one parameter under two names.
  [[nodiscard]] bool same_view(const Tensor& other) const noexcept;

  /// @name Elements
  /// All of these throw when there are none, and read or compute them when that was still to be done.

  /// The first element, valid as long as the storage; null of an empty storage. Errc::misaligned for a view
  /// that begins inside a byte.
  [[nodiscard]] const std::byte* data() const;
  /// The first element, to be written to. The tensor keeps the memory alive; other views of it see the
  /// change, and Storage::version() goes up. Errc::invalid_argument for memory that may not be written
  /// (a file's, unless it was opened as writable: clone() first) and for a shape alone; misaligned as data().
  /// Not safe beside other threads that read the same elements.
  [[nodiscard]] std::byte* mutable_data();
  /// Whether the bytes may be written, on whatever device; false of a shape alone. Asking counts as a write
  /// (Storage::version).
  [[nodiscard]] bool is_writable();

  /// The elements of a contiguous tensor whose dtype is T's, valid as long as the storage. Errc::bad_dtype,
  /// shape_mismatch where it is not contiguous, misaligned where a file has them at an odd place: clone()
  /// first.
  template <class T>
  [[nodiscard]] std::span<const T> span() const& {
    return {reinterpret_cast<const T*>(span_bytes(dtype_of<T>, alignof(T))),
            static_cast<std::size_t>(numel_)};
  }

  /// The same to be written to, as mutable_data() allows; valid as long.
  template <class T>
  [[nodiscard]] std::span<T> mutable_span() & {
    span_bytes(dtype_of<T>, alignof(T));
    return {reinterpret_cast<T*>(mutable_data()), static_cast<std::size_t>(numel_)};
  }

  /// Of a tensor without a name (x.contiguous().span<float>()): with the tensor, which nobody else may keep
  /// alive.
  template <class T>
  [[nodiscard]] KeptSpan<const T> span() const&&;
  /// The same to be written to.
  template <class T>
  [[nodiscard]] KeptSpan<T> mutable_span() &&;

  /// Bytes [first, first + out.size()) of the row-major form, whatever the strides. Keeps memory flat: for
  /// streaming. Errc::offset_out_of_range beyond size_bytes().
  void read(std::uint64_t first, std::span<std::byte> out) const;
  /// The only element, as a double: as item<double>().
  [[nodiscard]] double item() const;

  /// The only element as a T: item<float>() of an F16, item<std::int64_t>() of an I64 beyond 2^53. Fractions
  /// are cut off, floats rounded; Errc::not_representable when T has nothing near it (300 as std::uint8_t,
  /// NaN as an integer, 1e300 as float), shape_mismatch when there is not one element, bad_dtype unless it is
  /// real.
  template <class T>
  [[nodiscard]] T item() const {
    T value{};
    read_item(dtype_of<T>, std::as_writable_bytes(std::span<T, 1>(&value, 1)));
    return value;
  }

  /// @name Views
  /// Of the same storage: nothing is read or copied, and a change through one is seen through all. Of a shape
  /// alone they are shapes.

  /// Two dimensions change places; negative ones count from the last. Errc::shape_mismatch when there
  /// is none.
  [[nodiscard]] Tensor transpose(std::int64_t a, std::int64_t b) const;

  /// The last two dimensions change places: of a matrix, the transpose. Errc::shape_mismatch when there are
  /// fewer.
  [[nodiscard]] Tensor t() const { return transpose(-2, -1); }

  /// The dimensions in another order; Errc::shape_mismatch unless each is there once.
  [[nodiscard]] Tensor permute(std::span<const std::int64_t> order) const;

  /// The same of {2, 0, 1}.
  [[nodiscard]] Tensor permute(std::initializer_list<std::int64_t> order) const {
    return permute(std::span(order.begin(), order.size()));
  }

  /// One dimension may be -1. A view where the strides allow it, else a copy as clone() makes.
  /// Errc::shape_mismatch unless it has as many elements.
  [[nodiscard]] Tensor reshape(Shape shape) const;
  /// NumPy's basic indexing: x.index({Slice{1, {}, 2}, ellipsis, -1}). Errc::offset_out_of_range for a number
  /// outside its dimension (slices are cut to it, as in Python), shape_mismatch for more indices than
  /// dimensions, invalid_argument for a step of 0 or two ellipses.
  [[nodiscard]] Tensor index(std::span<const Index> indices) const;

  /// The same of {Slice{1}, 0}.
  [[nodiscard]] Tensor index(std::initializer_list<Index> indices) const {
    return index(std::span(indices.begin(), indices.size()));
  }

  /// The view of one position of the first dimension; a negative one counts from the end.
  /// Errc::offset_out_of_range outside it, Errc::shape_mismatch when there is no dimension.
  [[nodiscard]] Tensor operator[](std::int64_t position) const { return index({Index(position)}); }

  /// `length` elements of `dim` from `start` on; Errc::shape_mismatch unless all lie inside the dimension.
  [[nodiscard]] Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  /// A new dimension of size 1 before `dim`; -1: behind the last. Errc::shape_mismatch outside [-rank - 1,
  /// rank].
  [[nodiscard]] Tensor unsqueeze(std::int64_t dim) const;
  /// Without dimension `dim` where it has size 1; else as it is. Errc::shape_mismatch when there is no such
  /// one.
  [[nodiscard]] Tensor squeeze(std::int64_t dim) const;
  /// Dimensions of size 1 as often as `shape` says, and new ones before them; -1 keeps a size. No copy:
  /// the stride is 0. Errc::shape_mismatch unless they fit, size_overflow for a negative size and beyond 63
  /// bits.
  [[nodiscard]] Tensor expand(Shape shape) const;

  /// @name Copies
  /// Row-major, in memory of their own that may be written, made by several threads (runtime.h); of a shape
  /// alone a shape alone. They throw what reading throws, Errc::size_overflow beyond 63 bits, and
  /// std::bad_alloc.

  /// Itself, and no copy, when it is row-major already; else clone().
  [[nodiscard]] Tensor contiguous() const;
  /// Always a copy.
  [[nodiscard]] Tensor clone() const;
  /// Every value converted; itself when the dtype is that already. Errc::bad_dtype unless both are real. To
  /// floating: rounded to nearest even. To an integer: towards zero, and what lies outside becomes the
  /// nearest it has, NaN becomes 0. (PyTorch's integers go round there, 300 is 44 in U8, and of floats it
  /// promises nothing.)
  [[nodiscard]] Tensor to(DType dtype) const;
  /// The same values and refusals, but nothing is computed before somebody reads it, nor kept by read();
  /// until then it keeps this one's storage. `count`, when given, grows as values are read.
  [[nodiscard]] Tensor to_lazy(DType dtype, std::shared_ptr<CastCount> count = {}) const;

 private:
  static Tensor copy_of(DType dtype, Shape shape, std::span<const std::byte> bytes);
  const std::byte* span_bytes(DType dtype, std::size_t alignment) const;
  void read_item(DType dtype, std::span<std::byte> out) const;
  [[nodiscard]] std::size_t axis(std::int64_t dim, std::size_t rank) const;
  void advance(std::int64_t elements) noexcept;
  [[nodiscard]] Tensor index_step_by_step(std::span<const Index> indices) const;
  [[nodiscard]] Tensor slice_along(std::int64_t dim, const Slice& slice) const;
  [[nodiscard]] Tensor select(std::int64_t dim, std::int64_t position) const;

  DType dtype_ = DType::f32;
  bool defined_ = false;
  std::int64_t numel_ = 0;
  Shape shape_;
  Strides strides_;
  std::shared_ptr<const Storage> storage_;
  std::uint64_t bit_offset_ = 0;
};

/// Elements and the tensor they belong to. It cannot become a std::span, which would outlive them: give the
/// tensor a name and ask that.
template <class T>
class KeptSpan {
 public:
  /// Not contiguous in the sense of std::ranges, or std::span would take it.
  class Iterator {
   public:
    using value_type = std::remove_const_t<T>;
    using reference = T&;
    using pointer = T*;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;

    /// At an element.
    explicit Iterator(T* at) : at_(at) {}

    reference operator*() const { return *at_; }

    pointer operator->() const { return at_; }

    Iterator& operator++() {
      ++at_;
      return *this;
    }

    Iterator operator++(int) { return Iterator(at_++); }

    friend bool operator==(Iterator, Iterator) = default;

   private:
    T* at_ = nullptr;
  };

  using value_type = std::remove_const_t<T>;
  using iterator = Iterator;
  using const_iterator = Iterator;
  using size_type = std::size_t;

  /// Keeps the tensor; refuses what span() refuses.
  explicit KeptSpan(Tensor tensor) : tensor_(std::move(tensor)) {
    if constexpr (std::is_const_v<T>)
      elements_ = tensor_.span<value_type>();
    else
      elements_ = tensor_.mutable_span<value_type>();
  }

  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }

  [[nodiscard]] bool empty() const noexcept { return elements_.empty(); }

  [[nodiscard]] T& operator[](std::size_t i) const { return elements_[i]; }

  [[nodiscard]] Iterator begin() const { return Iterator(elements_.data()); }

  [[nodiscard]] Iterator end() const { return Iterator(elements_.data() + elements_.size()); }

 private:
  Tensor tensor_;
  std::span<T> elements_;
};

template <class T>
KeptSpan<const T> Tensor::span() const&& {
  return KeptSpan<const T>(*this);
}

template <class T>
KeptSpan<T> Tensor::mutable_span() && {
  return KeptSpan<T>(*this);
}

/// The values as PyTorch prints them, "tensor([1.0000, 2.5000])": above 1000 elements the first and last
/// three of each dimension, of which alone the bytes are read. Where there are no values to show (shape only,
/// another device, a traced value, dtypes that are no numbers) "tensor(..., size=(2, 3))" with what is known;
/// "undefined tensor". Throws what reading the bytes throws.
[[nodiscard]] std::string to_string(const Tensor& tensor);
std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace ballast

#pragma GCC visibility pop
