// SPDX-License-Identifier: Apache-2.0
// Tensors as calls of PyTorch's _rebuild functions.
#pragma once

#include "ballast/value.h"
#include "formats/torch/pickle_emitter.h"
#include "formats/torch/storage_table.h"

namespace ballast::torch {

class TensorPickler {
 public:
  TensorPickler(PickleEmitter& emitter, StorageTable& storages, bool legacy)
      : out_(emitter), storages_(storages), legacy_(legacy) {}

  /// Everything this tensor is made of, for the table; the first of two passes. `where` names it in messages.
  void note(const TensorValue& value, const Where& where);
  void note(const Tensor& tensor, const Where& where);
  void write(const TensorValue& value);
  void write(const Tensor& tensor, bool requires_grad = false);

 private:
  void write_plain(const Tensor& tensor, bool requires_grad, const Quantization* quantization);
  void write_storage(std::uint32_t record);
  void write_shape_only(const Tensor& tensor, bool requires_grad);
  void write_quantizer(const Quantization& quantization);
  void write_sparse(const Sparse& sparse, ShapeView shape);
  void write_size(ShapeView shape);
  void write_dtype(DType dtype);

  PickleEmitter& out_;
  StorageTable& storages_;
  bool legacy_;
};

}  // namespace ballast::torch
