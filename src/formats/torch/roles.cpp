// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/roles.h"

#include <algorithm>
#include <vector>

#include "ballast/dtype.h"
#include "formats/torch/forbidden_globals.h"

namespace ballast::torch {
namespace {

constexpr auto kFunction = Callable::function;
constexpr auto kType = Callable::type;
constexpr auto kClean = Verdict::clean;
constexpr auto kUnknown = Verdict::unknown;

struct Row {
  std::string_view module;
  std::string_view name;
  Role role;
  Callable callable = Callable::type;
  Verdict verdict = Verdict::clean;
};

// What is no family of names; docs/formats/pytorch.md has the reason for each that torch's own table lacks.
constexpr Row kRows[] = {
    {"_codecs", "encode", Role::encode, kFunction},
    {"argparse", "Namespace", Role::namespace_},
    {"builtins", "bool", Role::boolean},
    {"builtins", "bytearray", Role::bytearray},
    {"builtins", "bytes", Role::bytes},
    {"builtins", "complex", Role::complex},
    {"builtins", "dict", Role::dict},
    {"builtins", "float", Role::floating},
    {"builtins", "frozenset", Role::frozenset},
    {"builtins", "getattr", Role::getattr, kFunction, kUnknown},
    {"builtins", "int", Role::integer},
    {"builtins", "list", Role::list},
    {"builtins", "object", Role::object},
    {"builtins", "range", Role::range},
    {"builtins", "set", Role::set},
    {"builtins", "slice", Role::slice},
    {"builtins", "str", Role::string},
    {"builtins", "tuple", Role::tuple},
    {"collections", "Counter", Role::counter},
    {"collections", "OrderedDict", Role::ordered_dict},
    {"collections", "defaultdict", Role::default_dict},
    {"collections", "deque", Role::deque},
    {"copyreg", "__newobj__", Role::new_object, kFunction, kUnknown},
    {"copyreg", "__newobj_ex__", Role::new_object_ex, kFunction, kUnknown},
    {"copyreg", "_reconstructor", Role::reconstructor, kFunction},
    {"datetime", "date", Role::date},
    {"datetime", "datetime", Role::datetime},
    {"datetime", "time", Role::time},
    {"datetime", "timedelta", Role::timedelta},
    {"datetime", "timezone", Role::timezone},
    {"numpy", "dtype", Role::numpy_dtype},
    {"numpy", "ndarray", Role::numpy_ndarray},
    {"numpy.core.multiarray", "_reconstruct", Role::numpy_reconstruct, kFunction},
    {"numpy.core.multiarray", "scalar", Role::numpy_scalar, kFunction},
    {"numpy.core.numeric", "_frombuffer", Role::numpy_frombuffer, kFunction},
    {"omegaconf.dictconfig", "DictConfig", Role::omega_container, kType, kUnknown},
    {"omegaconf.listconfig", "ListConfig", Role::omega_container, kType, kUnknown},
    {"omegaconf.nodes", "AnyNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "BooleanNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "BytesNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "EnumNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "FloatNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "IntegerNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "PathNode", Role::omega_node, kType, kUnknown},
    {"omegaconf.nodes", "StringNode", Role::omega_node, kType, kUnknown},
    {"pathlib", "Path", Role::path},
    {"pathlib", "PosixPath", Role::path},
    {"pathlib", "PurePath", Role::path},
    {"pathlib", "PurePosixPath", Role::path},
    {"pathlib", "PureWindowsPath", Role::path, kType, kUnknown},
    {"pathlib", "WindowsPath", Role::path, kType, kUnknown},
    {"torch", "Size", Role::size},
    {"torch", "Tensor", Role::tensor_class},
    {"torch", "TypedStorage", Role::untyped_storage},
    {"torch", "UntypedStorage", Role::untyped_storage},
    {"torch", "_UntypedStorage", Role::untyped_storage},
    {"torch", "device", Role::device},
    {"torch._C", "Size", Role::size, kType, kUnknown},
    {"torch._C", "_TensorBase", Role::tensor_class, kType, kUnknown},
    {"torch._tensor", "_rebuild_from_type", Role::from_type, kFunction},
    {"torch._tensor", "_rebuild_from_type_v2", Role::from_type_v2, kFunction},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", Role::device_from_cpu, kFunction},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", Role::device_from_numpy, kFunction},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", Role::tensor_meta, kFunction},
    {"torch._utils", "_rebuild_nested_tensor", Role::nested, kFunction, kUnknown},
    {"torch._utils", "_rebuild_parameter", Role::parameter, kFunction},
    {"torch._utils", "_rebuild_parameter_v2", Role::parameter_state, kFunction, kUnknown},
    {"torch._utils", "_rebuild_parameter_with_state", Role::parameter_state, kFunction},
    {"torch._utils", "_rebuild_qtensor", Role::qtensor, kFunction},
    {"torch._utils", "_rebuild_sparse_csr_tensor", Role::sparse_csr, kFunction},
    {"torch._utils", "_rebuild_sparse_tensor", Role::sparse, kFunction},
    {"torch._utils", "_rebuild_tensor", Role::tensor_v1, kFunction},
    {"torch._utils", "_rebuild_tensor_v2", Role::tensor_v2, kFunction},
    {"torch._utils", "_rebuild_tensor_v3", Role::tensor_v3, kFunction},
    {"torch._utils", "_rebuild_wrapper_subclass", Role::wrapper_subclass, kFunction},
    {"torch._utils", "_rebuild_xla_tensor", Role::device_from_numpy, kFunction, kUnknown},
    {"torch.autograd.variable", "Variable", Role::parameter_class, kType, kUnknown},
    {"torch.jit._pickle", "build_boollist", Role::jit_list, kFunction, kUnknown},
    {"torch.jit._pickle", "build_doublelist", Role::jit_list, kFunction, kUnknown},
    {"torch.jit._pickle", "build_intlist", Role::jit_list, kFunction, kUnknown},
    {"torch.jit._pickle", "build_tensor_from_id", Role::jit_tensor_from_id, kFunction, kUnknown},
    {"torch.jit._pickle", "build_tensorlist", Role::jit_list, kFunction, kUnknown},
    {"torch.jit._pickle", "restore_type_tag", Role::jit_type_tag, kFunction, kUnknown},
    {"torch.nested._internal.nested_tensor", "_rebuild_njt", Role::nested_jagged, kFunction, kUnknown},
    {"torch.nn", "Parameter", Role::parameter_class, kType, kUnknown},
    {"torch.nn.parameter", "Buffer", Role::parameter_class, kType, kUnknown},
    {"torch.nn.parameter", "Parameter", Role::parameter_class},
    {"torch.serialization", "_get_layout", Role::get_layout, kFunction},
    {"torch.storage", "TypedStorage", Role::untyped_storage},
    {"torch.storage", "UntypedStorage", Role::untyped_storage},
    {"torch.storage", "_TypedStorage", Role::untyped_storage},
    {"torch.storage", "_UntypedStorage", Role::untyped_storage},
    {"torch.storage", "_load_from_bytes", Role::load_from_bytes, kFunction, kUnknown},
    {"torch_npu.utils.storage", "_rebuild_npu_tensor", Role::tensor_npu, kFunction, kUnknown},
    {"types", "SimpleNamespace", Role::namespace_},
    {"uuid", "UUID", Role::uuid},
};

// Other releases' modules for the same things: module in the file, module of the row.
constexpr std::pair<std::string_view, std::string_view> kMovedModules[] = {
    {"numpy._core.multiarray", "numpy.core.multiarray"},
    {"numpy._core.numeric", "numpy.core.numeric"},
    {"pathlib._abc", "pathlib"},
    {"pathlib._local", "pathlib"},
    {"torch.tensor", "torch._tensor"},
};

// PyTorch's dtypes that Ballast has no numbers for; as values they are as good as any.
constexpr std::string_view kOtherDtypes[] = {"bcomplex32", "int1",  "int2",  "int3",  "int4",
                                             "int5",       "int6",  "int7",  "uint1", "uint2",
                                             "uint3",      "uint4", "uint5", "uint6", "uint7"};
// Other names of constants, which nobody writes.
constexpr std::string_view kOtherNames[] = {"cdouble", "cfloat", "chalf", "double", "float",
                                            "half",    "int",    "long",  "short"};
constexpr std::string_view kQschemes[] = {"per_channel_affine", "per_channel_affine_float_qparams",
                                          "per_channel_symmetric", "per_tensor_affine",
                                          "per_tensor_symmetric"};
constexpr std::string_view kLayouts[] = {"_mkldnn",    "jagged",     "sparse_bsc", "sparse_bsr",
                                         "sparse_coo", "sparse_csc", "sparse_csr", "strided"};
constexpr std::string_view kMemoryFormats[] = {"channels_last", "channels_last_3d", "contiguous_format",
                                               "preserve_format"};
constexpr std::string_view kTensorScalars[] = {"BFloat16", "Bool", "Byte", "Char", "Double",
                                               "Float",    "Half", "Int",  "Long", "Short"};

template <class Range>
constexpr bool is_sorted_by_name(const Range& range) {
  return std::is_sorted(std::begin(range), std::end(range));
}

static_assert(is_sorted_by_name(kForbidden));

class Table {
 public:
  Table() {
    for (const Row& row : kRows) {
      add(row.module, row, row.module);
      for (const auto& [file, now] : kMovedModules) {
        if (now == row.module) add(file, row, now);
      }
    }
    add_constants();
    add_classes();
    std::sort(rows_.begin(), rows_.end(), before);
  }

  [[nodiscard]] std::span<const KnownGlobal> rows() const { return rows_; }

  [[nodiscard]] const KnownGlobal* find(std::string_view module, std::string_view name) const {
    const auto found = std::lower_bound(
        rows_.begin(), rows_.end(), std::pair(module, name), [](const KnownGlobal& row, const auto& wanted) {
          return std::pair<std::string_view, std::string_view>(row.module, row.name) < wanted;
        });
    return found != rows_.end() && found->module == module && found->name == name ? &*found : nullptr;
  }

 private:
  static bool before(const KnownGlobal& a, const KnownGlobal& b) {
    return a.module != b.module ? a.module < b.module : a.name < b.name;
  }

  void add(std::string_view module, const Row& row, std::string_view shown_module) {
    rows_.push_back({.module = std::string(module),
                     .name = std::string(row.name),
                     .shown = std::string(shown_module) + "." + std::string(row.name),
                     .role = row.role,
                     .callable = row.callable,
                     .verdict = row.verdict});
  }

  void add_constant(std::string_view name, Role role, Verdict verdict = kClean) {
    add("torch", {"torch", name, role, Callable::constant, verdict}, "torch");
  }

  void add_constants() {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const std::string_view name = info(static_cast<DType>(i)).torch_name;
      if (!name.empty()) add_constant(name, Role::dtype);
    }
    for (const std::string_view name : kOtherDtypes) add_constant(name, Role::dtype);
    for (const std::string_view name : kOtherNames) add_constant(name, Role::dtype, kUnknown);
    for (const std::string_view name : kQschemes) add_constant(name, Role::qscheme);
    for (const std::string_view name : kLayouts) add_constant(name, Role::layout);
    for (const std::string_view name : kMemoryFormats) add_constant(name, Role::memory_format);
  }

  void add_classes() {
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const DTypeInfo& type = info(static_cast<DType>(i));
      if (type.torch_scalar.empty()) continue;
      const std::string name = std::string(type.torch_scalar) + "Storage";
      const Verdict verdict = type.torch_storage ? kClean : kUnknown;
      add("torch", {"torch", name, Role::storage_class, kType, verdict}, "torch");
      const bool on_cuda = type.torch_storage && type.kind != DTypeKind::quantized;
      if (on_cuda) add("torch.cuda", {"torch.cuda", name, Role::storage_class}, "torch.cuda");
    }
    for (const std::string_view module : {"torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"}) {
      for (const std::string_view scalar : kTensorScalars) {
        if (scalar == "Bool" && module.ends_with("sparse")) continue;  // there is none
        const std::string name = std::string(scalar) + "Tensor";
        add(module, {module, name, Role::tensor_class}, module);
      }
    }
  }

  std::vector<KnownGlobal> rows_;
};

const Table& table() {
  static const Table made;
  return made;
}

// A rule is the path or the beginning of it.
bool matches_rule(std::string_view path) {
  for (std::size_t dot = path.find('.');; dot = path.find('.', dot + 1)) {
    if (std::binary_search(std::begin(kForbidden), std::end(kForbidden), path.substr(0, dot))) return true;
    if (dot == std::string_view::npos) return false;
  }
}

bool is_dunder(std::string_view part) {
  return part.size() > 4 && part.starts_with("__") && part.ends_with("__");
}

}  // namespace

const KnownGlobal* find_known_global(std::string_view module, std::string_view name) {
  return table().find(module, name);
}

std::span<const KnownGlobal> known_globals() {
  return table().rows();
}

const KnownGlobal* find_torch_constant(Role role, std::string_view name) {
  const KnownGlobal* found = find_known_global("torch", name);
  return found != nullptr && found->callable == Callable::constant && found->role == role ? found : nullptr;
}

bool is_forbidden(std::string_view module, std::string_view name) {
  if (matches_rule(std::string(module) + '.' + std::string(name))) return true;
  if (name.find('.') == std::string_view::npos) return false;
  // A dotted name walks through attributes: "serialization.os.system" reaches os.system whatever the module
  // is.
  for (std::string_view tail = name;;) {
    if (tail.find('.') != std::string_view::npos && matches_rule(tail)) return true;
    if (is_dunder(tail.substr(0, tail.find('.')))) return true;
    if (tail.find('.') == std::string_view::npos) return false;
    tail.remove_prefix(tail.find('.') + 1);
  }
}

}  // namespace ballast::torch
