// SPDX-License-Identifier: Apache-2.0
// What the globals and calls of a pickle mean: tensors over storages, containers, numbers, and inert objects
// for everything nobody knows. One Objects serves one file: the pickles in it share a tree and a budget. What
// a scan is told of them is the Ledger's; tensors are Views of storages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "formats/torch/ledger.h"
#include "formats/torch/python2_names.h"
#include "formats/torch/views.h"

namespace ballast::torch {

/// How a pickle asks for an object.
enum class How : std::uint8_t {
  call,  ///< callee(*args)
  make,  ///< callee.__new__(callee, *args): no __init__, so most containers stay empty
};

struct Call {
  ValueNode* callee;
  std::span<const Ref> args;
  Ref tuple;   // the same arguments as a node
  Ref kwargs;  // dict, or None
  How how = How::call;
};

class Objects : public Reading {
 public:
  using Reading::Reading;

  // For the machine.
  /// `is_python2`: of a stream of protocol 0 to 2.
  Ref global(GlobalName written, bool is_python2);
  Ref call(Ref callee, Ref args, Ref kwargs, How how);
  /// Python would take it for a type. Strangers are taken for one.
  [[nodiscard]] static bool is_class(Ref callee) noexcept;
  void build(Ref target, Ref state);
  void append(Ref target, std::span<const Ref> elements);
  void add(Ref target, std::span<const Ref> elements);
  void set_items(Ref target, std::span<const Ref> pairs);
  /// Refuses what is nested too deep, and makes the keys of every dict unique as Python would have.
  void check_graph(Ref root);
  /// At the end of a pickle: dicts of hooks that were filled meanwhile.
  void check_hooks();

  // For containers.
  /// Calls that ask for a whole stream inside the stream: set by the container reader.
  std::function<Ref(std::shared_ptr<const Storage> bytes, const std::string& where)> load_stream;
  /// Work that needs the bytes of storages, done when all of them are known.
  void finish();

  [[nodiscard]] Ledger& ledger() noexcept { return ledger_; }

  [[nodiscard]] Views& views() noexcept { return views_; }

  // For calls.
  [[nodiscard]] static Ref argument(const Call& call, std::size_t index) noexcept {
    return index < call.args.size() ? call.args[index] : Ref::none();
  }

  /// Python would raise TypeError.
  void need_arguments(const Call& call, std::size_t least, std::size_t most) const;
  /// An inert object of the callee's class; with a role when its state is yet to come, or stands for
  /// something.
  Ref inert(const Call& call, Role role = Role::unknown);

  /// The call is not what the callee's role is: the verdict is unknown.
  void note_misfit(const Call& call) { ledger_.note_misfit(call.callee->type); }

  Ref misfit(const Call& call) {
    note_misfit(call);
    return inert(call);
  }

  /// The call copies the numbers it is given: where they come later, PyTorch copies what lies in memory.
  void note_copied(const Call& call) {
    if (storages_come_last) note_misfit(call);
  }

  /// The device that numbers are put on: of one that keeps none, the verdict is unknown.
  void note_device(std::string_view device);
  /// A tensor keeps the dict of its hooks, and Python calls what is in it: it must be empty, and stay so.
  void expect_no_hooks(TypeId type, Ref hooks);
  /// Attributes that may stand in for a method of `node`: the verdict is unknown.
  void check_attributes(const ValueNode* node, const ValueNode* attributes);
  /// A dict with the same pairs, of its own.
  ValueNode* copy_dict(const ValueNode* dict, TypeId type = 0);

  /// A deque that forgets what is beyond its length.
  void bound(const ValueNode* deque, std::int64_t length) { bounded_[deque] = length; }

  void when_finished(std::function<void()> work) { unfinished_.push_back(std::move(work)); }

 private:
  struct Global {
    Ref value;
    GlobalRow seen;
  };

  Ref call_global(const Call& call);
  Ref call_known(const Call& call, Role role);
  Ref call_member(const Call& call);
  Global make_global(GlobalName written, GlobalName current);
  void build_object(ValueNode* node, Ref state);
  void add_attributes(ValueNode* node, Ref state);
  void need_hashable(Ref key);
  void make_unique(ValueNode* container);
  void check_depth(Ref root);

  Ledger ledger_{*this};
  Views views_{*this};
  NameMap<Global> globals_;
  std::vector<std::function<void()>> unfinished_;
  std::unordered_map<const ValueNode*, std::int64_t> bounded_;
  std::vector<std::pair<const ValueNode*, TypeId>> hooks_;  // empty dicts, and whose
};

/// The constructors, by family. Each gives the value the call stands for.
struct Rebuild {
  static Ref tensor(Objects& objects, const Call& call, Role role);     // rebuild_tensor.cpp
  static Ref quantized(Objects& objects, const Call& call, Role role);  // rebuild_quantized.cpp
  static Ref sparse(Objects& objects, const Call& call, Role role);     // rebuild_sparse.cpp
  static Ref numpy(Objects& objects, const Call& call, Role role);      // rebuild_numpy.cpp
  static Ref python(Objects& objects, const Call& call, Role role);     // rebuild_python.cpp
  static Ref plain(Objects& objects, const Call& call, Role role);      // rebuild_plain.cpp
  // Objects that are empty until their state comes.
  static void build_tensor(Objects& objects, ValueNode* node, Ref state);
  static void build_made_tensor(Objects& objects, ValueNode* node, Ref state);
  static void build_numpy(Objects& objects, ValueNode* node, Ref state);
  static void build_plain(Objects& objects, ValueNode* node, Ref state);
  static Ref device_from_numpy(Objects& objects, const Call& call, Role role);
  /// A tensor node over a Tensor made here.
  static Ref computed(Objects& objects, const Tensor& tensor, TypeId type);

  /// The same numbers, with the strides that `like` has in dimensions of 1: PyTorch keeps them.
  static Tensor with_strides_of_ones(const Tensor& made, const Tensor& like);
  /// The same numbers, one after the other when they are read.
  static Tensor in_usual_order(Objects& objects, const Tensor& tensor);

  static Tensor value_of(Objects& objects, Ref tensor) {
    return objects.tree().tensor_of(*tensor.node()->tensor);
  }
};

/// Python's rules for equal keys and equal elements, in keys.cpp: appends bytes that are the same for two of
/// them exactly when Python takes them for equal.
void append_key(std::string& out, Ref key, const ValueTree& tree, Budget& budget);

}  // namespace ballast::torch
