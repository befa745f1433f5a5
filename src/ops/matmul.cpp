// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/matmul.h"

#include <algorithm>

#include "ballast/detail/ops/elementwise.h"
#include "ops/args.h"
#include "ops/batches.h"
#include "ops/gemm.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {

using ops::data_of;
using ops::form;

namespace ops {

Batches::Batches(const Shape& shape, std::initializer_list<const Tensor*> tensors)
    : shape_(shape), count_(product(shape, 0, shape.size())) {
  for (const Tensor* tensor : tensors) {
    const std::size_t own = tensor->rank() - 2;
    Strides strides = Dims::filled(shape.size(), 0);
    for (std::size_t i = 0; i < own; ++i) {
      if (tensor->shape()[i] != 1) strides[shape.size() - own + i] = tensor->strides()[i];
    }
    strides_.push_back(strides);
  }
}

std::int64_t Batches::offset(std::size_t operand, std::int64_t index) const {
  std::int64_t result = 0;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    result += index % shape_[i] * strides_[operand][i];
    index /= shape_[i];
  }
  return result;
}

Shape batch_shape(const Tensor& x) {
  return ShapeView(x.shape().data(), x.rank() - 2);
}

}  // namespace ops

namespace {

// [..., M, K] by [K, N] where all rows of the left side can be walked as one matrix.
bool multiply_at_once(const Tensor& a, const Tensor& b, Tensor& out) {
  if (b.rank() != 2 || a.rank() == 2) return false;
  const Tensor rows = a.reshape({ops::product(a.shape(), 0, a.rank() - 1), a.shape()[a.rank() - 1]});
  ops::gemm(ops::matrix_of(rows), ops::matrix_of(b), data_of(out), b.shape()[1]);
  return true;
}

// F64, which the kernels do not multiply: dense operands, one row of the result after another.
void multiply_wide(const Tensor& x, const Tensor& y, const ops::Batches& batches, Tensor& out) {
  const std::int64_t rows = x.shape()[x.rank() - 2];
  const std::int64_t inner = x.shape()[x.rank() - 1];
  const std::int64_t columns = y.shape()[y.rank() - 1];
  const auto* left = reinterpret_cast<const double*>(x.data());
  const auto* right = reinterpret_cast<const double*>(y.data());
  auto* to = reinterpret_cast<double*>(out.mutable_data());
  ops::parallel(batches.count() * rows, ops::rows_per_thread(inner * columns),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t i = begin; i < end; ++i) {
                    const double* from = left + batches.offset(0, i / rows) + i % rows * inner;
                    const double* by = right + batches.offset(1, i / rows);
                    double* sums = to + i * columns;
                    std::fill_n(sums, columns, 0.0);
                    for (std::int64_t k = 0; k < inner; ++k)
                      for (std::int64_t c = 0; c < columns; ++c) sums[c] += from[k] * by[k * columns + c];
                  }
                });
}

Tensor matmul_cpu(const Operation& op, const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail(Errc::shape_mismatch, op.name, "{} by {}: a tensor without dimensions is no matrix", form(a),
         form(b));
  if (a.dtype() != b.dtype())
    fail(Errc::bad_dtype, op.name, "{} by {}: one dtype is wanted", form(a), form(b));
  const Tensor left = a.rank() == 1 ? a.unsqueeze(0) : a;
  const Tensor right = b.rank() == 1 ? b.unsqueeze(1) : b;
  if (left.shape()[left.rank() - 1] != right.shape()[right.rank() - 2]) {
    fail(Errc::shape_mismatch, op.name, "{} by {}: {} columns and {} rows", form(a), form(b),
         left.shape()[left.rank() - 1], right.shape()[right.rank() - 2]);
  }
  const bool wide = a.dtype() == DType::f64;
  const Tensor x = wide ? ops::dense(left) : ops::floats(op.name, left);
  const Tensor y = wide ? ops::dense(right) : ops::floats(op.name, right);
  const std::int64_t rows = x.shape()[x.rank() - 2];
  const std::int64_t columns = y.shape()[y.rank() - 1];
  Shape shape = ops::broadcast(op.name, ops::batch_shape(x), ops::batch_shape(y));
  const ops::Batches batches(shape, {&x, &y});
  shape.push_back(rows);
  shape.push_back(columns);
  Tensor out = ops::new_tensor(wide ? DType::f64 : DType::f32, shape);
  if (wide && out.numel() > 0) {
    multiply_wide(x, y, batches, out);
  } else if (out.numel() > 0 && !multiply_at_once(x, y, out)) {
    float* to = data_of(out);
    const auto multiply = [&](std::int64_t i) {
      ops::gemm(ops::matrix_of(x, batches.offset(0, i)), ops::matrix_of(y, batches.offset(1, i)),
                to + i * rows * columns, columns);
    };
    if (batches.count() < ops::usable_threads()) {
      for (std::int64_t i = 0; i < batches.count(); ++i) multiply(i);
    } else {
      ops::parallel(batches.count(), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) multiply(i);
      });
    }
  }
  if (b.rank() == 1) shape.erase(shape.size() - 1);
  if (a.rank() == 1) shape.erase(shape.size() - (b.rank() == 1 ? 1 : 2));
  return out.reshape(shape).to(a.dtype());
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Tensor&)> matmul = {
    about("matmul", {"a", "b"}, {}, forms::matmul), {matmul_cpu}};

}  // namespace operations

Tensor matmul(const Tensor& a, const Tensor& b) {
  return run(operations::matmul, a, b);
}

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  const bool fits = weight.rank() == 3 && a.rank() >= 1 && a.rank() == b.rank() &&
                    a.shape()[a.rank() - 1] == weight.shape()[1] &&
                    b.shape()[b.rank() - 1] == weight.shape()[2] &&
                    a.narrow(-1, 0, 0).shape() == b.narrow(-1, 0, 0).shape();
  if (!fits)
    fail(Errc::shape_mismatch, "bilinear", "{} and {} with weight {}, which is [out, in1, in2]", form(a),
         form(b), form(weight));
  const std::int64_t rows = ops::product(a.shape(), 0, a.rank() - 1);
  const std::int64_t outs = weight.shape()[0];
  const Tensor left = ops::floats("bilinear", a).reshape({rows, weight.shape()[1]});
  const Tensor right = ops::floats("bilinear", b).reshape({rows, 1, weight.shape()[2]});
  // [rows, in1] [in1, out * in2] → [rows, out, in2], times b, summed over in2.
  const Tensor w = ops::floats("bilinear", weight.permute({1, 0, 2}))
                       .reshape({weight.shape()[1], outs * weight.shape()[2]});
  const Tensor half = matmul(left, w).reshape({rows, outs, weight.shape()[2]});
  Tensor out = matmul(half, right.reshape({rows, weight.shape()[2], 1})).reshape({rows, outs});
  if (bias.defined()) out = add(out, ops::parameter("bilinear", "bias", bias, outs));
  Shape shape = a.shape();
  shape[shape.size() - 1] = outs;
  return out.reshape(shape).to(a.dtype());
}

}  // namespace ballast
