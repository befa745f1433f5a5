// SPDX-License-Identifier: Apache-2.0
// DLPack, the common way to hand tensors between libraries in one process without copying. The structs have
// the layout of DLPack's C header, in a namespace of their own: reinterpret_cast them to and from
// <dlpack/dlpack.h>'s when a program has that too.
//
// Throws: what the functions say; nothing is handed over then. Owns: an exported tensor keeps its bytes until
// its deleter is called, an imported one its producer's until the last Tensor is gone; the caller of
// to_dlpack() calls `deleter` once, or hands it to a library that does. Threads: several at once, for
// different tensors; the deleter runs on the thread that lets go last. Costs: no element is copied; a tensor
// that is still to be read is read.
#pragma once

#include <cstdint>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast::dlpack {

/// DLDeviceType, as far as Ballast knows them.
enum DeviceKind : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };

/// DLDevice.
struct Device {
  std::int32_t device_type;  ///< 1: CPU, 2: CUDA
  std::int32_t device_id;    ///< which of them
};

/// DLDataTypeCode of DLPack 1.1.
enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kOpaqueHandle = 3,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E3m4 = 7,
  kFloat8E4m3 = 8,
  kFloat8E4m3b11fnuz = 9,
  kFloat8E4m3fn = 10,
  kFloat8E4m3fnuz = 11,
  kFloat8E5m2 = 12,
  kFloat8E5m2fnuz = 13,
  kFloat8E8m0fnu = 14,
  kFloat6E2m3fn = 15,
  kFloat6E3m2fn = 16,
  kFloat4E2m1fn = 17,
};

/// DLDataType.
struct DataType {
  std::uint8_t code;    ///< one of the codes above
  std::uint8_t bits;    ///< of one element
  std::uint16_t lanes;  ///< 1; vectors are not read
};

/// DLTensor.
struct TensorView {
  void* data;                 ///< may be null when there are no elements
  Device device;              ///< where the memory lies
  std::int32_t ndim;          ///< dimensions
  DataType dtype;             ///< of the elements
  std::int64_t* shape;        ///< ndim numbers
  std::int64_t* strides;      ///< in elements; null means row-major
  std::uint64_t byte_offset;  ///< from data to the first element
};

/// DLManagedTensor, the form before DLPack 1.0.
struct ManagedTensor {
  TensorView dl_tensor;  ///< the tensor itself
  void* manager_ctx;     ///< the producer's own
  /// Called once by the consumer.
  void (*deleter)(ManagedTensor* self);
};

/// DLPackVersion.
struct Version {
  std::uint32_t major;  ///< another one cannot be read
  std::uint32_t minor;  ///< another one can
};

/// A flag: the consumer must not write.
inline constexpr std::uint64_t kReadOnly = 1;
/// A flag: the memory is a copy.
inline constexpr std::uint64_t kIsCopied = 2;
/// A flag: elements of fewer than eight bits lie in a byte each.
inline constexpr std::uint64_t kSubByteTypePadded = 4;

/// DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  Version version;    ///< of the form
  void* manager_ctx;  ///< the producer's own
  /// Called once by the consumer.
  void (*deleter)(ManagedTensorVersioned* self);
  std::uint64_t flags;   ///< kReadOnly and the others
  TensorView dl_tensor;  ///< the tensor itself
};

}  // namespace ballast::dlpack

namespace ballast {

/// `tensor`'s own bytes for another library, kept alive until it calls the deleter. Errc::not_representable
/// for memory that may not be written, which this form cannot say, and in both forms for quantized and opaque
/// dtypes and for elements of fewer than eight bits that are strided or do not begin on a byte.
/// Errc::invalid_argument for a shape alone.
[[nodiscard]] dlpack::ManagedTensor* to_dlpack(const Tensor& tensor);

/// The same in the form of DLPack 1.x, which knows read-only memory. Kept alive until the deleter is called.
[[nodiscard]] dlpack::ManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

/// Another library's tensor, without a copy. Its deleter runs when the last Tensor that looks at it is gone.
/// When this throws, `managed` still belongs to the caller. Memory of the CPU and of CUDA devices.
/// Errc::unsupported for other devices, other versions than 1.x and elements of fewer than eight bits in a
/// byte each; bad_dtype for types and vectors Ballast has not; invalid_argument for null; size_overflow,
/// misaligned for sizes and strides that cannot be.
[[nodiscard]] Tensor from_dlpack(dlpack::ManagedTensor* managed);
/// The same for DLPack 1.x; read-only memory stays read-only.
[[nodiscard]] Tensor from_dlpack(dlpack::ManagedTensorVersioned* managed);

}  // namespace ballast

#pragma GCC visibility pop
