// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/globals.h"

#include <algorithm>
#include <utility>

#include "ballast/dtype.h"
#include "formats/torch/forbidden_globals.h"

namespace ballast::torch {
namespace {

struct Known {
  std::string_view name;
  Role role;
};

// Sorted. dtypes, storages, quantization schemes and tensor classes follow patterns: see role_of().
constexpr Known kKnown[] = {
    {"_codecs.encode", Role::encode},
    {"argparse.Namespace", Role::namespace_},
    {"builtins.bytearray", Role::bytearray},
    {"builtins.bytes", Role::bytes},
    {"builtins.complex", Role::complex},
    {"builtins.dict", Role::dict},
    {"builtins.float", Role::floating},
    {"builtins.frozenset", Role::frozenset},
    {"builtins.getattr", Role::getattr},
    {"builtins.int", Role::integer},
    {"builtins.list", Role::list},
    {"builtins.object", Role::object},
    {"builtins.range", Role::range},
    {"builtins.set", Role::set},
    {"builtins.slice", Role::slice},
    {"builtins.str", Role::string},
    {"builtins.tuple", Role::tuple},
    {"collections.Counter", Role::counter},
    {"collections.OrderedDict", Role::ordered_dict},
    {"collections.defaultdict", Role::default_dict},
    {"collections.deque", Role::deque},
    {"copyreg.__newobj__", Role::new_object},
    {"copyreg.__newobj_ex__", Role::new_object_ex},
    {"copyreg._reconstructor", Role::reconstructor},
    {"datetime.date", Role::date},
    {"datetime.datetime", Role::datetime},
    {"datetime.time", Role::time},
    {"datetime.timedelta", Role::timedelta},
    {"datetime.timezone", Role::timezone},
    {"numpy.core.multiarray._reconstruct", Role::numpy_reconstruct},
    {"numpy.core.multiarray.scalar", Role::numpy_scalar},
    {"numpy.core.numeric._frombuffer", Role::numpy_frombuffer},
    {"numpy.dtype", Role::numpy_dtype},
    {"numpy.ndarray", Role::numpy_ndarray},
    {"omegaconf.dictconfig.DictConfig", Role::omega_container},
    {"omegaconf.listconfig.ListConfig", Role::omega_container},
    {"omegaconf.nodes.AnyNode", Role::omega_node},
    {"omegaconf.nodes.BooleanNode", Role::omega_node},
    {"omegaconf.nodes.BytesNode", Role::omega_node},
    {"omegaconf.nodes.EnumNode", Role::omega_node},
    {"omegaconf.nodes.FloatNode", Role::omega_node},
    {"omegaconf.nodes.IntegerNode", Role::omega_node},
    {"omegaconf.nodes.PathNode", Role::omega_node},
    {"omegaconf.nodes.StringNode", Role::omega_node},
    {"pathlib.Path", Role::path},
    {"pathlib.PosixPath", Role::path},
    {"pathlib.PurePath", Role::path},
    {"pathlib.PurePosixPath", Role::path},
    {"pathlib.PureWindowsPath", Role::path},
    {"pathlib.WindowsPath", Role::path},
    {"torch.Size", Role::size},
    {"torch.Tensor", Role::tensor_class},
    {"torch.TypedStorage", Role::untyped_storage},
    {"torch.UntypedStorage", Role::untyped_storage},
    {"torch._C.Size", Role::size},
    {"torch._C._TensorBase", Role::tensor_class},
    {"torch._UntypedStorage", Role::untyped_storage},
    {"torch._tensor._rebuild_from_type", Role::from_type},
    {"torch._tensor._rebuild_from_type_v2", Role::from_type_v2},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", Role::device_from_cpu},
    {"torch._utils._rebuild_device_tensor_from_numpy", Role::device_from_numpy},
    {"torch._utils._rebuild_meta_tensor_no_storage", Role::tensor_meta},
    {"torch._utils._rebuild_nested_tensor", Role::nested},
    {"torch._utils._rebuild_parameter", Role::parameter},
    {"torch._utils._rebuild_parameter_v2", Role::parameter_state},
    {"torch._utils._rebuild_parameter_with_state", Role::parameter_state},
    {"torch._utils._rebuild_qtensor", Role::qtensor},
    {"torch._utils._rebuild_sparse_csr_tensor", Role::sparse_csr},
    {"torch._utils._rebuild_sparse_tensor", Role::sparse},
    {"torch._utils._rebuild_tensor", Role::tensor_v1},
    {"torch._utils._rebuild_tensor_v2", Role::tensor_v2},
    {"torch._utils._rebuild_tensor_v3", Role::tensor_v3},
    {"torch._utils._rebuild_wrapper_subclass", Role::wrapper_subclass},
    {"torch._utils._rebuild_xla_tensor", Role::device_from_numpy},
    {"torch.autograd.variable.Variable", Role::parameter_class},
    {"torch.device", Role::device},
    {"torch.jit._pickle.build_boollist", Role::jit_list},
    {"torch.jit._pickle.build_doublelist", Role::jit_list},
    {"torch.jit._pickle.build_intlist", Role::jit_list},
    {"torch.jit._pickle.build_tensor_from_id", Role::jit_tensor_from_id},
    {"torch.jit._pickle.build_tensorlist", Role::jit_list},
    {"torch.jit._pickle.restore_type_tag", Role::jit_type_tag},
    {"torch.nested._internal.nested_tensor._rebuild_njt", Role::nested_jagged},
    {"torch.nn.Parameter", Role::parameter_class},
    {"torch.nn.parameter.Buffer", Role::parameter_class},
    {"torch.nn.parameter.Parameter", Role::parameter_class},
    {"torch.serialization._get_layout", Role::get_layout},
    {"torch.storage.TypedStorage", Role::untyped_storage},
    {"torch.storage.UntypedStorage", Role::untyped_storage},
    {"torch.storage._TypedStorage", Role::untyped_storage},
    {"torch.storage._UntypedStorage", Role::untyped_storage},
    {"torch.storage._load_from_bytes", Role::load_from_bytes},
    {"torch_npu.utils.storage._rebuild_npu_tensor", Role::tensor_npu},
    {"types.SimpleNamespace", Role::namespace_},
    {"uuid.UUID", Role::uuid},
};

// Module names that changed: a prefix, and what it is called now.
constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"__builtin__", "builtins"},   {"copy_reg", "copyreg"},       {"torch.tensor", "torch._tensor"},
    {"numpy._core", "numpy.core"}, {"pathlib._local", "pathlib"}, {"pathlib._abc", "pathlib"},
};

// Python 2's builtins that have another name now.
constexpr std::pair<std::string_view, std::string_view> kRenamedBuiltins[] = {
    {"long", "int"}, {"unicode", "str"}, {"xrange", "range"}, {"basestring", "str"}};

template <class Range, class Projection>
constexpr bool sorted_by(const Range& range, Projection projection) {
  for (std::size_t i = 1; i < std::size(range); ++i) {
    if (!(projection(range[i - 1]) < projection(range[i]))) return false;
  }
  return true;
}

static_assert(sorted_by(kForbidden, [](std::string_view rule) { return rule; }));
static_assert(sorted_by(kKnown, [](const Known& known) { return known.name; }));

std::string_view current_module(std::string_view module, std::string& scratch) {
  for (const auto& [old, now] : kRenamed) {
    if (!module.starts_with(old)) continue;
    if (module.size() == old.size()) return now;
    if (module[old.size()] != '.') continue;
    scratch = std::string(now) + std::string(module.substr(old.size()));
    return scratch;
  }
  return module;
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

Role torch_pattern(std::string_view name) {
  if (name.ends_with("Storage")) return Role::storage_class;
  if (name.ends_with("Tensor")) return Role::tensor_class;
  if (dtype_from_torch(name)) return Role::dtype;
  constexpr std::string_view kAliases[] = {"half",  "float", "double", "cfloat", "cdouble",
                                           "chalf", "short", "int",    "long",   "float4_e2m1fn_x2"};
  if (std::find(std::begin(kAliases), std::end(kAliases), name) != std::end(kAliases)) return Role::dtype;
  if (name.starts_with("per_tensor_") || name.starts_with("per_channel_")) return Role::qscheme;
  if (name == "strided" || name.starts_with("sparse_") || name == "jagged" || name == "_mkldnn")
    return Role::layout;
  if (name.ends_with("_format")) return Role::memory_format;
  return Role::unknown;
}

}  // namespace

std::string full_name(std::string_view module, std::string_view name) {
  std::string scratch;
  const std::string_view current = current_module(module, scratch);
  std::string full(current);
  full += '.';
  for (const auto& [old, now] : kRenamedBuiltins) {
    if (module == "__builtin__" && name == old) return full.append(now);
  }
  full += name;
  return full;
}

Role role_of(std::string_view full) {
  const auto* found =
      std::lower_bound(std::begin(kKnown), std::end(kKnown), full,
                       [](const Known& known, std::string_view name) { return known.name < name; });
  if (found != std::end(kKnown) && found->name == full) return found->role;
  for (const std::string_view prefix : {"torch.", "torch.cuda."}) {
    const std::string_view rest = full.starts_with(prefix) ? full.substr(prefix.size()) : std::string_view();
    if (!rest.empty() && rest.find('.') == std::string_view::npos) return torch_pattern(rest);
  }
  return Role::unknown;
}

bool is_forbidden(std::string_view module, std::string_view name) {
  std::string scratch;
  for (const std::string_view spelling : {module, current_module(module, scratch)}) {
    if (matches_rule(std::string(spelling) + '.' + std::string(name))) return true;
  }
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
