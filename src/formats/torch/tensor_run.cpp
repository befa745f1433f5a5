// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tensor_run.h"

#include <cstring>

#include "base/ascii.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle.h"

namespace ballast::torch {
namespace {

constexpr std::ptrdiff_t kLongestRun = 192;  // more than any: nothing below looks for the end
constexpr std::size_t kLongestStorageKey = 32;

class RunReader {
 public:
  RunReader(const char* at, std::uint64_t slot, TensorRun& run) : p_(at), slot_(slot), run_(run) {}

  bool read() {
    const bool fits = is('(') && is('(') && get(run_.kind) && get(run_.storage_class) && key() &&
                      get(run_.location) && number(run_.numel) && is('t') && put() && persistent_id() &&
                      number(run_.offset) && dims(run_.dims.data(), run_.rank) && strides() && flag() &&
                      get(run_.hooks) && is(')') && is('R') && put() && is('t') && put() && *p_ == 'R';
    run_.call = p_;
    run_.opcodes = opcodes_ + 1;
    return fits;
  }

 private:
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, p_, sizeof value);
    p_ += sizeof value;
    return value;
  }

  bool is(char opcode) {
    ++opcodes_;
    return *p_++ == opcode;
  }

  bool get(std::uint32_t& slot) {
    ++opcodes_;
    const char opcode = *p_++;
    slot = opcode == 'h' ? take<std::uint8_t>() : take<std::uint32_t>();
    return opcode == 'h' || opcode == 'j';
  }

  bool put() {
    if (*p_ != 'q' && *p_ != 'r') return true;
    ++opcodes_;
    return (*p_++ == 'q' ? take<std::uint8_t>() : take<std::uint32_t>()) == slot_ + run_.puts++;
  }

  bool key() {
    if (!is('X')) return false;
    const auto size = take<std::uint32_t>();
    if (size > kLongestStorageKey) return false;
    run_.key = {p_, size};
    p_ += size;
    return all_digits(run_.key) && put();
  }

  bool number(std::int64_t& value) {
    ++opcodes_;
    const char opcode = *p_++;
    if (opcode == 'K')
      value = take<std::uint8_t>();
    else if (opcode == 'M')
      value = take<std::uint16_t>();
    else
      value = take<std::int32_t>();
    return opcode == 'K' || opcode == 'M' || (opcode == 'J' && value >= 0);
  }

  // A tuple of numbers: TUPLE1 to TUPLE3, or a mark and TUPLE.
  bool dims(std::int64_t* values, std::size_t& count) {
    if (*p_ == ')') return is(')');
    const bool marked = *p_ == '(' && is('(');
    while (count < TensorRun::kMostDims && (*p_ == 'K' || *p_ == 'M' || *p_ == 'J')) {
      if (!number(values[count++])) return false;
    }
    const bool ends = marked ? is('t') : count >= 1 && count <= 3 && is(static_cast<char>(0x84 + count));
    return ends && put();
  }

  bool strides() {
    std::size_t count = 0;
    return dims(run_.dims.data() + run_.rank, count) && count == run_.rank;
  }

  bool persistent_id() {
    run_.persistent_id = p_;
    return is('Q');
  }

  bool flag() {
    run_.requires_grad = *p_ == '\x88';
    return is(run_.requires_grad ? '\x88' : '\x89');
  }

  const char* p_;
  std::uint64_t slot_;
  std::uint64_t opcodes_ = 0;
  TensorRun& run_;
};

}  // namespace

bool read_tensor_run(const char* at, const char* end, std::uint64_t slot, TensorRun& run) {
  return end - at >= kLongestRun && RunReader(at, slot, run).read();
}

Ref Machine::memoized(std::uint32_t slot) const {
  return slot < memo_.size() && memo_[slot] != Ref(nullptr) && !is_deferred(memo_[slot]) ? memo_[slot]
                                                                                         : Ref::none();
}

// What the opcodes would refuse, or read in another way, is theirs. False leaves everything as it was.
bool Machine::understand(const TensorRun& run) {
  if (memo_.size() + run.puts > ops_ || objects_.keys_are_numbers == true) return false;
  const Ref values[] = {memoized(run.kind), memoized(run.storage_class), memoized(run.location),
                        memoized(run.hooks)};
  if (values[0] != kind_ || values[1] != storage_class_ || values[2] != location_ || values[3] != hooks_) {
    const auto class_role = role_of(values[1]);
    const auto location = as_text(values[2]);
    if (as_text(values[0]) != "storage" || as_kind(values[1], NodeKind::global) == nullptr ||
        (class_role != Role::storage_class && class_role != Role::untyped_storage) || !location ||
        as_kind(values[3], NodeKind::global) == nullptr || role_of(values[3]) != Role::ordered_dict)
      return false;
    op_ = run.persistent_id;
    storage_.dtype = objects_.views().dtype_of_class(values[1]);
    storage_.type = values[1].node()->type;
    storage_.location = *location == "cpu" ? 0 : tree_.type_id(*location);
    kind_ = values[0];
    storage_class_ = values[1];
    location_ = values[2];
    hooks_ = values[3];
  }
  const auto bytes = storage_bytes(storage_.dtype, run.numel);
  if (!bytes) return false;
  storage_.bytes = *bytes;
  storage_.numel = static_cast<std::uint64_t>(run.numel);
  return true;
}

// Behind a GET of _rebuild_tensor_v2. The values in between are needed by nobody but the call, and by whoever
// fetches them from the memo later: nobody does, so that their slots only say where they can be made from.
void Machine::take_tensor() {
  TensorRun run;
  const char* const begin = op_;
  if (!read_tensor_run(p_, limit_, memo_.size(), run) || !understand(run)) return;
  objects_.keys_are_numbers = false;
  storage_.key = run.key;
  op_ = run.persistent_id;
  const StorageInfo info = stream_.storage(storage_);
  op_ = run.call;
  stack_.back() =
      objects_.views().tensor(info, run.offset, {run.dims.data(), 2 * run.rank}, run.requires_grad);
  grow(memo_, memo_.size() + run.puts);
  memo_.resize(memo_.size() + run.puts, deferred(static_cast<std::size_t>(begin - begin_)));
  memoized_ += run.puts;
  ops_ += run.opcodes;
  p_ = run.call + 1;
}

// Goes through the run again, opcode by opcode, up to the call. What it fetches is as it was: no slot was
// ever set twice, or make_all_deferred() would have been first.
void Machine::make_deferred(std::size_t slot) {
  const Ref place = memo_[slot];
  while (slot > 0 && memo_[slot - 1] == place) --slot;
  const char* const was_at = p_;
  const char* const was_op = op_;
  const char* const was_limit = limit_;
  const bool was_reading = reads_runs_;
  p_ = op_ = begin_ + offset_of(place);
  limit_ = end_;
  reads_runs_ = false;
  makes_deferred_ = true;
  const auto next = [this] {
    op_ = p_;
    static_cast<void>(step(static_cast<unsigned char>(*p_++)));
  };
  next();  // the function's name
  TensorRun run;
  static_cast<void>(read_tensor_run(p_, limit_, slot, run));
  while (p_ != run.call) next();
  const Ref args = pop();
  const Ref callee = pop();
  objects_.expect_no_hooks(callee.node()->type, args.node()->refs[5]);
  p_ = was_at;
  op_ = was_op;
  limit_ = was_limit;
  reads_runs_ = was_reading;
  makes_deferred_ = false;
}

void Machine::make_all_deferred() {
  reads_runs_ = false;
  for (std::size_t slot = 0; slot < memo_.size(); ++slot) {
    if (is_deferred(memo_[slot])) make_deferred(slot);
  }
}

}  // namespace ballast::torch
