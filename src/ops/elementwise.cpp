// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

#include <algorithm>

#include "ops/activation.h"
#include "ops/args.h"
#include "ops/native.h"
#include "ops/numbers.h"
#include "ops/walk.h"

namespace ballast {

Tensor Operand::wrap(double value) {
  return Tensor::from({value}, {});
}

Tensor Operand::wrap(std::int64_t value) {
  return Tensor::from({value}, {});
}

Tensor Operand::wrap(bool value) {
  return Tensor::from({value}, {});
}

namespace ops {
namespace {

constexpr std::int64_t kBuffer = 1024;  // elements of a strided row that are brought together at a time

// A row of any stride, as the kernels take it.
template <class T>
struct Row {
  const T* data;
  std::int64_t stride;  // 0 or 1
};

template <class T>
Row<T> packed(const T* data, std::int64_t stride, std::int64_t n, T* buffer) {
  if (stride == 0 || stride == 1) return {data, stride};
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = data[i * stride];
  return {buffer, 1};
}

// Result memory: laid out as `like` when that is dense in another order than row-major, else row-major.
Tensor result_like(DType dtype, const Shape& shape, const Tensor& like) {
  Tensor memory = new_tensor(dtype, shape);
  if (like.shape() != shape || !is_channels_last(like)) return memory;
  return {dtype, shape, channels_last_strides(shape), memory.storage(), memory.bit_offset()};
}

template <class T>
void unary_wide(Unary which, const Tensor& x, Tensor& out, double p, double q) {
  const auto* in = reinterpret_cast<const T*>(x.data());
  auto* to = reinterpret_cast<T*>(out.mutable_data());
  const Walk walk{&out, &x};
  const Offsets step = walk.row_strides();
  walk.rows([&](const Offsets& at, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      to[at[0] + i * step[0]] = unary_value(which, in[at[1] + i * step[1]], p, q);
  });
}

void unary_floats(Unary which, const Tensor& x, Tensor& out, double p, double q) {
  const auto kernel = kernels().unary[static_cast<std::size_t>(which)];
  const float* in = data_of(x);
  float* to = data_of(out);
  const auto a = static_cast<float>(p);
  const auto b = static_cast<float>(q);
  const Walk walk{&out, &x};
  const std::int64_t stride = walk.row_strides()[1];
  walk.rows([&](const Offsets& at, std::int64_t n) {
    if (stride == 1) return kernel(in + at[1], to + at[0], n, a, b);
    float buffer[kBuffer];
    for (std::int64_t begin = 0; begin < n; begin += kBuffer) {
      const std::int64_t count = std::min(kBuffer, n - begin);
      for (std::int64_t i = 0; i < count; ++i) buffer[i] = in[at[1] + (begin + i) * stride];
      kernel(buffer, to + at[0] + begin, count, a, b);
    }
  });
}

// The operand in the dtype of the computation, spread to the result's shape.
Tensor operand_for(const Operand& operand, DType dtype, const Shape& shape) {
  const Tensor& x = operand.tensor();
  return aligned(native_view(x).to(dtype)).expand(shape);
}

// Both operands as F32, in one shape: the result's, or that of its blocks where images lie in blocks.
struct Floats {
  Tensor x;
  Tensor y;
  bool blocks;

  /// In `memory`, which no one else looks at, when one of the two lies there in the result's order.
  [[nodiscard]] Tensor new_result(const Tensor* memory = nullptr) const {
    const Tensor& like = is_channels_last(x) ? x : y;
    for (const Tensor* operand : {&x, &y}) {
      if (memory == nullptr || !memory->defined() || operand->storage() != memory->storage()) continue;
      if (is_channels_last(like) ? is_channels_last(*operand) : operand->is_contiguous()) return *operand;
    }
    return result_like(DType::f32, x.shape(), like);
  }

  [[nodiscard]] Tensor in_order(const Tensor& out, const Shape& shape, double bound) const {
    return blocks ? from_blocks(out, shape, bound) : row_major(out, bound);
  }
};

Floats float_operands(const Operand& a, const Operand& b, const Shape& shape) {
  const Tensor x = blocks_of(a.tensor());
  const Tensor y = blocks_of(b.tensor());
  const auto number = [](const Operand& operand) { return operand.tensor().rank() == 0; };
  if (x.defined() && y.defined() && a.tensor().shape() == b.tensor().shape()) return {x, y, true};
  if (x.defined() && number(b)) return {x, operand_for(b, DType::f32, x.shape()), true};
  if (y.defined() && number(a)) return {operand_for(a, DType::f32, y.shape()), y, true};
  return {operand_for(a, DType::f32, shape), operand_for(b, DType::f32, shape), false};
}

// Of a sum, with room for its rounding; ReLU does not make it larger.
double bound_of_sum(const Operand& a, const Operand& b, Activation activation = {}) {
  const bool keeps = activation.kind == Activation::Kind::none || activation.kind == Activation::Kind::relu;
  return keeps ? (bound_of(a.tensor()) + bound_of(b.tensor())) * 1.01 : kUnbounded;
}

// Both operands and the kernel are of T.
template <class T, class Out, class Kernel>
void binary_rows(Kernel kernel, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto* left = reinterpret_cast<const T*>(a.data());
  const auto* right = reinterpret_cast<const T*>(b.data());
  auto* to = reinterpret_cast<Out*>(out.mutable_data());
  const Walk walk{&out, &a, &b};
  const Offsets step = walk.row_strides();
  const bool direct = step[1] >= 0 && step[1] <= 1 && step[2] >= 0 && step[2] <= 1;
  walk.rows([&](const Offsets& at, std::int64_t n) {
    if (direct) return kernel(left + at[1], step[1], right + at[2], step[2], to + at[0], n);
    T buffers[2][kBuffer];
    for (std::int64_t begin = 0; begin < n; begin += kBuffer) {
      const std::int64_t count = std::min(kBuffer, n - begin);
      const Row<T> x = packed(left + at[1] + begin * step[1], step[1], count, buffers[0]);
      const Row<T> y = packed(right + at[2] + begin * step[2], step[2], count, buffers[1]);
      kernel(x.data, x.stride, y.data, y.stride, to + at[0] + begin, count);
    }
  });
}

template <class T>
void binary_wide(Binary which, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto* left = reinterpret_cast<const T*>(a.data());
  const auto* right = reinterpret_cast<const T*>(b.data());
  auto* to = reinterpret_cast<T*>(out.mutable_data());
  const Walk walk{&out, &a, &b};
  const Offsets step = walk.row_strides();
  walk.rows([&](const Offsets& at, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      to[at[0] + i] = binary_value(which, left[at[1] + i * step[1]], right[at[2] + i * step[2]]);
  });
}

// In F64 or I64, one value at a time: what has no kernel.
Tensor wide_arithmetic(Binary which, const Operand& a, const Operand& b, DType dtype, const Shape& shape) {
  const DType compute = compute_dtype(dtype);
  Tensor out = new_tensor(compute, shape);
  const Tensor x = operand_for(a, compute, shape);
  const Tensor y = operand_for(b, compute, shape);
  if (compute == DType::f64) {
    binary_wide<double>(which, x, y, out);
    return out;
  }
  binary_wide<std::int64_t>(which, x, y, out);
  return narrowed(out, dtype);
}

// Only a number, or a tensor without dimensions, may have more values than the result's dtype.
bool is_wider(const Operand& operand, DType dtype) {
  return operand.tensor().rank() == 0 && operand.tensor().dtype() != dtype && dtype != DType::f64;
}

// False for a number that the dtype does not have.
bool has_value(const Operand& operand, DType dtype) {
  if (!is_wider(operand, dtype)) return true;
  const Tensor number = dense(operand.tensor().to(DType::i64));
  return narrowed(number, dtype).to(DType::i64).span<std::int64_t>()[0] == number.span<std::int64_t>()[0];
}

// The operand in the dtype it is computed in. What does not fit goes round as sums and products do; as a
// bound it bounds nothing, and so may be the last value there is.
Tensor number_for(const Operand& operand, DType dtype, const Shape& shape, bool bound) {
  if (bound || !is_wider(operand, dtype)) return operand_for(operand, dtype, shape);
  return narrowed(dense(operand.tensor().to(DType::i64)), dtype).expand(shape);
}

}  // namespace

Tensor sum_cpu(const Operation& op, const Operand& a, const Operand& b, const Tensor* memory,
               Activation activation) {
  const DType dtype = promoted(op.name, a, b);
  const Shape shape = broadcast(op.name, a.tensor().shape(), b.tensor().shape());
  if (compute_dtype(dtype) != DType::f32 || try_numel(shape) == 0)
    return activate(arithmetic(op.name, Binary::add, a, b), activation);
  const Floats in = float_operands(a, b, shape);
  Tensor out = in.new_result(memory);
  const auto sum = kernels().binary[static_cast<std::size_t>(Binary::add)];
  const ActivationKernel then = kernel_of(activation);
  const auto finish = kernels().unary[static_cast<std::size_t>(then.which)];
  const bool finishes = activation.kind != Activation::Kind::none;
  binary_rows<float, float>(
      [=, p = static_cast<float>(then.p), q = static_cast<float>(then.q)](const float* l, std::int64_t l_step,
                                                                          const float* r, std::int64_t r_step,
                                                                          float* to, std::int64_t n) {
        sum(l, l_step, r, r_step, to, n);
        if (finishes) finish(to, to, n, p, q);
      },
      in.x, in.y, out);
  const Tensor result = in.in_order(out, shape, bound_of_sum(a, b, activation));
  return dtype == DType::f32 ? result : result.to(dtype);  // rounded once, at the end
}

Tensor arithmetic(const char* op, Binary which, const Operand& a, const Operand& b) {
  DType dtype = promoted(op, a, b);
  if (which == Binary::div && !is_floating(dtype)) dtype = DType::f32;
  if (dtype == DType::boolean && which == Binary::sub)
    fail(Errc::bad_dtype, op, "BOOL cannot be subtracted; logical_xor is what is meant, or logical_not");
  const Shape shape = broadcast(op, a.tensor().shape(), b.tensor().shape());
  if (try_numel(shape) == 0) return Tensor::empty(dtype, shape);
  const DType compute = compute_dtype(dtype);
  if (compute == DType::f32) {
    const Floats in = float_operands(a, b, shape);
    Tensor out = in.new_result();
    binary_rows<float, float>(kernels().binary[static_cast<std::size_t>(which)], in.x, in.y, out);
    const Tensor result = in.in_order(out, shape, which == Binary::add ? bound_of_sum(a, b) : kUnbounded);
    return dtype == compute ? result : result.to(dtype);
  }
  return with_numbers(dtype, [&]<class T>(const NumberKernels<T>& table) {
    const auto kernel = table.binary[static_cast<std::size_t>(which)];
    if (kernel == nullptr) return wide_arithmetic(which, a, b, dtype, shape);
    const bool bounds = which == Binary::minimum || which == Binary::maximum;
    const Tensor x = number_for(a, dtype, shape, bounds);
    const Tensor y = number_for(b, dtype, shape, bounds);
    Tensor out = result_like(dtype, shape, is_channels_last(x) ? x : y);
    binary_rows<T, T>(kernel, x, y, out);
    return row_major(out);
  });
}

Tensor comparison(const char* op, Compare which, const Operand& a, const Operand& b, DType dtype) {
  DType compute = dtype;
  if (is_floating(compute))
    compute = compute_dtype(compute);
  else if (!has_value(a, compute) || !has_value(b, compute))
    compute = DType::i64;
  const Shape shape = broadcast(op, a.tensor().shape(), b.tensor().shape());
  const Tensor x = operand_for(a, compute, shape);
  const Tensor y = operand_for(b, compute, shape);
  Tensor out = new_tensor(DType::boolean, shape);
  if (out.numel() == 0) return out;
  if (compute == DType::f32)
    binary_rows<float, std::uint8_t>(kernels().compare[static_cast<std::size_t>(which)], x, y, out);
  else
    with_numbers(compute, [&]<class T>(const NumberKernels<T>& table) {
      binary_rows<T, std::uint8_t>(table.compare[static_cast<std::size_t>(which)], x, y, out);
    });
  return out;
}

Tensor unary(const char* op, Unary which, const Tensor& x, OnIntegers integers, double p, double q) {
  require_computable(op, x);
  if (!is_floating(x.dtype()) &&
      (integers == OnIntegers::refuse || (integers == OnIntegers::keep && x.dtype() == DType::boolean))) {
    fail(Errc::bad_dtype, op, "does not compute with {}; use to() first", form(x));
  }
  const bool keep = is_floating(x.dtype()) || integers == OnIntegers::keep;
  const DType dtype = keep ? x.dtype() : DType::f32;
  const DType compute = compute_dtype(dtype);
  if (const Tensor blocks = blocks_of(x); blocks.defined()) {  // of F32
    Tensor out = result_like(DType::f32, blocks.shape(), blocks);
    unary_floats(which, blocks, out, p, q);
    return from_blocks(out, x.shape());
  }
  const Tensor in = aligned(native_view(x).to(compute));
  Tensor out = result_like(compute, x.shape(), in);
  if (out.numel() == 0) return Tensor::empty(dtype, x.shape());
  if (compute == DType::f32)
    unary_floats(which, in, out, p, q);
  else if (compute == DType::f64)
    unary_wide<double>(which, in, out, p, q);
  else
    unary_wide<std::int64_t>(which, in, out, p, q);
  if (compute == DType::i64) return narrowed(row_major(out), dtype);
  return dtype == compute ? row_major(out) : out.to(dtype);
}

void unary_in_place(Unary which, Tensor& x, double p, double q) {
  if (x.numel() > 0) unary_floats(which, x, x, p, q);
}

}  // namespace ops
}  // namespace ballast
