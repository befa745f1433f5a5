// SPDX-License-Identifier: Apache-2.0
#include "ops/gemm.h"

#include <dnnl.h>

#include <vector>

#include "base/fail.h"
#include "ops/kernels.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

// A matrix as BLAS takes it: one of the strides is 1.
struct BlasMatrix {
  const float* data;
  char transposed;
  std::int64_t leading;
  std::vector<float> copy;
};

BlasMatrix blas_matrix(const Matrix& m) {
  const bool plain = m.column_stride == 1 || m.columns == 1;
  const bool turned = m.row_stride == 1 || m.rows == 1;
  if (plain && (m.rows == 1 || m.row_stride >= m.columns))
    return {m.data, 'N', m.rows == 1 ? m.columns : m.row_stride, {}};
  if (turned && (m.columns == 1 || m.column_stride >= m.rows))
    return {m.data, 'T', m.columns == 1 ? m.rows : m.column_stride, {}};
  BlasMatrix packed{nullptr, 'N', m.columns,
                    std::vector<float>(static_cast<std::size_t>(m.rows * m.columns))};
  for (std::int64_t i = 0; i < m.rows; ++i) {
    for (std::int64_t j = 0; j < m.columns; ++j) {
      packed.copy[static_cast<std::size_t>(i * m.columns + j)] =
          m.data[i * m.row_stride + j * m.column_stride];
    }
  }
  packed.data = packed.copy.data();
  return packed;
}

void scale_rows(float* c, std::int64_t stride, std::int64_t rows, std::int64_t columns, float beta) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) c[i * stride + j] = beta == 0 ? 0 : c[i * stride + j] * beta;
  }
}

void small_gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t c_stride, float alpha, float beta) {
  const Kernels& kernel = kernels();
  if (b.column_stride == 1) {
    scale_rows(c, c_stride, a.rows, b.columns, beta);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t k = 0; k < a.columns; ++k) {
        kernel.axpy(alpha * a.data[i * a.row_stride + k * a.column_stride], b.data + k * b.row_stride,
                    c + i * c_stride, b.columns);
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < b.columns; ++j) {
      float sum = 0;
      if (a.column_stride == 1 && b.row_stride == 1) {
        sum = kernel.dot(a.data + i * a.row_stride, b.data + j * b.column_stride, a.columns);
      } else {
        for (std::int64_t k = 0; k < a.columns; ++k) {
          sum +=
              a.data[i * a.row_stride + k * a.column_stride] * b.data[k * b.row_stride + j * b.column_stride];
        }
      }
      float& out = c[i * c_stride + j];
      out = alpha * sum + (beta == 0 ? 0 : beta * out);
    }
  }
}

}  // namespace

Matrix matrix_of(const Tensor& x, std::int64_t offset) {
  const std::size_t rank = x.rank();
  return {reinterpret_cast<const float*>(x.data()) + offset, x.shape()[rank - 2], x.shape()[rank - 1],
          x.strides()[rank - 2], x.strides()[rank - 1]};
}

void gemm(const Matrix& a, const Matrix& b, float* c, std::int64_t c_stride, float alpha, float beta) {
  if (a.rows == 0 || b.columns == 0) return;
  if (a.columns == 0) return scale_rows(c, c_stride, a.rows, b.columns, beta);
  if (a.rows * b.columns * a.columns <= kSmallProduct) return small_gemm(a, b, c, c_stride, alpha, beta);
  const BlasMatrix x = blas_matrix(a);
  const BlasMatrix y = blas_matrix(b);
  const ThreadScope scope;
  const dnnl_status_t status = dnnl_sgemm(x.transposed, y.transposed, a.rows, b.columns, a.columns, alpha,
                                          x.data, x.leading, y.data, y.leading, beta, c, c_stride);
  if (status != dnnl_success) {
    fail(Errc::unsupported, "matmul", "oneDNN refuses [{}, {}] by [{}, {}] (status {})", a.rows, a.columns,
         b.rows, b.columns, static_cast<int>(status));
  }
}

}  // namespace ballast::ops
