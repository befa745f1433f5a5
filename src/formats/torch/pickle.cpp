// SPDX-License-Identifier: Apache-2.0
// The opcodes. Numbers and names of them are those of Python's pickletools.
#include "formats/torch/pickle.h"

#include <algorithm>
#include <bit>

#include "ballast/error.h"
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
      reads_runs_(stream_.storage && objects.settings().report == nullptr),
      number_(++objects.streams),
      outer_(objects.machine) {
  objects_.machine = this;
  grow(stack_, 256);
  grow(memo_, std::min<std::size_t>(code.size() / 8, std::size_t{1} << 20U));
}

Machine::~Machine() {
  objects_.machine = outer_;
  objects_.budget().give_back(taken_);
}

template <class T>
void Machine::grow(std::vector<T>& items, std::size_t count) {
  if (count <= items.capacity()) return;
  const std::size_t room = std::max(count, items.capacity() * 2);
  const std::uint64_t old = items.capacity() * sizeof(T);
  objects_.budget().take(room * sizeof(T));
  taken_ += room * sizeof(T);
  items.reserve(room);
  objects_.budget().give_back(old);
  taken_ -= old;
}

template void Machine::grow(std::vector<Ref>& items, std::size_t count);

// The last text below what is being worked on is nearly always the key a tensor will get.
std::string Machine::location() const {
  std::string text = fmt::format("{}, byte {}", stream_.where, offset());
  for (std::size_t i = stack_.size(); i-- > 0 && i + 64 > stack_.size();) {
    if (const auto key = as_text(stack_[i]); key && *key != "storage" && *key != "cpu")
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

bool Machine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const auto version = take<std::uint8_t>(); version > 5)
        fail(Errc::bad_pickle, location(), "protocol {}", version);
      else
        protocol_ = version;
      break;
    case 0x95:
      enter_frame(take<std::uint64_t>());
      break;
    case '.':
      return false;
    // Stack and memo
    case '(':
      if (marks_.size() == marks_.capacity()) grow(marks_, marks_.size() + 1);
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
      put(memoized_);
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
      const std::string_view bytes = take_text(static_cast<std::uint64_t>(size));
      if (bytes.size() > kMaxIntegerBytes)
        fail(Errc::bad_pickle, location(), "an integer of {} bytes, {} are the most", size, kMaxIntegerBytes);
      push(tree_.big_integer(bytes));
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
      ValueNode* set = tree_.make(NodeKind::set);
      objects_.add(Ref(set), since_mark(0, "FROZENSET"));
      set->type = tree_.type_id("frozenset");
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
      op_reduce();
      break;
    case 0x81:
      op_newobj();
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
    case 'P': {
      const std::string_view id = take_line();
      if (!is_ascii(id))
        fail(Errc::bad_pickle, location(), "a persistent id {} that is not ASCII", quoted(id));
      op_persistent(tree_.string(id));
      break;
    }
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
  if (outer_ != nullptr) return root;  // what is inside may still grow
  objects_.check_hooks();
  objects_.check_graph(root);
  return root;
}

}  // namespace ballast::torch
