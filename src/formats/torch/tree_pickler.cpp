// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tree_pickler.h"

#include <charconv>

namespace ballast::torch {
void TreePickler::run(const Value& root) {
  write(root);
  while (!stack_.empty()) step();
}

void TreePickler::step() {
  Frame& frame = stack_.back();
  const std::size_t index = frame.next++;
  const std::size_t count = frame.child_count();
  const std::size_t batch = is_dict(frame.form) ? 2 * kBatch : kBatch;
  const bool in_batches = frame.form != Form::tuple && frame.form != Form::size;
  if (index < count) {
    if (in_batches && index % batch == 0) {
      if (index > 0) close_batch(frame.form);
      out_.mark();
    }
    return write(frame.child(index));
  }
  if (index == count) {
    if (in_batches && count > 0) close_batch(frame.form);
    if (const auto attributes = frame.attributes()) return write(*attributes);
  } else {
    out_.build();
  }
  close(frame);
  stack_.pop_back();
}

void TreePickler::close_batch(Form form) {
  if (is_dict(form))
    out_.set_items();
  else
    out_.appends();
}

void TreePickler::open(const Value& value, Form form) {
  switch (form) {
    case Form::list:
      out_.empty_list();
      break;
    case Form::dict:
      out_.empty_dict();
      break;
    case Form::ordered_dict:
      out_.ordered_dict();
      break;
    case Form::counter:
      out_.global("collections", "Counter");
      out_.empty_dict();
      break;
    case Form::set:
      out_.global("builtins", "set");
      out_.empty_list();
      break;
    case Form::size:
      out_.global("torch", "Size");
      [[fallthrough]];
    default:
      if (value.size() > 3) out_.mark();
  }
  if (!is_made_last(form)) remember(value);
  stack_.push_back({value, form});
}

void TreePickler::close(const Frame& frame) {
  if (frame.form == Form::tuple || frame.form == Form::size) out_.tuple(frame.value.size());
  if (frame.form == Form::size || frame.form == Form::set || frame.form == Form::counter) {
    out_.tuple(1);
    out_.call();
  }
  if (is_made_last(frame.form)) remember(frame.value);
}

void TreePickler::remember(const Value& value) {
  if (survey_.is_shared(value)) slots_.emplace(identity(value), out_.remember());
}

void TreePickler::write(const Value& given) {
  const Value value = written_value(given, options_);
  const Form form = form_of(value, options_);
  if (!has_identity(value, form) && !is_long_text(value, form)) return write_leaf(value, form);
  if (const auto found = slots_.find(identity(value)); found != slots_.end())
    return out_.recall(found->second);
  if (is_container(form)) return open(value, form);
  if (form == Form::string && survey_.is_repeated(value.as_string())) {
    slots_.emplace(identity(value), out_.repeated_string(value.as_string()));
    return;
  }
  write_leaf(value, form);
  if (form != Form::string) remember(value);
}

void TreePickler::write_leaf(const Value& value, Form form) {
  switch (form) {
    case Form::none:
      return out_.none();
    case Form::boolean:
      return out_.boolean(value.as_bool());
    case Form::integer:
      return write_integer(value);
    case Form::floating:
      return out_.floating(value.as_float());
    case Form::string:
      return write_string(value.as_string());
    case Form::tensor:
      return tensors_.write(value.tensor_value());
    case Form::complex:
      out_.global("builtins", "complex");
      out_.floating(value.as_complex().real());
      out_.floating(value.as_complex().imag());
      break;
    case Form::bytes:
      out_.global("_codecs", "encode");
      out_.latin1(value.as_bytes());
      break;
    case Form::bytearray:
      out_.global("builtins", "bytearray");
      out_.latin1(value.as_bytes());
      break;
    case Form::dtype:
    case Form::constant:
      return write_constant(value.as_string());
    case Form::device:
      return write_device(value.as_string());
    case Form::layout:
      return write_layout(value.as_string());
    default:
      return;  // containers and what the survey refused
  }
  out_.tuple(2);
  out_.call();
}

void TreePickler::write_integer(const Value& value) {
  if (value.fits_int()) return out_.integer(value.as_int());
  static_cast<void>(out_.big_integer(value.as_decimal()));  // the survey has tried it
}

void TreePickler::write_string(std::string_view text) {
  if (survey_.is_repeated(text))
    out_.repeated_string(text);
  else
    out_.string(text);
}

// The survey has found them all in the table.
void TreePickler::write_constant(std::string_view name) {
  out_.global("torch", without_torch(name));
}

void TreePickler::write_device(std::string_view text) {
  const std::size_t colon = text.find(':');
  out_.global("torch", "device");
  out_.string(text.substr(0, colon));
  std::int64_t index = 0;
  if (colon != std::string_view::npos) {
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
    out_.integer(index);
  }
  out_.tuple(colon == std::string_view::npos ? 1 : 2);
  out_.call();
}

void TreePickler::write_layout(std::string_view text) {
  out_.global("torch.serialization", "_get_layout");
  out_.string("torch." + std::string(without_torch(text)));
  out_.tuple(1);
  out_.call();
}

}  // namespace ballast::torch
