// SPDX-License-Identifier: Apache-2.0
#include "ballast/dlpack.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "base/checked.h"
#include "tensor/describe.h"

namespace ballast {
namespace {

// DLPack's header on a 64-bit machine.
static_assert(sizeof(dlpack::TensorView) == 48 && offsetof(dlpack::TensorView, ndim) == 16 &&
              offsetof(dlpack::TensorView, dtype) == 20 && offsetof(dlpack::TensorView, shape) == 24 &&
              offsetof(dlpack::TensorView, byte_offset) == 40);
static_assert(sizeof(dlpack::ManagedTensor) == 64 && offsetof(dlpack::ManagedTensor, deleter) == 56);
static_assert(sizeof(dlpack::ManagedTensorVersioned) == 80 &&
              offsetof(dlpack::ManagedTensorVersioned, flags) == 24);

constexpr dlpack::Version kVersion{1, 1};

struct TypeRow {
  DType dtype;
  dlpack::TypeCode code;
};

constexpr TypeRow kTypes[] = {
    {DType::boolean, dlpack::kBool},
    {DType::u8, dlpack::kUInt},
    {DType::u16, dlpack::kUInt},
    {DType::u32, dlpack::kUInt},
    {DType::u64, dlpack::kUInt},
    {DType::i8, dlpack::kInt},
    {DType::i16, dlpack::kInt},
    {DType::i32, dlpack::kInt},
    {DType::i64, dlpack::kInt},
    {DType::f16, dlpack::kFloat},
    {DType::f32, dlpack::kFloat},
    {DType::f64, dlpack::kFloat},
    {DType::bf16, dlpack::kBfloat},
    {DType::c32, dlpack::kComplex},
    {DType::c64, dlpack::kComplex},
    {DType::c128, dlpack::kComplex},
    {DType::f8_e4m3, dlpack::kFloat8E4m3fn},
    {DType::f8_e4m3fnuz, dlpack::kFloat8E4m3fnuz},
    {DType::f8_e5m2, dlpack::kFloat8E5m2},
    {DType::f8_e5m2fnuz, dlpack::kFloat8E5m2fnuz},
    {DType::f8_e8m0, dlpack::kFloat8E8m0fnu},
    {DType::f6_e2m3, dlpack::kFloat6E2m3fn},
    {DType::f6_e3m2, dlpack::kFloat6E3m2fn},
    {DType::f4, dlpack::kFloat4E2m1fn},
};

dlpack::DataType type_of(const Tensor& tensor) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == tensor.dtype()) return {row.code, info(row.dtype).bits, 1};
  }
  fail(Errc::not_representable, describe(tensor.dtype(), tensor.shape()),
       "has a dtype that DLPack has no code for");
}

// The other library may write then.
bool is_writable(Tensor tensor) {
  return tensor.is_writable();
}

// What the other library holds on to.
template <class Managed>
struct Export {
  Tensor tensor;
  Shape shape;
  Strides strides;
  Managed managed{};
};

template <class Managed>
Managed* export_tensor(const Tensor& tensor) {
  if (!tensor.has_data())
    fail(Errc::invalid_argument, describe(tensor.dtype(), tensor.shape()),
         "has a shape but no data (not loaded yet?)");
  const dlpack::DataType type = type_of(tensor);
  if (type.bits % 8 != 0 && (!tensor.is_contiguous() || tensor.bit_offset() % 8 != 0)) {
    fail(Errc::not_representable, describe(tensor.dtype(), tensor.shape()),
         "is strided or begins inside a byte; use contiguous() first");
  }
  if (tensor.rank() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail(Errc::size_overflow, "tensor", "has {} dimensions", tensor.rank());
  auto holder =
      std::make_unique<Export<Managed>>(Export<Managed>{tensor, tensor.shape(), tensor.strides(), {}});
  const std::byte* bytes = tensor.numel() == 0 ? nullptr : tensor.storage()->data() + tensor.bit_offset() / 8;
  const Device device = tensor.device();
  holder->managed.dl_tensor = {const_cast<std::byte*>(bytes),  // C has no other way
                               {device.type == DeviceType::cuda ? dlpack::kCuda : dlpack::kCpu, device.index},
                               static_cast<std::int32_t>(tensor.rank()),
                               type,
                               holder->shape.data(),
                               holder->strides.data(),
                               0};
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](Managed* self) { delete static_cast<Export<Managed>*>(self->manager_ctx); };
  return &holder.release()->managed;
}

constexpr const char* kWhere = "DLPack tensor";

DType dtype_of_view(const dlpack::TensorView& view) {
  for (const TypeRow& row : kTypes) {
    if (row.code == view.dtype.code && info(row.dtype).bits == view.dtype.bits && view.dtype.lanes == 1)
      return row.dtype;
  }
  fail(Errc::bad_dtype, kWhere, "type code {} with {} bits and {} lanes is not one Ballast has",
       view.dtype.code, view.dtype.bits, view.dtype.lanes);
}

Device device_of_view(const dlpack::TensorView& view) {
  switch (view.device.device_type) {
    case dlpack::kCpu:
    case dlpack::kCudaHost:
      return {};
    case dlpack::kCuda:
      return {DeviceType::cuda, view.device.device_id};
    default:
      fail(Errc::unsupported, kWhere, "lies on a device of type {}", view.device.device_type);
  }
}

// Where the elements lie, in bits from the first one: [low, high).
struct Extent {
  std::int64_t low;
  std::int64_t high;
};

Extent extent_of(DType dtype, ShapeView shape, ShapeView strides) {
  Int128 low = 0;
  Int128 high = info(dtype).bits;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Int128 reach = static_cast<Int128>(shape[i] - 1) * strides[i] * info(dtype).bits;
    (reach < 0 ? low : high) += reach;
    if (low < INT64_MIN / 2 || high > INT64_MAX / 2)
      fail(Errc::size_overflow, kWhere, "stride {} of dimension {} reaches beyond 64 bits", strides[i], i);
  }
  return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
}

std::shared_ptr<const Storage> borrowed(std::byte* first, std::uint64_t size, bool read_only,
                                        std::function<void()> release, Device device) {
  if (read_only) return Storage::borrow(static_cast<const void*>(first), size, std::move(release), device);
  return Storage::borrow(static_cast<void*>(first), size, std::move(release), device);
}

// `release` runs only once the tensor exists: until then the caller owns what it would release.
Tensor import_view(const dlpack::TensorView& view, bool read_only, std::function<void()> release) {
  const DType dtype = dtype_of_view(view);
  const Device device = device_of_view(view);
  if (view.ndim < 0 || (view.ndim > 0 && view.shape == nullptr))
    fail(Errc::invalid_argument, kWhere, "has {} dimensions and no shape", view.ndim);
  const auto rank = static_cast<std::size_t>(view.ndim);
  const Shape shape(ShapeView(view.shape, rank));
  const std::int64_t numel = checked_numel(dtype, shape);
  const Strides strides =
      view.strides == nullptr ? contiguous_strides(shape) : Strides(ShapeView(view.strides, rank));
  const Extent extent = numel == 0 ? Extent{0, 0} : extent_of(dtype, shape, strides);
  if (numel > 0 && view.data == nullptr)
    fail(Errc::invalid_argument, kWhere, "has {} elements and no address", numel);
  if (extent.low % 8 != 0) fail(Errc::misaligned, kWhere, "begins inside a byte");

  const auto armed = std::make_shared<bool>(false);
  std::byte* first =
      numel == 0 ? nullptr : static_cast<std::byte*>(view.data) + view.byte_offset + extent.low / 8;
  const auto size = static_cast<std::uint64_t>((extent.high - extent.low + 7) / 8);
  auto storage = borrowed(
      first, size, read_only,
      [armed, release = std::move(release)] {
        if (*armed) release();
      },
      device);
  Tensor tensor(dtype, shape, strides, std::move(storage), static_cast<std::uint64_t>(-extent.low));
  *armed = true;
  return tensor;
}

template <class Managed>
std::function<void()> releasing(Managed* managed) {
  return [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
}

}  // namespace

dlpack::ManagedTensor* to_dlpack(const Tensor& tensor) {
  if (tensor.has_data() && !is_writable(tensor)) {
    fail(Errc::not_representable, describe(tensor.dtype(), tensor.shape()),
         "is read-only (a file's bytes?), which this form of DLPack cannot say; use to_dlpack_versioned() or "
         "clone()");
  }
  return export_tensor<dlpack::ManagedTensor>(tensor);
}

dlpack::ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  auto* managed = export_tensor<dlpack::ManagedTensorVersioned>(tensor);
  managed->version = kVersion;
  managed->flags = is_writable(tensor) ? 0 : dlpack::kReadOnly;
  return managed;
}

Tensor from_dlpack(dlpack::ManagedTensor* managed) {
  if (managed == nullptr) fail(Errc::invalid_argument, kWhere, "is null");
  return import_view(managed->dl_tensor, false, releasing(managed));
}

Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed) {
  if (managed == nullptr) fail(Errc::invalid_argument, kWhere, "is null");
  if (managed->version.major != kVersion.major) {
    fail(Errc::unsupported, kWhere, "is of version {}.{}, Ballast reads 1.x", managed->version.major,
         managed->version.minor);
  }
  if ((managed->flags & dlpack::kSubByteTypePadded) != 0)
    fail(Errc::unsupported, kWhere, "has elements of fewer than 8 bits padded to bytes");
  return import_view(managed->dl_tensor, (managed->flags & dlpack::kReadOnly) != 0, releasing(managed));
}

}  // namespace ballast
