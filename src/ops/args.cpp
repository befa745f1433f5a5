// SPDX-License-Identifier: Apache-2.0
#include "ops/args.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "base/checked.h"
#include "tensor/trace.h"

namespace ballast::ops {
namespace {

// Kinds in the order in which one overrules the other.
int category(DType dtype) {
  if (dtype == DType::boolean) return 0;
  return is_floating(dtype) ? 2 : 1;
}

bool computable(DType dtype) {
  constexpr std::array kComputable = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                      DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};
  return std::find(kComputable.begin(), kComputable.end(), dtype) != kComputable.end();
}

DType promote_types(DType a, DType b) {
  if (a == b) return a;
  if (category(a) != category(b)) return category(a) > category(b) ? a : b;
  const auto has = [&](DType one) { return a == one || b == one; };
  if (category(a) == 2) return has(DType::f64) ? DType::f64 : DType::f32;  // F16 with BF16 too
  if (has(DType::i64)) return DType::i64;
  if (has(DType::i32)) return DType::i32;
  return DType::i16;  // I16 with anything smaller, U8 with I8
}

// PyTorch's order of precedence inside one kind: tensors with dimensions, tensors without, numbers.
int rank_of(const Operand& operand) {
  if (operand.is_number()) return 0;
  return operand.tensor().rank() == 0 ? 1 : 2;
}

DType dtype_of_operand(const Operand& operand) {
  const DType dtype = operand.tensor().dtype();
  return operand.is_number() && dtype == DType::f64 ? DType::f32 : dtype;
}

}  // namespace

std::string form(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{} {}", info(tensor.dtype()).code, to_string(tensor.shape()))
                          : "an undefined tensor";
}

std::size_t axis_of(const char* op, std::int64_t dim, const Tensor& tensor) {
  const auto rank = std::max<std::int64_t>(static_cast<std::int64_t>(tensor.rank()),
                                           1);  // PyTorch: a scalar has dimensions 0 and -1
  if (dim < -rank || dim >= rank) fail(Errc::shape_mismatch, op, "{} has no dimension {}", form(tensor), dim);
  return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
}

Dims spatial(const char* op, const char* what, const Dims& given, std::size_t count, std::int64_t least) {
  if (given.size() != 1 && given.size() != count) {
    fail(Errc::shape_mismatch, op, "{} {} for {} spatial dimensions", what, to_string(given), count);
  }
  Dims all = given.size() == count ? given : Dims::filled(count, given[0]);
  for (const std::int64_t number : all) {
    if (number < least)
      fail(Errc::invalid_argument, op, "{} {}: must be at least {}", what, to_string(given), least);
    if (number > kMostSpatial)
      fail(Errc::invalid_argument, op, "{} {} is beyond all measure", what, to_string(given));
  }
  return all;
}

std::int64_t checked_size(const char* op, std::int64_t a, std::int64_t b) {
  return checked_mul(a, b, op);
}

void require_measurable(const char* op, const Tensor& x, std::size_t spatial) {
  for (std::size_t i = x.rank() - spatial; i < x.rank(); ++i) {
    if (x.shape()[i] > kMostSpatial) fail(Errc::size_overflow, op, "{} is beyond all measure", form(x));
  }
}

Shape broadcast(const char* op, ShapeView a, ShapeView b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape = Dims::filled(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    const std::int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1) {
      fail(Errc::shape_mismatch, op,
           "shapes {} and {} cannot be broadcast together (dimension {}: {} and {})", to_string(a),
           to_string(b), i, x, y);
    }
    shape[i] = x == 1 ? y : x;
  }
  return shape;
}

void require_defined(const char* op, const Tensor& x) {
  if (!x.defined()) fail(Errc::invalid_argument, op, "an operand is an undefined tensor");
}

void require_computable(const char* op, const Tensor& x) {
  require_defined(op, x);
  if (!computable(x.dtype())) fail(Errc::bad_dtype, op, "does not compute with {}; use to() first", form(x));
}

DType promoted(const char* op, const Operand& a, const Operand& b) {
  require_computable(op, a.tensor());
  require_computable(op, b.tensor());
  const DType x = dtype_of_operand(a);
  const DType y = dtype_of_operand(b);
  if (rank_of(a) == rank_of(b)) return promote_types(x, y);
  const DType high = rank_of(a) > rank_of(b) ? x : y;
  const DType low = rank_of(a) > rank_of(b) ? y : x;
  return category(high) >= category(low) ? high : promote_types(high, low);
}

DType compute_dtype(DType dtype) noexcept {
  if (dtype == DType::f64) return DType::f64;
  return is_floating(dtype) ? DType::f32 : DType::i64;
}

bool is_aligned(const Tensor& x) {
  if (x.numel() == 0 || tracing::on()) return true;  // a traced tensor has no place in memory
  // Two words are read for a dtype of 16 bytes.
  const std::size_t size = std::clamp<std::size_t>(info(x.dtype()).bits / 8, 1, 8);
  return reinterpret_cast<std::uintptr_t>(x.data()) % size == 0;
}

Tensor aligned(const Tensor& x) {
  return is_aligned(x) ? x : x.clone();
}

Tensor dense(const Tensor& x) {
  return aligned(x.contiguous());
}

Tensor floats(const char* op, const Tensor& x) {
  require_defined(op, x);
  if (x.dtype() != DType::f32 && x.dtype() != DType::f16 && x.dtype() != DType::bf16) {
    fail(Errc::bad_dtype, op, "computes with F32, F16 and BF16, not with {}; use to(DType::f32) first",
         form(x));
  }
  return aligned(x.to(DType::f32));
}

Tensor dense_floats(const char* op, const Tensor& x) {
  return dense(floats(op, x));
}

// Which goes back to the system at once. From malloc it would leave holes: each of a model's weights is of
// another size.
static std::shared_ptr<Storage> passing_memory(std::uint64_t size) {
  constexpr std::uint64_t kLarge = 1 << 20;
  if (size < kLarge) return Storage::heap(size);
  const auto bytes = static_cast<std::size_t>(size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, bytes, MADV_HUGEPAGE);
  return Storage::borrow(memory, size, [memory, bytes] { munmap(memory, bytes); });
}

Tensor dense_floats_once(const char* op, const Tensor& weight) {
  const bool is_made = !weight.has_data() || weight.storage()->ready();
  if (is_made || weight.dtype() != DType::f32 || !weight.is_contiguous() || tracing::on())
    return dense_floats(op, weight);
  Tensor values = Tensor::contiguous_view(DType::f32, weight.shape(), passing_memory(weight.size_bytes()));
  weight.read(0, {values.mutable_data(), static_cast<std::size_t>(values.size_bytes())});
  return values;
}

Tensor dense_indices(const char* op, const Tensor& x) {
  require_computable(op, x);
  if (category(x.dtype()) != 1) fail(Errc::bad_dtype, op, "indices must be integers, not {}", form(x));
  return dense(x.to(DType::i64));
}

Tensor parameter(const char* op, const char* what, const Tensor& x, std::int64_t size) {
  if (!x.defined()) return x;
  if (x.rank() != 1 || x.numel() != size)
    fail(Errc::shape_mismatch, op, "{} is {}, must be [{}]", what, form(x), size);
  return dense_floats(op, x);
}

std::int64_t product(ShapeView shape, std::size_t begin, std::size_t end) {
  std::int64_t result = 1;
  for (std::size_t i = begin; i < end; ++i) result *= shape[i];
  return result;
}

}  // namespace ballast::ops
