// SPDX-License-Identifier: Apache-2.0
// Elements chosen by numbers: gather, scatter, scatter_add, index_select, embedding, one_hot.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/movement.h"
#include "ops/args.h"
#include "ops/copy_into.h"
#include "ops/elementwise.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {

using ops::axis_of;
using ops::form;

namespace {

std::int64_t checked_index(const char* op, std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size)
    fail(Errc::offset_out_of_range, op, "index {} is outside the dimension of size {}", index, size);
  return index;
}

void check_index_shape(const char* op, const Tensor& x, std::size_t axis, const Tensor& index) {
  bool fits = x.rank() == index.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == axis || index.shape()[i] <= x.shape()[i];
  if (!fits)
    fail(Errc::shape_mismatch, op, "index {} does not fit {} along dimension {}", form(index), form(x), axis);
}

// The rows of `index` along its last dimension, with where each begins in a tensor of these strides; the axis
// of the index is left out.
class IndexRows {
 public:
  IndexRows(const Shape& index, const Strides& strides, std::size_t axis)  // NOLINT(modernize-pass-by-value)
      : sizes_(index), strides_(strides), at_(index.size(), 0) {
    strides_[axis] = 0;
  }

  [[nodiscard]] std::int64_t length() const { return sizes_[sizes_.size() - 1]; }

  [[nodiscard]] std::int64_t offset() const { return offset_; }

  void move_to(std::int64_t row) {
    offset_ = 0;
    for (std::size_t d = sizes_.size() - 1; d-- > 0; row /= sizes_[d]) {
      at_[d] = row % sizes_[d];
      offset_ += at_[d] * strides_[d];
    }
  }

  void advance() {
    for (std::size_t d = sizes_.size() - 1; d-- > 0;) {
      offset_ += strides_[d];
      if (++at_[d] < sizes_[d]) return;
      offset_ -= strides_[d] * sizes_[d];
      at_[d] = 0;
    }
  }

 private:
  Shape sizes_;
  Strides strides_;
  std::vector<std::int64_t> at_;
  std::int64_t offset_ = 0;
};

// One dimension of a row-major tensor, by index.
struct Line {
  const char* op;
  std::int64_t size;
  std::int64_t stride;
  std::int64_t along;  // how far the elements of one row of the index are apart: 0 when the row goes along
                       // the dimension

  Line(const char* name, const Shape& shape, std::size_t axis)
      : op(name),
        size(shape[axis]),
        stride(contiguous_strides(shape)[axis]),
        along(axis + 1 == shape.size() ? 0 : 1) {}

  [[nodiscard]] std::int64_t place(std::int64_t j, std::int64_t index) const {
    return j * along + checked_index(op, index, size) * stride;
  }
};

// Rows along the dimension are each a thread's own; of others, strips of columns are: of two writes to one
// place the later one stays.
template <class T, class Store>
void scatter_into(const char* op, Tensor& out, std::size_t axis, const Tensor& numbers, const Tensor& values,
                  const Store& store) {
  constexpr std::int64_t kStrip = 512;
  const std::int64_t* number = numbers.span<std::int64_t>().data();
  const T* from = reinterpret_cast<const T*>(values.data());
  T* to = reinterpret_cast<T*>(out.mutable_data());
  const Line line(op, out.shape(), axis);
  const IndexRows all(numbers.shape(), contiguous_strides(out.shape()), axis);
  const std::int64_t n = all.length();
  const std::int64_t count = numbers.numel() / n;
  const std::int64_t width = line.along == 0 ? n : std::min(n, kStrip);
  const std::int64_t strips = (n - 1) / width + 1;
  const std::int64_t outer = line.along == 0 ? count : ops::product(numbers.shape(), 0, axis);
  const std::int64_t each = count / outer;
  ops::parallel(
      outer * strips, ops::rows_per_thread(each * width), [&](std::int64_t begin, std::int64_t end) {
        IndexRows rows = all;
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i % strips * width;
          const std::int64_t last = std::min(n, first + width);
          rows.move_to(i / strips * each);
          for (std::int64_t row = i / strips * each; row < (i / strips + 1) * each; ++row, rows.advance()) {
            T* base = to + rows.offset();
            for (std::int64_t j = first; j < last; ++j)
              store(base[line.place(j, number[row * n + j])], from[row * n + j]);
          }
        }
      });
}

// Of rows of `size` elements, those with these numbers. Nothing needs to be aligned.
void select_elements(const std::byte* from, std::int64_t rows, std::int64_t size,
                     std::span<const std::int64_t> number, DType dtype, std::byte* to) {
  const auto count = static_cast<std::int64_t>(number.size());
  ops::with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    ops::parallel(rows, ops::rows_per_thread(count), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::byte* in = from + static_cast<std::size_t>(row * size) * sizeof(T);
        std::byte* out = to + static_cast<std::size_t>(row * count) * sizeof(T);
        for (const std::int64_t one : number) {
          std::memcpy(out, in + static_cast<std::size_t>(one) * sizeof(T), sizeof(T));
          out += sizeof(T);
        }
      }
    });
  });
}

Tensor gather_cpu(const Operation& op, const Tensor& x, std::int64_t dim, const Tensor& index) {
  ops::require_movable(op.name, x);
  const std::size_t axis = axis_of(op.name, dim, x);
  check_index_shape(op.name, x, axis, index);
  if (x.rank() == 0) return gather(x.reshape({1}), 0, index.reshape({1})).reshape({});
  const Tensor numbers = ops::dense_indices(op.name, index);
  const Tensor in = ops::dense(x);
  Tensor out = Tensor::empty(x.dtype(), index.shape());
  if (out.numel() == 0) return out;
  const std::int64_t* number = numbers.span<std::int64_t>().data();
  const Line line(op.name, in.shape(), axis);
  const IndexRows all(numbers.shape(), contiguous_strides(in.shape()), axis);
  const std::int64_t n = all.length();
  ops::with_element_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const T* from = reinterpret_cast<const T*>(in.data());
    T* to = reinterpret_cast<T*>(out.mutable_data());
    ops::parallel(out.numel() / n, ops::rows_per_thread(n), [&](std::int64_t begin, std::int64_t end) {
      IndexRows rows = all;
      rows.move_to(begin);
      for (std::int64_t row = begin; row < end; ++row, rows.advance()) {
        const T* base = from + rows.offset();
        for (std::int64_t j = 0; j < n; ++j) to[row * n + j] = base[line.place(j, number[row * n + j])];
      }
    });
  });
  return out;
}

// Those of `source` that have an index, row-major.
Tensor scattered_values(const char* op, const Tensor& x, const Tensor& index, const Tensor& source) {
  if (source.dtype() != x.dtype())
    fail(Errc::bad_dtype, op, "{} into {}: one dtype is wanted", form(source), form(x));
  check_index_shape(op, source, source.rank(), index);
  Tensor values = source;
  for (std::size_t i = 0; i < index.rank(); ++i)
    values = values.narrow(static_cast<std::int64_t>(i), 0, index.shape()[i]);
  return ops::dense(values);
}

Tensor scatter_cpu(const Operation& op, const Tensor& x, std::int64_t dim, const Tensor& index,
                   const Operand& source) {
  ops::require_movable(op.name, x);
  const std::size_t axis = axis_of(op.name, dim, x);
  check_index_shape(op.name, x, axis, index);
  if (x.rank() == 0)
    return scatter(x.reshape({1}), 0, index.reshape({1}),
                   source.is_number() ? source : source.tensor().reshape({1}))
        .reshape({});
  const Tensor values = source.is_number() ? ops::dense(source.tensor().to(x.dtype()).expand(index.shape()))
                                           : scattered_values(op.name, x, index, source.tensor());
  const Tensor numbers = ops::dense_indices(op.name, index);
  Tensor out = x.clone();
  if (index.numel() == 0) return out;
  ops::with_element_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    scatter_into<T>(op.name, out, axis, numbers, values, [](T& to, T from) { to = from; });
  });
  return out;
}

// Integers go round at 64 bits, which loses none of the lower ones.
template <class T>
void add_scattered(const char* op, Tensor& out, std::size_t axis, const Tensor& numbers,
                   const Tensor& values) {
  using Number = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;
  scatter_into<T>(op, out, axis, numbers, values, [](T& to, T from) {
    to = static_cast<T>(static_cast<Number>(to) + static_cast<Number>(from));
  });
}

Tensor scatter_add_cpu(const Operation& op, const Tensor& x, std::int64_t dim, const Tensor& index,
                       const Tensor& source) {
  ops::require_computable(op.name, x);
  const std::size_t axis = axis_of(op.name, dim, x);
  check_index_shape(op.name, x, axis, index);
  if (x.rank() == 0)
    return scatter_add(x.reshape({1}), 0, index.reshape({1}), source.reshape({1})).reshape({});
  const DType wide = ops::compute_dtype(x.dtype());
  const Tensor values = scattered_values(op.name, x, index, source).to(wide);
  const Tensor numbers = ops::dense_indices(op.name, index);
  Tensor out = x.to(wide).clone();
  if (index.numel() > 0) {
    if (wide == DType::f32)
      add_scattered<float>(op.name, out, axis, numbers, values);
    else if (wide == DType::f64)
      add_scattered<double>(op.name, out, axis, numbers, values);
    else
      add_scattered<std::int64_t>(op.name, out, axis, numbers, values);
  }
  return wide == DType::i64 ? ops::narrowed(out, x.dtype()) : out.to(x.dtype());
}

Tensor index_select_cpu(const Operation& op, const Tensor& x, std::int64_t dim, const Tensor& index) {
  ops::require_movable(op.name, x);
  const std::size_t axis = axis_of(op.name, dim, x);
  if (index.rank() > 1 || x.rank() == 0)
    fail(Errc::shape_mismatch, op.name, "index {} for {}: a list is wanted", form(index), form(x));
  const Tensor numbers = ops::dense_indices(op.name, index);
  const Tensor in = x.contiguous();  // its bytes are moved, wherever they lie
  Shape shape = x.shape();
  shape[axis] = index.numel();
  Tensor out = ops::new_tensor(x.dtype(), shape);
  const auto number = numbers.span<std::int64_t>();
  for (const std::int64_t one : number) checked_index(op.name, one, x.shape()[axis]);
  if (out.numel() == 0) return out;
  const std::size_t bytes =
      static_cast<std::size_t>(ops::product(shape, axis + 1, shape.size())) * (info(x.dtype()).bits / 8);
  const std::byte* from = in.data();
  std::byte* to = out.mutable_data();
  const auto count = static_cast<std::int64_t>(number.size());
  const std::int64_t outer = ops::product(shape, 0, axis);
  if (bytes == info(x.dtype()).bits / 8) {
    select_elements(from, outer, x.shape()[axis], number, x.dtype(), to);
    return out;
  }
  ops::parallel(outer * count, static_cast<std::int64_t>(65536 / bytes) + 1,
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t source =
                        i / count * x.shape()[axis] + number[static_cast<std::size_t>(i % count)];
                    std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                                from + static_cast<std::size_t>(source) * bytes, bytes);
                  }
                });
  return out;
}

Tensor embedding_cpu(const Operation& op, const Tensor& index, const Tensor& weight) {
  if (weight.rank() != 2)
    fail(Errc::shape_mismatch, op.name, "weight is {}, must be [count, features]", form(weight));
  const Tensor numbers = ops::dense_indices(op.name, index);
  for (const std::int64_t one : numbers.span<std::int64_t>()) checked_index(op.name, one, weight.shape()[0]);
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  return index_select(weight, 0, numbers.reshape({-1})).reshape(shape);
}

Tensor one_hot_cpu(const Operation& op, const Tensor& index, std::int64_t classes) {
  const Tensor numbers = ops::dense_indices(op.name, index).reshape({-1});
  const auto number = numbers.span<std::int64_t>();
  if (classes == -1) {
    if (number.empty())
      fail(Errc::invalid_argument, op.name, "the number of classes cannot be told from no indices");
    const std::int64_t largest = *std::max_element(number.begin(), number.end());
    if (largest == INT64_MAX) fail(Errc::size_overflow, op.name, "{} classes and one", largest);
    classes = largest + 1;
  }
  Shape shape = index.shape();
  shape.push_back(std::max<std::int64_t>(classes, 0));
  Tensor out = zeros(shape, DType::i64);
  auto* to = reinterpret_cast<std::int64_t*>(out.mutable_data());
  for (std::size_t i = 0; i < number.size(); ++i)
    to[static_cast<std::int64_t>(i) * classes + checked_index(op.name, number[i], classes)] = 1;
  return out;
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&)> gather = {
    about("gather", {"x", "index"}, {"dim"}, forms::gather), {gather_cpu}};
constinit const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Operand&)> scatter = {
    about("scatter", {"x", "index", "source"}, {"dim"}, forms::scatter), {scatter_cpu}};
constinit const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&, const Tensor&)> scatter_add = {
    about("scatter_add", {"x", "index", "source"}, {"dim"}, forms::scatter_add), {scatter_add_cpu}};
constinit const OperationOf<Tensor(const Tensor&, std::int64_t, const Tensor&)> index_select = {
    about("index_select", {"x", "index"}, {"dim"}, forms::index_select), {index_select_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Tensor&)> embedding = {
    about("embedding", {"index", "weight"}, {}, forms::embedding), {embedding_cpu}};
constinit const OperationOf<Tensor(const Tensor&, std::int64_t)> one_hot = {
    about("one_hot", {"index"}, {"classes"}, forms::one_hot), {one_hot_cpu}};

}  // namespace operations

Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index) {
  return run(operations::gather, x, dim, index);
}

Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index, const Operand& source) {
  return run(operations::scatter, x, dim, index, source);
}

Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source) {
  return run(operations::scatter_add, x, dim, index, source);
}

Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index) {
  return run(operations::index_select, x, dim, index);
}

Tensor embedding(const Tensor& index, const Tensor& weight) {
  return run(operations::embedding, index, weight);
}

Tensor one_hot(const Tensor& index, std::int64_t classes) {
  return run(operations::one_hot, index, classes);
}

}  // namespace ballast
