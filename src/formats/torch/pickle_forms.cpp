// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/pickle_forms.h"

#include <string_view>

#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

bool is_plain_tensor(std::string_view type) {
  // torch.Tensor, torch.FloatTensor and the like, Parameter, Buffer
  return (type.starts_with("torch.") && type.ends_with("Tensor") &&
          type.find('.', 6) == std::string_view::npos) ||
         type.starts_with("torch.nn.parameter.") || type == "torch.nn.Parameter";
}

Form string_form(std::string_view type, bool simplify) {
  if (type == "str") return Form::string;
  if (type == "torch.dtype") return Form::dtype;
  if (type == "torch.device") return Form::device;
  if (type == "torch.layout") return Form::layout;
  if (type == "torch.qscheme") return Form::constant;  // memory formats are not among what weights_only takes
  return simplify ? Form::string : Form::unrepresentable;
}

Form dict_form(std::string_view type, const FormOptions& options) {
  if (type == "dict") return Form::dict;
  if (type == "collections.OrderedDict") return options.plain_dict ? Form::dict : Form::ordered_dict;
  if (type == "collections.Counter") return Form::counter;
  return options.simplify ? Form::dict : Form::unrepresentable;
}

}  // namespace

Form form_of(const Value& value, const FormOptions& options) {
  const std::string_view type = value.type();
  const auto plain = [&](std::string_view python, Form form) {
    return type == python || options.simplify ? form : Form::unrepresentable;
  };
  switch (value.kind()) {
    case Kind::none:
      return Form::none;
    case Kind::boolean:
      return plain("bool", Form::boolean);
    case Kind::integer:
      return plain("int", Form::integer);
    case Kind::floating:
      return plain("float", Form::floating);
    case Kind::complex:
      return plain("complex", Form::complex);
    case Kind::string:
      return string_form(type, options.simplify);
    case Kind::bytes:
      return type == "bytearray" ? Form::bytearray : plain("bytes", Form::bytes);
    case Kind::list:
      return plain("list", Form::list);
    case Kind::tuple:
      return type == "torch.Size" ? Form::size : plain("tuple", Form::tuple);
    case Kind::set:
      return plain("set", Form::set);
    case Kind::dict: {
      const Form form = dict_form(type, options);
      // Nothing but an OrderedDict can be told of its attributes again.
      const bool loses =
          form == Form::counter && value.attributes().kind() == Kind::dict && value.attributes().size() != 0;
      return loses && !options.simplify ? Form::unrepresentable : form;
    }
    case Kind::tensor: {
      if (options.simplify) return Form::tensor;
      return is_plain_tensor(type) && value.attributes().is_none() ? Form::tensor : Form::unrepresentable;
    }
    case Kind::object:
      return Form::unrepresentable;
  }
  return Form::unrepresentable;
}

std::string_view without_torch(std::string_view name) noexcept {
  return name.starts_with("torch.") ? name.substr(6) : name;
}

namespace {

bool is_written(Role role, std::string_view name) {
  const KnownGlobal* known = find_torch_constant(role, name);
  return known != nullptr && known->verdict == Verdict::clean;
}

}  // namespace

bool is_real_constant(const Value& value, Form form) {
  const std::string_view name = without_torch(value.as_string());
  switch (form) {
    case Form::dtype:
      return is_written(Role::dtype, name);
    case Form::constant:
      return is_written(Role::qscheme, name);
    case Form::layout:
      return find_torch_constant(Role::layout, name) != nullptr;
    case Form::device:
      return is_device_name(value.as_string());
    default:
      return true;
  }
}

bool is_container(Form form) noexcept {
  switch (form) {
    case Form::list:
    case Form::tuple:
    case Form::size:
    case Form::set:
    case Form::dict:
    case Form::ordered_dict:
    case Form::counter:
      return true;
    case Form::none:
    case Form::boolean:
    case Form::integer:
    case Form::floating:
    case Form::complex:
    case Form::string:
    case Form::bytes:
    case Form::bytearray:
    case Form::dtype:
    case Form::device:
    case Form::layout:
    case Form::constant:
    case Form::tensor:
    case Form::unrepresentable:
      return false;
  }
  return false;
}

bool is_dict(Form form) noexcept {
  return form == Form::dict || form == Form::ordered_dict || form == Form::counter;
}

bool is_made_last(Form form) noexcept {
  return form == Form::tuple || form == Form::size || form == Form::set || form == Form::counter;
}

bool has_identity(const Value& value, Form form) noexcept {
  return is_container(form) || form == Form::tensor || form == Form::bytes || form == Form::bytearray ||
         (form == Form::integer && !value.fits_int());
}

bool is_long_text(const Value& value, Form form) {
  constexpr std::size_t kShort = 64;
  return form == Form::string && value.as_string().size() > kShort;
}

bool is_hashable(Form form) noexcept {
  return form == Form::tuple || form == Form::size || (!is_container(form) && form != Form::bytearray);
}

Value written_value(const Value& value, const FormOptions& options) {
  if (!options.simplify || value.kind() != Kind::object) return value;
  if (Value pairs = value.pairs(); !pairs.is_none()) return pairs;
  if (Value items = value.items(); !items.is_none()) return items;
  return value;
}

}  // namespace ballast::torch
