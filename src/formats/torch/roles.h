// SPDX-License-Identifier: Apache-2.0
// THE table of roles: what a global of a pickle means. A global has a role when its module and name stand in
// the table to the letter; every other one is an inert object and makes a file's verdict unknown, or danger
// when it stands among the forbidden ones. Names are only ever compared; nothing is resolved, imported or
// called.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ballast/scan.h"

namespace ballast::torch {

/// Constructors that are understood. Everything else stays an inert object.
enum class Role : std::uint8_t {
  unknown,
  // torch: tensors
  tensor_v1,
  tensor_v2,
  tensor_v3,
  tensor_npu,
  tensor_meta,
  tensor_class,
  parameter,
  parameter_state,
  parameter_class,
  qtensor,
  sparse,
  sparse_csr,
  nested,
  nested_jagged,
  wrapper_subclass,
  device_from_numpy,
  device_from_cpu,
  from_type,
  from_type_v2,
  // torch: what tensors are made of
  storage_class,
  untyped_storage,
  load_from_bytes,
  dtype,
  qscheme,
  layout,
  get_layout,
  size,
  device,
  memory_format,
  // torch.jit
  jit_list,
  jit_type_tag,
  jit_tensor_from_id,
  // collections, builtins
  ordered_dict,
  default_dict,
  counter,
  deque,
  set,
  frozenset,
  list,
  tuple,
  dict,
  bytes,
  bytearray,
  complex,
  range,
  slice,
  object,
  boolean,
  integer,
  floating,
  string,
  getattr,
  encode,
  reconstructor,
  new_object,
  new_object_ex,
  // numpy
  numpy_reconstruct,
  numpy_scalar,
  numpy_dtype,
  numpy_frombuffer,
  numpy_ndarray,
  // plain values of other modules
  path,
  date,
  time,
  datetime,
  timedelta,
  timezone,
  uuid,
  namespace_,  // NOLINT(readability-identifier-naming): a keyword without it
  omega_container,
  omega_node,
};

/// What Python does with it.
enum class Callable : std::uint8_t {
  constant,  ///< never called
  function,
  type,  ///< called, or made by its __new__
};

struct KnownGlobal {
  std::string module;
  std::string name;
  std::string shown;  ///< "numpy.core.multiarray._reconstruct", whichever release's spelling the file has
  Role role = Role::unknown;
  Callable callable = Callable::function;
  /// clean: naming it, and calling it as its role does, makes data and nothing else. unknown: Ballast reads
  /// it, but what Python would run is not ours to vouch for.
  Verdict verdict = Verdict::unknown;
};

/// By module and name as Python resolves them; nullptr for a stranger.
[[nodiscard]] const KnownGlobal* find_known_global(std::string_view module, std::string_view name);

/// The whole table, sorted by module and name.
[[nodiscard]] std::span<const KnownGlobal> known_globals();

/// The module and name of a constant of PyTorch ("float32", "channels_last") as torch.load finds it, or
/// nullptr: the only constants that are ever written.
[[nodiscard]] const KnownGlobal* find_torch_constant(Role role, std::string_view name);

/// Python looks such an attribute up itself: on an object it would stand in for a method.
[[nodiscard]] inline bool is_pythons_own(std::string_view attribute) {
  return attribute.starts_with("__");
}

/// Could run code, start a process, touch a file or the network.
[[nodiscard]] bool is_forbidden(std::string_view module, std::string_view name);

}  // namespace ballast::torch
