// SPDX-License-Identifier: Apache-2.0
// What a global of a pickle means: which of PyTorch's, NumPy's and Python's constructors it is, and whether
// it could run code. Names are only ever compared here; nothing is resolved, imported or called.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

/// "torch._utils" + "_rebuild_tensor_v2"; Python 2's and older releases' spellings become the current ones.
[[nodiscard]] std::string full_name(std::string_view module, std::string_view name);

[[nodiscard]] Role role_of(std::string_view full_name);

/// Could run code, start a process, touch a file or the network. `module` and `name` as the file spells them.
[[nodiscard]] bool is_forbidden(std::string_view module, std::string_view name);

}  // namespace ballast::torch
