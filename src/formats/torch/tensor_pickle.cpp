// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tensor_pickle.h"

#include "base/fail.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

std::vector<const Tensor*> parts_of(const Sparse& sparse) {
  if (sparse.layout == "coo") return {&sparse.indices, &sparse.values};
  return {&sparse.compressed, &sparse.plain, &sparse.values};
}

}  // namespace

void TensorPickler::note(const Tensor& tensor, const Where& where) {
  if (!tensor.defined()) fail(Errc::not_representable, where(), "a tensor that was never given a value");
  if (tensor.rank() > kMaxRank)
    fail(Errc::not_representable, where(), "a tensor of {} dimensions; PyTorch has at most {}", tensor.rank(),
         kMaxRank);
  if (!try_count(tensor.shape(), item_bytes(tensor.dtype()) * 2))
    fail(Errc::not_representable, where(), "a tensor of sizes {}, which PyTorch cannot count",
         to_string(tensor.shape()));
  if (legacy_ && !info(tensor.dtype()).torch_storage) {
    fail(Errc::not_representable, where(), "the legacy format has no storage for {}",
         info(tensor.dtype()).code);
  }
  storages_.note(tensor, where);
}

void TensorPickler::note(const TensorValue& value, const Where& where) {
  if (value.sparse) {
    for (const Tensor* part : parts_of(*value.sparse)) note(*part, where);
    return;
  }
  const bool quantized = info(value.tensor.dtype()).kind == DTypeKind::quantized;
  if (quantized && !value.quantization)
    fail(Errc::not_representable, where(), "{} without scale and zero point",
         info(value.tensor.dtype()).code);
  note(value.tensor, where);
  if (!value.quantization || !value.quantization->scales.defined()) return;
  note(value.quantization->scales, where);
  note(value.quantization->zero_points, where);
}

void TensorPickler::write(const TensorValue& value) {
  if (value.is_parameter) {  // a call around the tensor: (tensor, requires_grad, hooks)
    out_.global("torch._utils", "_rebuild_parameter");
    out_.mark();
  }
  const bool requires_grad = value.requires_grad && !value.is_parameter;
  if (value.sparse)
    write_sparse(*value.sparse, value.tensor.shape());
  else
    write_plain(value.tensor, requires_grad, value.quantization ? &*value.quantization : nullptr);
  if (value.is_parameter) {
    out_.boolean(value.requires_grad);
    out_.ordered_dict();
    out_.marked_tuple();
    out_.call();
  }
}

void TensorPickler::write(const Tensor& tensor, bool requires_grad) {
  write_plain(tensor, requires_grad, nullptr);
}

// function (storage, offset, size, stride, [quantizer,] requires_grad, hooks [, dtype])
void TensorPickler::write_plain(const Tensor& tensor, bool requires_grad, const Quantization* quantization) {
  if (!tensor.has_data()) return write_shape_only(tensor, requires_grad);
  // What has no storage class goes through UntypedStorage and _rebuild_tensor_v3 (PyTorch 2.1 and later).
  const bool typed = info(tensor.dtype()).torch_storage;
  if (quantization != nullptr)
    out_.global("torch._utils", "_rebuild_qtensor");
  else
    out_.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  const Placement placement = storages_.place(tensor);
  out_.mark();
  write_storage(placement.record);
  out_.integer(placement.offset);
  out_.integers(placement.shape);
  out_.integers(placement.strides);
  if (quantization != nullptr) write_quantizer(*quantization);
  out_.boolean(requires_grad);
  out_.ordered_dict();
  if (!typed) write_dtype(tensor.dtype());
  out_.marked_tuple();
  out_.call();
}

void TensorPickler::write_storage(std::uint32_t record) {
  const StorageRecord& storage = storages_.records()[record];
  out_.mark();
  out_.repeated_string("storage");
  if (storage.scalar.empty())
    out_.global("torch.storage", "UntypedStorage");
  else
    out_.global("torch", std::string(storage.scalar) + "Storage");
  out_.string(std::to_string(record));
  out_.repeated_string("cpu");
  out_.integer(static_cast<std::int64_t>(storage.numel));
  if (legacy_) out_.none();  // a view's place in its root; ours are all roots
  out_.marked_tuple();
  out_.persistent_id();
}

void TensorPickler::write_shape_only(const Tensor& tensor, bool requires_grad) {
  out_.global("torch._utils", "_rebuild_meta_tensor_no_storage");
  out_.mark();
  write_dtype(tensor.dtype());
  const Shape shape = shape_for_torch(tensor);
  out_.integers(shape);
  out_.integers(contiguous_strides(shape));
  out_.boolean(requires_grad);
  out_.marked_tuple();
  out_.call();
}

void TensorPickler::write_quantizer(const Quantization& quantization) {
  const bool per_channel = quantization.scales.defined();
  out_.mark();
  if (!per_channel)
    out_.global("torch", "per_tensor_affine");
  else if (quantization.scheme == "per_channel_affine")
    out_.global("torch", "per_channel_affine");
  else
    out_.global("torch", "per_channel_affine_float_qparams");
  if (per_channel) {
    write(quantization.scales);
    write(quantization.zero_points);
    out_.integer(quantization.axis);
  } else {
    out_.floating(quantization.scale);
    out_.integer(quantization.zero_point);
  }
  out_.marked_tuple();
}

// (layout, (indices, values, size)) or (layout, (compressed, plain, values, size))
void TensorPickler::write_sparse(const Sparse& sparse, ShapeView shape) {
  out_.global("torch._utils", "_rebuild_sparse_tensor");
  out_.global("torch.serialization", "_get_layout");
  out_.string("torch.sparse_" + sparse.layout);
  out_.tuple(1);
  out_.call();
  out_.mark();
  for (const Tensor* part : parts_of(sparse)) write(*part);
  write_size(shape);
  out_.marked_tuple();
  out_.tuple(2);
  out_.call();
}

void TensorPickler::write_size(ShapeView shape) {
  out_.global("torch", "Size");
  out_.integers(shape);
  out_.tuple(1);
  out_.call();
}

void TensorPickler::write_dtype(DType dtype) {
  out_.global("torch", info(dtype).torch_name);
}

}  // namespace ballast::torch
