// SPDX-License-Identifier: Apache-2.0
#include "frameworks.h"

#include "memory.h"
#include "tensor.h"

namespace py {

const Ref& ToNumpy::dtype(ballast::DType dtype) {
  Ref& known = known_[static_cast<std::size_t>(dtype)];
  // The mapping raises what there is to say about dtypes NumPy does not have.
  if (!known) known = Ref(PyObject_GetItem(dtypes_, to_python(info(dtype).code).get()));
  return known;
}

Ref ToNumpy::operator()(const ballast::Tensor& tensor) {
  const Ref& element = dtype(tensor.dtype());
  Ref& memory = memories_[tensor.storage().get()];
  if (!memory) {
    make_ready(tensor);
    memory = memory_of(tensor.storage());
  }
  const Ref shape = to_python(ballast::ShapeView(tensor.shape()));
  const Ref offset = to_python(tensor.numel() == 0 ? 0 : tensor.bit_offset() / 8);
  if (tensor.is_contiguous() || tensor.numel() == 0) {
    return call(ndarray_, shape, element, memory, offset);
  }
  ballast::Strides bytes = tensor.strides();
  for (std::int64_t& stride : bytes) stride *= info(tensor.dtype()).bits / 8;
  return call(ndarray_, shape, element, memory, offset, to_python(ballast::ShapeView(bytes)));
}

const ToTorch::Way& ToTorch::way(ballast::DType dtype) {
  Way& way = ways_[static_cast<std::size_t>(dtype)];
  if (way.known) return way;
  const Ref entry(PyObject_GetItem(table_, to_python(info(dtype).code).get()));
  PyObject* code = nullptr;
  PyObject* view = nullptr;
  long long pack = 1;
  if (PyArg_ParseTuple(entry.get(), "OOL", &code, &view, &pack) == 0) throw Raised{};
  way = {.known = true, .as = dtype_of(code), .view = view == Py_None ? nullptr : view, .pack = pack};
  return way;
}

namespace {

// Elements packed below a byte, as bytes: the last dimension shrinks.
ballast::Tensor packed(const ballast::Tensor& tensor, std::int64_t pack, ballast::DType as) {
  ballast::Shape shape = tensor.shape();
  if (shape.empty() || shape.back() % pack != 0) {
    PyErr_Format(PyExc_ValueError, "%s: the last dimension is no multiple of %lld",
                 std::string(info(tensor.dtype()).code).c_str(), static_cast<long long>(pack));
    throw Raised{};
  }
  shape[shape.size() - 1] /= pack;
  const ballast::Tensor whole = tensor.is_contiguous() ? tensor : tensor.clone();
  return ballast::Tensor::contiguous_view(as, shape, whole.storage(), whole.bit_offset() / 8);
}

}  // namespace

Ref ToTorch::operator()(const ballast::Tensor& tensor) {
  const Way& how = way(tensor.dtype());
  if (ready_ == nullptr || ready_ != tensor.storage().get()) make_ready(tensor);
  ready_ = tensor.storage().get();
  ballast::Tensor bytes = tensor;
  if (!is_writable(bytes)) {  // PyTorch knows no read-only tensors
    const Unlocked unlocked;
    bytes = copy_of(bytes);
  }
  bytes = how.pack > 1 ? packed(bytes, how.pack, how.as) : reinterpret(bytes, how.as);
  Ref result = call(from_dlpack_, dlpack_capsule(bytes, false));
  if (how.view == nullptr) return result;
  return Ref(in_python([&] { return PyObject_CallMethod(result.get(), "view", "O", how.view); }));
}

}  // namespace py
