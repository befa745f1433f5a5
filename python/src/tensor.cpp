// SPDX-License-Identifier: Apache-2.0
#include "tensor.h"

#include "ballast/dlpack.h"
#include "boxed.h"
#include "frameworks.h"
#include "memory.h"
#include "tensor_index.h"
#include "watch.h"

namespace py {
namespace {

using StoragePointer = std::shared_ptr<const ballast::Storage>;

PyTypeObject* memory_type = nullptr;
PyTypeObject* tensor_type = nullptr;   // native
PyTypeObject* tensor_class = nullptr;  // what Python made of it

ballast::Tensor& own(PyObject* self) {
  return value_of<ballast::Tensor>(self);
}

// Memory: all bytes of a storage, one dimension of them.
int memory_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  const auto& storage = value_of<StoragePointer>(self);
  const auto size = static_cast<std::int64_t>(storage->size());
  const bool writable = ballast::Tensor::contiguous_view(ballast::DType::u8, {size}, storage).is_writable();
  // Made ready before the Memory came to be: data() hands out an address and does not throw.
  static std::byte nothing{};
  void* data = storage->size() == 0 ? &nothing : const_cast<std::byte*>(storage->data());
  const int read_only = writable ? 0 : 1;
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(storage->size()), read_only, flags);
}

// A struct-module letter for the dtypes that have one.
const char* buffer_format(ballast::DType dtype) {
  using enum ballast::DType;
  constexpr std::pair<ballast::DType, const char*> kLetters[] = {
      {boolean, "?"}, {u8, "B"},  {i8, "b"},  {u16, "H"}, {i16, "h"}, {u32, "I"},  {i32, "i"},
      {u64, "Q"},     {i64, "q"}, {f16, "e"}, {f32, "f"}, {f64, "d"}, {c64, "Zf"}, {c128, "Zd"},
  };
  for (const auto& [known, letter] : kLetters) {
    if (known == dtype) return letter;
  }
  return nullptr;
}

struct BufferDims {
  ballast::Shape shape;
  ballast::Strides strides;  // in bytes
};

bool is_column_major(const ballast::Tensor& tensor) {
  std::vector<std::int64_t> reversed(tensor.rank());
  for (std::size_t i = 0; i < reversed.size(); ++i)
    reversed[i] = static_cast<std::int64_t>(reversed.size() - 1 - i);
  return tensor.permute(reversed).is_contiguous();
}

// What a consumer says it can take. Without strides it takes rows only.
bool has_order(const ballast::Tensor& tensor, int flags) {
  const auto asks = [&](int what) { return (flags & what) == what; };
  const bool rows = tensor.is_contiguous();
  if (asks(PyBUF_C_CONTIGUOUS) || !asks(PyBUF_STRIDES)) return rows;
  if (asks(PyBUF_F_CONTIGUOUS)) return is_column_major(tensor);
  return !asks(PyBUF_ANY_CONTIGUOUS) || rows || is_column_major(tensor);
}

int tensor_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  try {
    ballast::Tensor& tensor = own(self);
    const char* format = buffer_format(tensor.dtype());
    if (format == nullptr) {
      PyErr_Format(PyExc_BufferError, "%s has no buffer format: use DLPack, .bits() or .to(\"F32\")",
                   std::string(info(tensor.dtype()).code).c_str());
      return -1;
    }
    make_ready(tensor);
    const bool writable = is_writable(tensor);
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && !writable) {
      PyErr_SetString(PyExc_BufferError, "the tensor is a read-only view of its file");
      return -1;
    }
    if (!has_order(tensor, flags)) {
      PyErr_SetString(PyExc_BufferError, "the tensor is not contiguous, or not in the order asked for");
      return -1;
    }
    const std::int64_t item = info(tensor.dtype()).bits / 8;
    auto dims = std::make_unique<BufferDims>(BufferDims{tensor.shape(), tensor.strides()});
    for (std::int64_t& stride : dims->strides) stride *= item;
    static std::byte nothing{};
    view->buf = tensor.numel() == 0 ? &nothing : const_cast<std::byte*>(tensor.data());
    view->len = static_cast<Py_ssize_t>(tensor.size_bytes());
    view->itemsize = item;
    view->readonly = writable ? 0 : 1;
    view->ndim = static_cast<int>(tensor.rank());
    view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) != 0 ? reinterpret_cast<Py_ssize_t*>(dims->shape.data()) : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES
                        ? reinterpret_cast<Py_ssize_t*>(dims->strides.data())
                        : nullptr;
    view->suboffsets = nullptr;
    view->internal = dims.release();
    Py_INCREF(self);
    view->obj = self;
    return 0;
  } catch (...) {
    set_error();
    return -1;
  }
}

void tensor_release(PyObject* /*self*/, Py_buffer* view) noexcept {
  delete static_cast<BufferDims*>(view->internal);
}

// DLPack. A capsule that nobody took still owns its tensor.
template <class Managed>
void drop_capsule(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
Ref capsule_of(Managed* managed, const char* name, PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(managed, name, destructor);
  if (capsule == nullptr) managed->deleter(managed);
  return Ref(capsule);
}

// Methods; Python's class around them has the documentation.
PyObject* tensor_index(PyObject* self, PyObject* index) {
  return guarded([&] { return wrap(own(self).index(indices_of(index))); });
}

PyObject* tensor_dlpack(PyObject* self, PyObject* versioned) {
  return guarded([&] {
    make_ready(own(self));
    return dlpack_capsule(own(self), versioned == Py_True);
  });
}

PyObject* tensor_cast(PyObject* self, PyObject* code) {
  return guarded([&] {
    const ballast::DType dtype = dtype_of(code);
    const ballast::Tensor& source = own(self);
    return wrap(run_or_leave(source.size_bytes(), [source, dtype] { return source.to(dtype); }));
  });
}

PyObject* tensor_reinterpret(PyObject* self, PyObject* code) {
  return guarded([&] {
    const ballast::DType dtype = dtype_of(code);
    if (info(dtype).bits != info(own(self).dtype()).bits) {
      PyErr_SetString(PyExc_ValueError, "the two dtypes differ in size");
      throw Raised{};
    }
    return wrap(reinterpret(own(self), dtype));
  });
}

PyObject* tensor_copy(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    const ballast::Tensor& source = own(self);
    return wrap(run_or_leave(source.size_bytes(), [source] { return copy_of(source); }));
  });
}

PyObject* tensor_permute(PyObject* self, PyObject* order) {
  return guarded([&] {
    const ballast::Shape dims = shape_of(order);
    return wrap(own(self).permute(std::span(dims.begin(), dims.size())));
  });
}

PyObject* tensor_reshape(PyObject* self, PyObject* shape) {
  return guarded([&] { return wrap(own(self).reshape(shape_of(shape))); });
}

PyObject* tensor_bytes(PyObject* self, PyObject* /*unused*/) {
  return guarded([&] {
    const ballast::Tensor& tensor = own(self);
    const std::uint64_t size = tensor.size_bytes();
    Ref bytes(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
    const auto whole = std::as_writable_bytes(std::span(PyBytes_AsString(bytes.get()), size));
    const Watch watch(size);
    const ballast::Progress progress = watch.progress(nullptr);
    watch.run([&] {
      constexpr std::uint64_t kPiece = std::uint64_t{64} << 20U;
      for (std::uint64_t at = 0; at < size; at += kPiece) {
        tensor.read(at, whole.subspan(at, std::min(kPiece, size - at)));
        progress(at, size);
      }
      return true;
    });
    return bytes;
  });
}

PyObject* tensor_numpy(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* ndarray = nullptr;
    PyObject* dtypes = nullptr;
    if (PyArg_ParseTuple(args, "OO", &ndarray, &dtypes) == 0) throw Raised{};
    return ToNumpy(ndarray, dtypes)(own(self));
  });
}

PyObject* tensor_torch(PyObject* self, PyObject* args) {
  return guarded([&] {
    PyObject* from_dlpack = nullptr;
    PyObject* table = nullptr;
    if (PyArg_ParseTuple(args, "OO", &from_dlpack, &table) == 0) throw Raised{};
    return ToTorch(from_dlpack, table)(own(self));
  });
}

template <Ref (*read)(const ballast::Tensor&)>
PyObject* property(PyObject* self, void* /*closure*/) {
  return guarded([&] { return read(own(self)); });
}

Ref read_dtype(const ballast::Tensor& tensor) {
  return to_python(info(tensor.dtype()).code);
}

Ref read_shape(const ballast::Tensor& tensor) {
  return to_python(ballast::ShapeView(tensor.shape()));
}

Ref read_strides(const ballast::Tensor& tensor) {
  return to_python(ballast::ShapeView(tensor.strides()));
}

Ref read_size(const ballast::Tensor& tensor) {
  return to_python(tensor.numel());
}

Ref read_nbytes(const ballast::Tensor& tensor) {
  return to_python(tensor.size_bytes());
}

Ref read_has_data(const ballast::Tensor& tensor) {
  return to_python(tensor.has_data());
}

Ref read_is_contiguous(const ballast::Tensor& tensor) {
  return to_python(tensor.is_contiguous());
}

Ref read_writable(const ballast::Tensor& tensor) {
  return to_python(is_writable(tensor));
}

PyMethodDef tensor_methods[] = {
    {"_index", tensor_index, METH_O, nullptr},
    {"_dlpack", tensor_dlpack, METH_O, nullptr},
    {"_cast", tensor_cast, METH_O, nullptr},
    {"_reinterpret", tensor_reinterpret, METH_O, nullptr},
    {"_copy", tensor_copy, METH_NOARGS, nullptr},
    {"_permute", tensor_permute, METH_O, nullptr},
    {"_reshape", tensor_reshape, METH_O, nullptr},
    {"tobytes", tensor_bytes, METH_NOARGS, "The elements in row-major order."},
    {"_numpy", tensor_numpy, METH_VARARGS, nullptr},
    {"_torch", tensor_torch, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef tensor_properties[] = {
    {"dtype", property<read_dtype>, nullptr, "Safetensors' code: \"F32\".", nullptr},
    {"shape", property<read_shape>, nullptr, "A tuple of ints.", nullptr},
    {"strides", property<read_strides>, nullptr, "In elements, like PyTorch's.", nullptr},
    {"size", property<read_size>, nullptr, "How many elements.", nullptr},
    {"nbytes", property<read_nbytes>, nullptr, "Of the row-major form.", nullptr},
    {"has_data", property<read_has_data>, nullptr, "False for tensors that are a shape only.", nullptr},
    {"is_contiguous", property<read_is_contiguous>, nullptr, "True when it lies in row-major order.",
     nullptr},
    {"writable", property<read_writable>, nullptr, "False when the bytes may not be written.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject* register_class(PyObject* /*module*/, PyObject* type) {
  if (!is_first_interpreter()) return nullptr;
  if (PyType_Check(type) == 0 || PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), tensor_type) == 0) {
    PyErr_SetString(PyExc_TypeError, "a subclass of _native.Tensor is needed");
    return nullptr;
  }
  Py_INCREF(type);
  tensor_class = reinterpret_cast<PyTypeObject*>(type);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"register_tensor_class", register_class, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_tensor_types(PyObject* module) {
  PyType_Slot memory_slots[] = {
      {Py_tp_new, slot(refuse_new)},
      {Py_tp_dealloc, slot(deallocate<StoragePointer>)},
      {Py_bf_getbuffer, slot(memory_buffer)},
      {Py_tp_doc, const_cast<char*>("The bytes behind arrays; they live as long as this does.")},
      {0, nullptr},
  };
  PyType_Spec memory = {"ballast._native.Memory", sizeof(Boxed<StoragePointer>), 0, Py_TPFLAGS_DEFAULT,
                        memory_slots};
  memory_type = add_type(module, "Memory", memory);

  PyType_Slot tensor_slots[] = {
      {Py_tp_new, slot(refuse_new)},
      {Py_tp_dealloc, slot(deallocate<ballast::Tensor>)},
      {Py_bf_getbuffer, slot(tensor_buffer)},
      {Py_bf_releasebuffer, slot(tensor_release)},
      {Py_tp_methods, tensor_methods},
      {Py_tp_getset, tensor_properties},
      {0, nullptr},
  };
  PyType_Spec tensor = {"ballast._native.Tensor", sizeof(Boxed<ballast::Tensor>), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, tensor_slots};
  tensor_type = add_type(module, "Tensor", tensor);
  tensor_class = tensor_type;
  check(PyModule_AddFunctions(module, functions));
}

Ref wrap(const ballast::Tensor& tensor) {
  return allocate(tensor_class, tensor);
}

bool is_tensor(PyObject* object) {
  return PyObject_TypeCheck(object, tensor_type) != 0;
}

const ballast::Tensor& tensor_of(PyObject* object) {
  return own(object);
}

bool is_writable(const ballast::Tensor& tensor) {
  return ballast::Tensor(tensor).is_writable();
}

void make_ready(const ballast::Tensor& tensor) {
  if (!tensor.has_data()) {
    PyErr_SetString(PyExc_ValueError, "the tensor is a shape without data");
    throw Raised{};
  }
  // What is small, or there already, is not worth a change of hands.
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 10U;
  if (tensor.storage()->ready() && tensor.storage()->size() < kSmall) {
    static_cast<void>(tensor.storage()->data());
    return;
  }
  const auto& storage = tensor.storage();
  run_or_leave(storage->ready() ? 0 : storage->size(), [storage] { return storage->data() != nullptr; });
}

Ref memory_of(const std::shared_ptr<const ballast::Storage>& storage) {
  return allocate(memory_type, storage);
}

Ref dlpack_capsule(const ballast::Tensor& tensor, bool versioned) {
  if (versioned) {
    return capsule_of(to_dlpack_versioned(tensor), "dltensor_versioned", [](PyObject* capsule) {
      drop_capsule<ballast::dlpack::ManagedTensorVersioned>(capsule, "dltensor_versioned");
    });
  }
  return capsule_of(to_dlpack(tensor), "dltensor", [](PyObject* capsule) {
    drop_capsule<ballast::dlpack::ManagedTensor>(capsule, "dltensor");
  });
}

ballast::Tensor reinterpret(const ballast::Tensor& tensor, ballast::DType dtype) {
  if (dtype == tensor.dtype()) return tensor;
  return {dtype, tensor.shape(), tensor.strides(), tensor.storage(), tensor.bit_offset()};
}

ballast::DType dtype_named(const std::string& name) {
  if (const auto dtype = ballast::dtype_from_name(name)) return *dtype;
  throw ballast::Error(ballast::Errc::bad_dtype, "", "there is no dtype \"" + name + "\"");
}

ballast::DType dtype_of(PyObject* code) {
  const auto dtype = ballast::dtype_from_name(text_of(code));
  if (!dtype) {
    PyErr_Format(PyExc_ValueError, "there is no dtype %R", code);
    throw Raised{};
  }
  return *dtype;
}

}  // namespace py
