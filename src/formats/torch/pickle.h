// SPDX-License-Identifier: Apache-2.0
// The pickle machine: all opcodes of protocols 0 to 5 over bytes in memory, with the meaning of globals and
// calls left to Objects. It owns no callables; values are nodes of a ValueTree, shared by reference through
// the memo, so cycles are ordinary.
//
//   A pickle is opcodes of one byte, each with its own arguments, that work on a stack, a memo and marks, and
//   end with STOP. Protocols 0 and 1 write text lines, 2 to 5 binary lengths; 4 and 5 cut the stream into
//   FRAMEs that no argument may cross.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/value_tree.h"
#include "formats/torch/storage_id.h"

namespace ballast::torch {

class Objects;
struct StorageInfo;
struct TensorRun;

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{512} << 20U;
inline constexpr std::size_t kMaxDepth = 1000;        // Python's own pickler gives up near this
inline constexpr std::size_t kMaxIntegerBytes = 512;  // printing one takes the square of it

/// What a stream needs besides its bytes.
struct Stream {
  std::string where;       ///< for messages: "net.pt: entry "net/data.pkl""
  std::string entry;       ///< of the zip or tar, for scan reports
  std::uint64_t base = 0;  ///< of the bytes in the file or entry: offsets in messages count from there
  std::function<Ref(Ref id)> persistent =
      {};  ///< what a persistent id stands for; empty: there are none in this stream
  /// The same for a storage's, without the values it is made of; empty: tensors are read opcode by opcode.
  std::function<StorageInfo(const StorageId& id)> storage = {};
};

class Machine {
 public:
  /// `code` must outlive the objects' tree: strings are views of it.
  Machine(Objects& objects, std::span<const std::byte> code, Stream stream);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  /// Runs to STOP and gives the value, checked by Objects::check_graph unless a stream around this one will
  /// be.
  [[nodiscard]] Ref run();

  /// Bytes consumed.
  [[nodiscard]] std::size_t position() const noexcept { return static_cast<std::size_t>(p_ - begin_); }

  /// "net.pt: entry "data.pkl", byte 123, near "fc.weight"": where the machine is.
  [[nodiscard]] std::string location() const;

  [[nodiscard]] std::uint64_t offset() const noexcept {
    return stream_.base + static_cast<std::uint64_t>(op_ - begin_);
  }

  [[nodiscard]] const Stream& stream() const noexcept { return stream_; }

  /// From 1 on, among the streams of a file.
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

 private:
  Ref execute();
  bool step(unsigned char opcode);
  void step_text(unsigned char opcode);
  [[noreturn]] void refuse_opcode(unsigned char opcode) const;

  // Arguments.
  void need(std::uint64_t count) {
    if (count > static_cast<std::uint64_t>(limit_ - p_)) short_read(count);
  }

  [[noreturn]] void short_read(std::uint64_t count) const;

  template <class T>
  T take() {
    need(sizeof(T));
    T value;
    std::memcpy(&value, p_, sizeof value);
    p_ += sizeof value;
    return value;
  }

  std::string_view take_text(std::uint64_t size) {
    need(size);
    const std::string_view text(p_, static_cast<std::size_t>(size));
    p_ += size;
    return text;
  }

  std::string_view take_line();
  std::uint64_t take_index();
  void enter_frame(std::uint64_t size);

  // Stack.
  [[nodiscard]] std::size_t above_mark() const {
    return stack_.size() - (marks_.empty() ? 0 : marks_.back());
  }

  void require(std::size_t count, const char* what) const {
    if (above_mark() < count) underflow(what);
  }

  [[noreturn]] void underflow(const char* what) const;

  void push(Ref value) {
    if (stack_.size() == stack_.capacity()) grow(stack_, stack_.size() + 1);
    stack_.push_back(value);
  }

  /// Room for `count` items, out of the budget.
  template <class T>
  void grow(std::vector<T>& items, std::size_t count);

  Ref pop() {
    const Ref value = stack_.back();
    stack_.pop_back();
    return value;
  }

  /// Values since the last mark; forget() removes them and the mark.
  std::span<const Ref> since_mark(std::size_t below, const char* what);
  void forget();
  void make_tuple(std::size_t count);
  void put(std::uint64_t index);
  void get(std::uint64_t index);

  // A tensor as torch.save writes it, all at once (tensor_run.h).
  void take_tensor();
  [[nodiscard]] bool understand(const TensorRun& run);
  [[nodiscard]] Ref memoized(std::uint32_t slot) const;
  void make_deferred(std::size_t slot);
  void make_all_deferred();

  // Opcodes of more than a few lines.
  void op_int();
  void op_long();
  void op_float();
  void op_string();
  void op_unicode();
  void push_text(std::string_view text);
  void push_python2_text(std::string_view bytes);
  void op_dict();
  void op_global(std::string_view module, std::string_view name);
  void op_stack_global();
  void op_reduce();
  void op_newobj();
  void op_newobj_ex();
  Ref instantiate(Ref callee, Ref args);
  void push_integer(std::string_view digits);
  void op_obj();
  void op_inst();
  void op_persistent(Ref id);

  Objects& objects_;
  ValueTree& tree_;
  Stream stream_;
  const char* begin_;
  const char* end_;
  const char* p_;
  const char* limit_;  // end of the frame, or of everything
  const char* op_;     // of the opcode at work
  bool in_frame_ = false;
  std::uint64_t ops_ = 0;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;
  std::vector<Ref> memo_;        // of a tensor that was read at once: where its run begins, see is_deferred()
  std::size_t memoized_ = 0;     // slots that hold something: what MEMOIZE counts
  unsigned protocol_ = 0;        // what PROTO said last
  std::uint64_t taken_ = 0;      // of the budget, by the stack, the marks and the memo
  bool reads_runs_ = false;      // tensors may be read at once
  bool makes_deferred_ = false;  // a run is gone through again
  // Of the last run: values that are named again by the next, and what they say of its storage. Before the
  // first they are equal to no value, None included.
  Ref kind_{nullptr};
  Ref storage_class_{nullptr};
  Ref location_{nullptr};
  Ref hooks_{nullptr};
  StorageId storage_;
  std::uint32_t number_;
  Machine* outer_;  // the machine whose call made us read a stream inside its stream
};

/// Bytes of the pickle at the start of `bytes`, found without running it; nullopt when it goes on behind
/// them, or is none.
[[nodiscard]] std::optional<std::size_t> pickle_length(std::span<const std::byte> bytes);

/// A pickle that begins here may be one: the first byte is an opcode that can open one.
[[nodiscard]] bool may_be_pickle(std::span<const std::byte> bytes) noexcept;

}  // namespace ballast::torch
