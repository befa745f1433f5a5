// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tree_survey.h"

#include "ballast/error.h"
#include "base/fail.h"
#include "formats/torch/pickle_text.h"
#include "formats/torch/roles.h"

namespace ballast::torch {

void TreeSurvey::run(const Value& root) {
  visit(root, false);
  while (!stack_.empty()) {
    Frame& frame = stack_.back();
    const std::size_t index = frame.next++;
    const std::size_t count = frame.child_count();
    if (index < count) {
      const bool must_hash = (is_dict(frame.form) && index % 2 == 0) || frame.form == Form::set;
      visit(frame.child(index), must_hash);
    } else if (const auto attributes = frame.attributes(); attributes && index == count) {
      check_attributes(*attributes);
      visit(*attributes, false);
    } else {
      open_.erase(identity(frame.value));
      stack_.pop_back();
    }
  }
}

void TreeSurvey::visit(const Value& given, bool must_hash) {
  const Value value = written_value(given, options_);
  const Form form = form_of(value, options_);
  if (form == Form::unrepresentable) {
    const bool has_more = value.kind() == Kind::tensor && !value.attributes().is_none();
    const std::string said = fmt::format("({})", display(value.type()));
    const std::string summary = value.summary();  // which may say the type itself
    fail(Errc::not_representable, path(), "{}{}{} is not something torch.load(weights_only=True) reads{}",
         summary, summary.ends_with(said) ? "" : " " + said, has_more ? " with Python attributes" : "",
         options_.simplify ? "" : "; simplify (--simplify) writes it as what it is made of, where it can");
  }
  if (must_hash && !is_hashable(form))
    fail(Errc::not_representable, path(), "{} cannot be a key or an element of a set", value.summary());
  if (form == Form::string) return note_text(value, form);
  if (!has_identity(value, form)) return check_leaf(value, form);
  if (!seen_.insert(identity(value)).second) {
    if (is_made_last(form) && open_.contains(identity(value)))
      fail(Errc::not_representable, path(), "{} contains itself", value.summary());
    shared_.insert(identity(value));
    return;
  }
  check_leaf(value, form);
  if (form == Form::tensor) tensors_.note(value.tensor_value(), [this] { return path(); });
  if (!is_container(form)) return;
  if (is_made_last(form)) open_.insert(identity(value));
  stack_.push_back({value, form});
}

// Long text is looked at when it is met first and once more, however often it is referred to.
void TreeSurvey::note_text(const Value& value, Form form) {
  if (is_long_text(value, form) && !seen_.insert(identity(value)).second &&
      !shared_.insert(identity(value)).second)
    return;
  const auto [found, is_new] = strings_.try_emplace(value.as_string(), false);
  if (is_new)
    check_leaf(value, form);
  else
    found->second = true;
}

void TreeSurvey::check_leaf(const Value& value, Form form) const {
  const bool is_named =
      form == Form::dtype || form == Form::constant || form == Form::layout || form == Form::device;
  if (is_named && !is_real_constant(value, form)) {
    fail(Errc::not_representable, path(), "{} {}, which PyTorch does not have", display(value.type()),
         quoted(value.as_string()));
  }
  if (form == Form::string && (!is_python_text(value.as_string()) || value.as_string().size() > 0xFFFFFFFF)) {
    fail(Errc::not_representable, path(), "text that is not UTF-8, or longer than 4 GiB");
  }
  if (form == Form::bytes && value.as_bytes().size() > 0x7FFFFFFF)
    fail(Errc::not_representable, path(), "more than 2 GiB of bytes");
  if (form == Form::integer && !value.fits_int() && !PickleEmitter().big_integer(value.as_decimal())) {
    fail(Errc::not_representable, path(), "an integer of more than 255 bytes");
  }
}

void TreeSurvey::check_attributes(const Value& attributes) const {
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const Value name = attributes.key(i);
    if (name.kind() != Kind::string || is_pythons_own(name.as_string()))
      fail(Errc::not_representable, path(),
           "{} is no name for an attribute: Python would take it for its own", name.summary());
  }
}

std::string TreeSurvey::path() const {
  std::string dotted;
  for (const Frame& frame : stack_) dotted += (dotted.empty() ? "" : ".") + frame.label();
  return dotted.empty() ? "the root" : dotted;
}

}  // namespace ballast::torch
