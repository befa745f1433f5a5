// SPDX-License-Identifier: Apache-2.0
// The opcodes. Numbers and names of them are those of Python's pickletools.
#include "formats/torch/pickle.h"

#include <algorithm>
#include <bit>

#include "ballast/display.h"
#include "base/fail.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle_text.h"

namespace ballast::torch {

Machine::Machine(Objects& objects, std::span<const std::byte> code, Stream stream)
    : objects_(objects),
      tree_(objects.tree()),
      stream_(std::move(stream)),
      begin_(reinterpret_cast<const char*>(code.data())),
      end_(begin_ + code.size()),
      p_(begin_),
      limit_(end_),
      op_(begin_),
      outer_(objects.machine) {
  objects_.machine = this;
  objects_.allow(code.size());
  stack_.reserve(256);
  memo_.reserve(std::min<std::size_t>(code.size() / 8, std::size_t{1} << 20U));
}

Machine::~Machine() {
  objects_.machine = outer_;
}

// The last text below what is being worked on is nearly always the key a tensor will get.
std::string Machine::location() const {
  std::string text = fmt::format("{}, byte {}", stream_.where, offset());
  for (std::size_t i = stack_.size(); i-- > 0 && i + 64 > stack_.size();) {
    if (const auto key = Objects::as_text(stack_[i]); key && *key != "storage" && *key != "cpu")
      return text + ", near " + quoted(key->substr(0, 200));
  }
  return text;
}

void Machine::short_read(std::uint64_t count) const {
  if (in_frame_) {
    fail(Errc::frame_violation, location(), "opcode {:#04x} needs {} bytes, its frame ends in {}",
         static_cast<unsigned char>(*op_), count, limit_ - p_);
  }
  fail(Errc::truncated, location(),
       "opcode {:#04x} needs {} bytes, {} are left (cut short, or a wrong length?)",
       op_ < end_ ? static_cast<unsigned char>(*op_) : 0U, count, end_ - p_);
}

void Machine::underflow(const char* what) const {
  fail(Errc::bad_pickle, location(), "{} finds {} values on the stack since the last mark, too few", what,
       above_mark());
}

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
  if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, Ref(nullptr));
  memo_[static_cast<std::size_t>(index)] = stack_.back();
}

void Machine::get(std::uint64_t index) {
  if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == Ref(nullptr)) {
    fail(Errc::memo_range, location(), "memo slot {} was never set", index);
  }
  push(memo_[static_cast<std::size_t>(index)]);
}

void Machine::push_text(std::string_view text) {
  if (!is_utf8(text)) fail(Errc::bad_pickle, location(), "text of {} bytes is not UTF-8", text.size());
  push(tree_.string(text));
}

// Python 2 had one type for text and bytes: what is UTF-8 is taken for text.
void Machine::push_python2_text(std::string_view bytes) {
  push(is_utf8(bytes) ? tree_.string(bytes) : tree_.bytes(bytes));
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
  push(objects_.global(module, name));
}

void Machine::op_stack_global() {
  require(2, "STACK_GLOBAL");
  const Ref name = pop();
  const Ref module = pop();
  op_global(objects_.need_text(module, "the module of STACK_GLOBAL"),
            objects_.need_text(name, "the name of STACK_GLOBAL"));
}

void Machine::op_reduce(const char* what) {
  require(2, what);
  const Ref args = pop();
  if (Objects::as_kind(args, NodeKind::tuple) == nullptr) {
    fail(Errc::type_mismatch, location(), "{} with {} for its arguments, not a tuple", what,
         objects_.describe(args));
  }
  stack_.back() = objects_.call(stack_.back(), args, Ref::none(), what[0] == 'N');
}

void Machine::op_newobj_ex() {
  require(3, "NEWOBJ_EX");
  const Ref kwargs = pop();
  const Ref args = pop();
  if (Objects::as_kind(args, NodeKind::tuple) == nullptr ||
      Objects::as_kind(kwargs, NodeKind::dict) == nullptr) {
    fail(Errc::type_mismatch, location(), "NEWOBJ_EX with {} and {} for its arguments",
         objects_.describe(args), objects_.describe(kwargs));
  }
  stack_.back() = objects_.call(stack_.back(), args, kwargs, true);
}

void Machine::op_obj() {
  const auto values = since_mark(0, "OBJ");
  if (values.empty()) fail(Errc::bad_pickle, location(), "OBJ without a class");
  const Ref callee = values.front();
  const Ref args = tree_.sequence(NodeKind::tuple, values.subspan(1));
  forget();
  push(objects_.call(callee, args, Ref::none(), false));
}

void Machine::op_inst() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  const Ref args = tree_.sequence(NodeKind::tuple, since_mark(0, "INST"));
  forget();
  op_global(module, name);
  push(objects_.call(pop(), args, Ref::none(), false));
}

void Machine::op_persistent(Ref id) {
  if (!stream_.persistent)
    fail(Errc::missing_storage, location(),
         "a persistent id, but no storages (data.pkl taken out of its archive?)");
  push(stream_.persistent(id));
}

bool Machine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const auto version = take<std::uint8_t>(); version > 5)
        fail(Errc::bad_pickle, location(), "protocol {}", version);
      break;
    case 0x95:
      enter_frame(take<std::uint64_t>());
      break;
    case '.':
      return false;
    // Stack and memo
    case '(':
      marks_.push_back(stack_.size());
      break;
    case '0':
      if (above_mark() != 0)
        stack_.pop_back();
      else if (!marks_.empty())
        marks_.pop_back();
      else
        underflow("POP");
      break;
    case '1':
      static_cast<void>(since_mark(0, "POP_MARK"));
      forget();
      break;
    case '2':
      require(1, "DUP");
      push(stack_.back());
      break;
    case 'q':
      put(take<std::uint8_t>());
      break;
    case 'r':
      put(take<std::uint32_t>());
      break;
    case 0x94:
      put(memo_.size());
      break;
    case 'h':
      get(take<std::uint8_t>());
      break;
    case 'j':
      get(take<std::uint32_t>());
      break;
    // Constants and numbers
    case 'N':
      push(Ref::none());
      break;
    case 0x88:
      push(Ref::boolean(true));
      break;
    case 0x89:
      push(Ref::boolean(false));
      break;
    case 'J':
      push(Ref::small(take<std::int32_t>()));
      break;
    case 'K':
      push(Ref::small(take<std::uint8_t>()));
      break;
    case 'M':
      push(Ref::small(take<std::uint16_t>()));
      break;
    case 0x8A:
      push(tree_.big_integer(take_text(take<std::uint8_t>())));
      break;
    case 0x8B: {
      const auto size = take<std::int32_t>();
      if (size < 0) fail(Errc::bad_pickle, location(), "an integer of {} bytes", size);
      push(tree_.big_integer(take_text(static_cast<std::uint64_t>(size))));
      break;
    }
    case 'G': {
      const std::uint64_t bits = __builtin_bswap64(take<std::uint64_t>());
      push(tree_.floating(std::bit_cast<double>(bits)));
      break;
    }
    // Text and bytes
    case 'X':
      push_text(take_text(take<std::uint32_t>()));
      break;
    case 0x8C:
      push_text(take_text(take<std::uint8_t>()));
      break;
    case 0x8D:
      push_text(take_text(take<std::uint64_t>()));
      break;
    case 'U':
      push_python2_text(take_text(take<std::uint8_t>()));
      break;
    case 'T': {
      const auto size = take<std::int32_t>();
      if (size < 0) fail(Errc::bad_pickle, location(), "a string of {} bytes", size);
      push_python2_text(take_text(static_cast<std::uint64_t>(size)));
      break;
    }
    case 'C':
      push(tree_.bytes(take_text(take<std::uint8_t>())));
      break;
    case 'B':
      push(tree_.bytes(take_text(take<std::uint32_t>())));
      break;
    case 0x8E:
      push(tree_.bytes(take_text(take<std::uint64_t>())));
      break;
    case 0x96:
      push(tree_.bytes(take_text(take<std::uint64_t>()), tree_.type_id("bytearray")));
      break;
    // Containers
    case ')':
      push(tree_.sequence(NodeKind::tuple, {}));
      break;
    case 0x85:
      make_tuple(1);
      break;
    case 0x86:
      make_tuple(2);
      break;
    case 0x87:
      make_tuple(3);
      break;
    case 't': {
      const Ref tuple = tree_.sequence(NodeKind::tuple, since_mark(0, "TUPLE"));
      forget();
      push(tuple);
      break;
    }
    case ']':
      push(Ref(tree_.make(NodeKind::list)));
      break;
    case 'l': {
      const Ref list = tree_.sequence(NodeKind::list, since_mark(0, "LIST"));
      forget();
      push(list);
      break;
    }
    case 'a': {
      require(2, "APPEND");
      const Ref element = pop();
      objects_.append(stack_.back(), {&element, 1});
      break;
    }
    case 'e': {
      const auto elements = since_mark(1, "APPENDS");
      objects_.append(stack_[marks_.back() - 1], elements);
      forget();
      break;
    }
    case '}':
      push(Ref(tree_.make(NodeKind::dict)));
      break;
    case 'd':
      op_dict();
      break;
    case 's': {
      require(3, "SETITEM");
      const Ref pair[] = {stack_[stack_.size() - 2], stack_.back()};
      stack_.resize(stack_.size() - 2);
      objects_.set_items(stack_.back(), pair);
      break;
    }
    case 'u': {
      const auto pairs = since_mark(1, "SETITEMS");
      if (pairs.size() % 2 != 0) fail(Errc::bad_pickle, location(), "SETITEMS with a key that has no value");
      objects_.set_items(stack_[marks_.back() - 1], pairs);
      forget();
      break;
    }
    case 0x8F:
      push(Ref(tree_.make(NodeKind::set)));
      break;
    case 0x90: {
      const auto elements = since_mark(1, "ADDITEMS");
      objects_.add(stack_[marks_.back() - 1], elements);
      forget();
      break;
    }
    case 0x91: {
      Node* set = tree_.make(NodeKind::set, tree_.type_id("frozenset"));
      objects_.add(Ref(set), since_mark(0, "FROZENSET"));
      forget();
      push(Ref(set));
      break;
    }
    // Objects
    case 'c': {
      const std::string_view module = take_line();
      op_global(module, take_line());
      break;
    }
    case 0x93:
      op_stack_global();
      break;
    case 'R':
      op_reduce("REDUCE");
      break;
    case 0x81:
      op_reduce("NEWOBJ");
      break;
    case 0x92:
      op_newobj_ex();
      break;
    case 'o':
      op_obj();
      break;
    case 'i':
      op_inst();
      break;
    case 'b': {
      require(2, "BUILD");
      const Ref state = pop();
      objects_.build(stack_.back(), state);
      break;
    }
    case 'Q':
      require(1, "BINPERSID");
      op_persistent(pop());
      break;
    default:
      step_text(opcode);
      break;
  }
  return true;
}

void Machine::step_text(unsigned char opcode) {
  switch (opcode) {
    case 'p':
      put(take_index());
      break;
    case 'g':
      get(take_index());
      break;
    case 'I':
      op_int();
      break;
    case 'L':
      op_long();
      break;
    case 'F':
      op_float();
      break;
    case 'S':
      op_string();
      break;
    case 'V':
      op_unicode();
      break;
    case 'P':
      op_persistent(tree_.string(take_line()));
      break;
    default:
      refuse_opcode(opcode);
  }
}

void Machine::refuse_opcode(unsigned char opcode) const {
  const std::string place = location();
  if (opcode >= 0x82 && opcode <= 0x84) {
    fail(Errc::forbidden_opcode, place, "EXT{}: a code of a registry that only the writer's program has",
         1 << (opcode - 0x82));
  }
  if (opcode == 0x97 || opcode == 0x98) {
    fail(Errc::forbidden_opcode, place, "a buffer that lies outside the pickle");
  }
  fail(Errc::bad_pickle, place, "unknown opcode {:#04x}", opcode);
}

void Machine::op_int() {
  const std::string_view line = take_line();
  if (line == "00" || line == "01") return push(Ref::boolean(line == "01"));
  if (!is_decimal(line)) fail(Errc::bad_pickle, location(), "INT {} is no integer", quoted(line));
  push(tree_.decimal_integer(line));
}

void Machine::op_long() {
  std::string_view line = take_line();
  if (line.ends_with('L')) line.remove_suffix(1);
  if (!is_decimal(line)) fail(Errc::bad_pickle, location(), "LONG {} is no integer", quoted(line));
  push(tree_.decimal_integer(line));
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

Ref Machine::execute() {
  for (;;) {
    if (p_ == limit_) {
      limit_ = end_;
      in_frame_ = false;
      op_ = p_;
      if (p_ == end_)
        fail(Errc::truncated, location(), "the pickle ends after {} bytes without STOP (cut short?)",
             position());
    }
    op_ = p_;
    ++ops_;
    if (!step(static_cast<unsigned char>(*p_++))) break;
  }
  require(1, "STOP");
  if (!marks_.empty()) fail(Errc::bad_pickle, location(), "STOP while {} marks are open", marks_.size());
  if (in_frame_ && p_ != limit_)
    fail(Errc::frame_violation, location(), "STOP {} bytes before its frame ends", limit_ - p_);
  return stack_.back();
}

Ref Machine::run() {
  const Ref root = execute();
  objects_.check_graph(root);
  return root;
}

}  // namespace ballast::torch
