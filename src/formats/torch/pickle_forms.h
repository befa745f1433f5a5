// SPDX-License-Identifier: Apache-2.0
// How a Value is written into a pickle, or why it cannot be.
#pragma once

#include <cstdint>
#include <string_view>

#include "ballast/value.h"

namespace ballast::torch {

enum class Form : std::uint8_t {
  none,
  boolean,
  integer,
  floating,
  complex,
  string,
  bytes,
  bytearray,
  dtype,
  device,
  layout,
  constant,  // leaves
  list,
  tuple,
  size,
  set,
  dict,
  ordered_dict,
  counter,  // containers
  tensor,
  unrepresentable,
};

struct FormOptions {
  bool plain_dict = false;  // OrderedDicts as dicts
  bool simplify = false;    // foreign classes as what they are made of
};

[[nodiscard]] Form form_of(const Value& value, const FormOptions& options);
[[nodiscard]] bool is_container(Form form) noexcept;
/// Made of keys and values.
[[nodiscard]] bool is_dict(Form form) noexcept;
/// Made of its elements, so that it cannot contain itself in a pickle.
[[nodiscard]] bool is_made_last(Form form) noexcept;
/// Two references to it are two references to one thing, which is written once.
[[nodiscard]] bool has_identity(const Value& value, Form form) noexcept;
/// Text whose references are told by identity, before a look at what it says.
[[nodiscard]] bool is_long_text(const Value& value, Form form);
/// May be a key of a dict or an element of a set.
[[nodiscard]] bool is_hashable(Form form) noexcept;
/// "float32" of "torch.float32".
[[nodiscard]] std::string_view without_torch(std::string_view name) noexcept;
/// A constant, layout or device that PyTorch has: text of that class alone is none.
[[nodiscard]] bool is_real_constant(const Value& value, Form form);
/// With `simplify`: what stands for a dict- or list-like object; the value itself otherwise.
[[nodiscard]] Value written_value(const Value& value, const FormOptions& options);

}  // namespace ballast::torch
