// SPDX-License-Identifier: Apache-2.0
// The parts of opcodes that take more than a few lines: arguments, memo, objects, text.
#include <algorithm>
#include <bit>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle.h"
#include "formats/torch/pickle_text.h"
#include "formats/torch/tensor_run.h"

namespace ballast::torch {
namespace {

// Arguments; a torch.Size, which is kept as a tuple, is none.
bool is_plain_tuple(Ref value) {
  const ValueNode* tuple = as_kind(value, NodeKind::tuple);
  return tuple != nullptr && tuple->type == 0;
}

}  // namespace

std::string_view Machine::take_line() {
  const auto* end = static_cast<const char*>(std::memchr(p_, '\n', static_cast<std::size_t>(limit_ - p_)));
  if (end == nullptr) short_read(static_cast<std::uint64_t>(limit_ - p_) + 1);
  const std::string_view line(p_, static_cast<std::size_t>(end - p_));
  p_ = end + 1;
  return line;
}

std::uint64_t Machine::take_index() {
  const auto digits = take_line();
  if (!is_decimal(digits)) fail(Errc::bad_pickle, location(), "memo slot {} is no number", quoted(digits));
  if (digits.starts_with('-') || digits.size() > 18)
    fail(Errc::memo_range, location(), "memo slot {}", quoted(digits));
  std::uint64_t index = 0;
  for (const char digit : digits) index = index * 10 + static_cast<std::uint64_t>(digit - '0');
  return index;
}

void Machine::enter_frame(std::uint64_t size) {
  if (in_frame_) fail(Errc::frame_violation, location(), "a frame begins inside another");
  need(size);
  if (size == 0) return;
  limit_ = p_ + size;
  in_frame_ = true;
}

std::span<const Ref> Machine::since_mark(std::size_t below, const char* what) {
  if (marks_.empty()) fail(Errc::bad_pickle, location(), "{} without a mark", what);
  const std::size_t mark = marks_.back();
  const std::size_t outer = marks_.size() > 1 ? marks_[marks_.size() - 2] : 0;
  if (mark - outer < below) fail(Errc::bad_pickle, location(), "{} finds nothing below its mark", what);
  return std::span(stack_).subspan(mark);
}

void Machine::forget() {
  stack_.resize(marks_.back());
  marks_.pop_back();
}

void Machine::make_tuple(std::size_t count) {
  require(count, "TUPLE");
  const Ref tuple = tree_.sequence(NodeKind::tuple, std::span(stack_).last(count));
  stack_.resize(stack_.size() - count);
  push(tuple);
}

// A slot beyond the number of opcodes run so far cannot be a pickler's work: it only makes readers allocate.
void Machine::put(std::uint64_t index) {
  require(1, "PUT");
  if (index > ops_) fail(Errc::memo_range, location(), "memo slot {} after {} opcodes", index, ops_);
  const auto slot = static_cast<std::size_t>(index);
  if (slot >= memo_.size()) {
    grow(memo_, slot + 1);
    memo_.resize(slot + 1, Ref(nullptr));
  }
  if (memo_[slot] == Ref(nullptr))
    ++memoized_;
  else if (!makes_deferred_)
    make_all_deferred();
  memo_[slot] = stack_.back();
}

void Machine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == Ref(nullptr)) {
    fail(Errc::memo_range, location(), "memo slot {} was never set", index);
  }
  const auto slot = static_cast<std::size_t>(index);
  if (is_deferred(memo_[slot])) make_deferred(slot);
  push(memo_[slot]);
  const ValueNode* global = reads_runs_ ? as_kind(memo_[slot], NodeKind::global) : nullptr;
  if (global != nullptr && static_cast<Role>(global->role) == Role::tensor_v2) take_tensor();
}

void Machine::push_text(std::string_view text) {
  if (!is_python_text(text)) fail(Errc::bad_pickle, location(), "text of {} bytes is not UTF-8", text.size());
  push(tree_.string(text));
}

// Python 2 had one type for text and bytes: what is UTF-8 is taken for text.
void Machine::push_python2_text(std::string_view bytes) {
  if (is_utf8(bytes)) return push(tree_.string(bytes));
  objects_.ledger().find(Severity::warning, Errc::bad_pickle,
                         "text of Python 2 that Python 3 reads only when it is told the encoding", offset(),
                         stream_.entry);
  push(tree_.bytes(bytes));
}

void Machine::op_dict() {
  const auto pairs = since_mark(0, "DICT");
  if (pairs.size() % 2 != 0) fail(Errc::bad_pickle, location(), "DICT with a key that has no value");
  const Ref dict(tree_.make(NodeKind::dict));
  objects_.set_items(dict, pairs);
  forget();
  push(dict);
}

void Machine::op_global(std::string_view module, std::string_view name) {
  if (module.empty() || name.empty() || !is_utf8(module) || !is_utf8(name)) {
    fail(Errc::bad_pickle, location(), "a global named {} in module {}", quoted(name), quoted(module));
  }
  // A function inside a function cannot be reached by name; Python says so.
  if (protocol_ >= 4 && ("." + std::string(name) + ".").find(".<locals>.") != std::string::npos)
    fail(Errc::bad_pickle, location(), "a global named {}", quoted(name));
  push(objects_.global({module, name}, protocol_ < 3));
}

void Machine::op_stack_global() {
  require(2, "STACK_GLOBAL");
  const Ref name = pop();
  const Ref module = pop();
  op_global(objects_.need_text(module, "the module of STACK_GLOBAL"),
            objects_.need_text(name, "the name of STACK_GLOBAL"));
}

void Machine::op_reduce() {
  require(2, "REDUCE");
  const Ref args = pop();
  if (!is_plain_tuple(args)) {
    fail(Errc::type_mismatch, location(), "REDUCE with {} for its arguments, not a tuple",
         objects_.describe(args));
  }
  stack_.back() = objects_.call(stack_.back(), args, Ref::none(), How::call);
}

void Machine::op_newobj() {
  require(2, "NEWOBJ");
  const Ref args = pop();
  if (!is_plain_tuple(args)) {
    fail(Errc::type_mismatch, location(), "NEWOBJ with {} for its arguments, not a tuple",
         objects_.describe(args));
  }
  stack_.back() = objects_.call(stack_.back(), args, Ref::none(), How::make);
}

void Machine::op_newobj_ex() {
  require(3, "NEWOBJ_EX");
  const Ref kwargs = pop();
  const Ref args = pop();
  if (!is_plain_tuple(args) || as_dict(kwargs) == nullptr) {
    fail(Errc::type_mismatch, location(), "NEWOBJ_EX with {} and {} for its arguments",
         objects_.describe(args), objects_.describe(kwargs));
  }
  objects_.need_keywords(kwargs);
  stack_.back() = objects_.call(stack_.back(), args, kwargs, How::make);
}

// What INST and OBJ do: a class without arguments is made, everything else is called.
Ref Machine::instantiate(Ref callee, Ref args) {
  const bool is_made = args.node()->size == 0 && objects_.is_class(callee);
  return objects_.call(callee, args, Ref::none(), is_made ? How::make : How::call);
}

void Machine::op_obj() {
  const auto values = since_mark(0, "OBJ");
  if (values.empty()) fail(Errc::bad_pickle, location(), "OBJ without a class");
  const Ref callee = values.front();
  const Ref args = tree_.sequence(NodeKind::tuple, values.subspan(1));
  forget();
  push(instantiate(callee, args));
}

void Machine::op_inst() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  if (!is_ascii(module) || !is_ascii(name))
    fail(Errc::bad_pickle, location(), "INST of {} in module {}, which is not ASCII", quoted(name),
         quoted(module));
  const Ref args = tree_.sequence(NodeKind::tuple, since_mark(0, "INST"));
  forget();
  op_global(module, name);
  const Ref callee = pop();
  push(instantiate(callee, args));
}

void Machine::op_persistent(Ref id) {
  if (!stream_.persistent)
    fail(Errc::missing_storage, location(),
         "a persistent id, but no storages (data.pkl taken out of its archive?)");
  push(stream_.persistent(id));
}

// Python reads octal, hexadecimal, signs, spaces and underscores here, and takes some of them for booleans:
// what no pickler writes is refused.
void Machine::op_int() {
  const std::string_view line = take_line();
  if (line == "00" || line == "01") return push(Ref::boolean(line == "01"));
  if (!is_decimal(line)) fail(Errc::bad_pickle, location(), "INT {} is no integer", quoted(line));
  push_integer(line);
}

void Machine::op_long() {
  std::string_view line = take_line();
  if (line.ends_with('L')) line.remove_suffix(1);
  if (!is_decimal(line)) fail(Errc::bad_pickle, location(), "LONG {} is no integer", quoted(line));
  push_integer(line);
}

void Machine::push_integer(std::string_view digits) {
  constexpr std::size_t kSurelySmall = 18;
  if (digits.size() <= kSurelySmall) return push(tree_.decimal_integer(digits));
  const std::string bytes = twos_complement(digits);
  if (bytes.size() > kMaxIntegerBytes)
    fail(Errc::bad_pickle, location(), "an integer of {} digits", digits.size());
  push(tree_.big_integer(tree_.store(bytes)));
}

void Machine::op_float() {
  const std::string_view line = take_line();
  const auto value = parse_float(line);
  if (!value) fail(Errc::bad_pickle, location(), "FLOAT {} is no number", quoted(line));
  push(tree_.floating(*value));
}

void Machine::op_string() {
  const std::string_view line = take_line();
  const auto text = unquote(line);
  if (!text) fail(Errc::bad_pickle, location(), "STRING {} is not in quotes", quoted(line));
  push_python2_text(tree_.store(*text));
}

void Machine::op_unicode() {
  const std::string_view line = take_line();
  if (is_ascii(line) && line.find('\\') == std::string_view::npos) return push(tree_.string(line));
  const auto text = decode_raw_unicode_escape(line);
  if (!text) fail(Errc::bad_pickle, location(), "UNICODE {} has a broken escape", quoted(line));
  push(tree_.string(tree_.store(*text)));
}

}  // namespace ballast::torch
