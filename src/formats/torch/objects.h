// SPDX-License-Identifier: Apache-2.0
// What the globals and calls of a pickle mean: tensors over storages, containers, numbers, and inert objects
// for everything nobody knows. One Objects serves one file: the pickles in it share a tree. Every number is
// checked before it is used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/scan.h"
#include "base/fail.h"
#include "checkpoint/value_tree.h"
#include "formats/torch/dtypes.h"
#include "formats/torch/globals.h"
#include "formats/torch/pickle.h"

namespace ballast::torch {

struct Settings {
  bool inert = false;             ///< read past calls that could run code
  ScanReport* report = nullptr;   ///< gets every global and call
  std::uint64_t input_bytes = 0;  ///< of the whole file: what expansion is measured against
};

/// A PyTorch storage as a persistent id describes it.
struct StorageInfo {
  std::optional<DType> dtype;  // none: untyped, counted in bytes
  TypeId location = 0;
  std::uint64_t numel = 0;
  std::uint64_t offset = 0;  // in elements: old files have storages that are windows of others
  std::uint32_t index = 0;   // into ValueTree::storages
  bool big_endian = false;
};

struct Call {
  Node* callee;
  std::span<const Ref> args;
  Ref tuple;   // the same arguments as a node
  Ref kwargs;  // dict, or None
};

/// Sizes, strides and offset of a view, checked against each other but not yet against a storage.
struct ViewArguments {
  std::int64_t offset = 0;
  std::span<const Ref> sizes;
  std::span<const Ref> strides;
};

class Objects {
 public:
  Objects(std::shared_ptr<ValueTree> tree, Settings settings);

  // For the machine.
  Ref global(std::string_view module, std::string_view name);
  /// `is_new`: made as an object of a class, not called as a function.
  Ref call(Ref callee, Ref args, Ref kwargs, bool is_new);
  void build(Ref target, Ref state);
  void append(Ref target, std::span<const Ref> elements);
  void add(Ref target, std::span<const Ref> elements);
  void set_items(Ref target, std::span<const Ref> pairs);
  /// Refuses what is nested too deep, and makes the keys of every dict unique as Python would have.
  void check_graph(Ref root);

  // For containers.
  /// The node of a storage; `info.index` is one of tree().storages.
  Ref storage(const StorageInfo& info, TypeId type);

  [[nodiscard]] const StorageInfo& storage_info(Ref storage) const {
    return storages_[storage.node()->index];
  }

  /// dtype (none: untyped) of a storage or tensor class; refuses what is none.
  std::optional<DType> dtype_of_class(Ref global);
  /// A checked view; `storage` must be one.
  Ref tensor(Ref storage, const ViewArguments& view, std::optional<DType> dtype, bool requires_grad);
  /// Calls that ask for a whole stream inside the stream: set by the container reader.
  std::function<Ref(std::shared_ptr<const Storage> bytes, const std::string& where)> load_stream;
  /// Work that needs the bytes of storages, done when all of them are known.
  void finish();
  /// A pickle of so many bytes is about to be run: what it may make grows with it.
  void allow(std::uint64_t pickle_bytes);
  /// Bytes copied out of a pickle, which a call may ask for again and again: Errc::expansion_limit beyond
  /// what the pickles could honestly hold.
  void spend(std::uint64_t bytes);

  // For everybody.
  [[nodiscard]] ValueTree& tree() noexcept { return *tree_; }

  [[nodiscard]] const std::shared_ptr<ValueTree>& shared_tree() const noexcept { return tree_; }

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  [[nodiscard]] const std::set<std::string, std::less<>>& unknown_names() const noexcept { return unknown_; }

  /// Throws with the place the machine is at.
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, location(), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::string location() const;
  Machine* machine = nullptr;  ///< at work now

  // Operands. `what` names the operand in the refusal.
  [[nodiscard]] static std::optional<std::int64_t> as_int(Ref value) noexcept;
  [[nodiscard]] std::int64_t need_int(Ref value, const char* what) const;
  [[nodiscard]] static std::optional<std::string_view> as_text(Ref value) noexcept;
  [[nodiscard]] std::string_view need_text(Ref value, const char* what) const;
  /// bytes, or a Python 2 string.
  [[nodiscard]] std::string_view need_bytes(Ref value, const char* what) const;
  [[nodiscard]] std::span<const Ref> need_sequence(Ref value, const char* what) const;
  [[nodiscard]] static Node* as_kind(Ref value, NodeKind kind) noexcept;
  /// "a str", "a mynet.Block object": for refusals.
  [[nodiscard]] std::string describe(Ref value) const;

  [[nodiscard]] static Ref argument(const Call& call, std::size_t index) noexcept {
    return index < call.args.size() ? call.args[index] : Ref::none();
  }

  void need_arguments(const Call& call, std::size_t count) const;
  /// An inert object of the callee's class.
  Ref inert(const Call& call);

 private:
  friend struct Rebuild;  // the constructors themselves: rebuild_*.cpp

  Ref call_known(const Call& call, Role role);
  Ref call_member(const Node* member, Ref args, bool is_new);
  void forbid(const std::string& name) const;
  void note_global(const std::string& name, Verdict verdict);
  void note_call(const std::string& name, Verdict verdict);
  void build_object(Node* node, Ref state);
  void need_hashable(Ref key) const;
  std::uint32_t swapped_storage(std::uint32_t index, DType dtype);
  [[nodiscard]] std::uint64_t expansion_limit() const;

  std::shared_ptr<ValueTree> tree_;
  Settings settings_;

  struct Global {
    Ref value;
    Verdict verdict;
  };

  std::unordered_map<std::string, Global> globals_;
  std::set<std::string, std::less<>> unknown_;
  std::vector<StorageInfo> storages_;
  std::unordered_map<std::uint64_t, std::uint32_t> swapped_;  // storage index and unit → index
  std::vector<std::function<void()>> unfinished_;
  std::uint64_t pickle_bytes_ = 0;
  std::uint64_t spent_ = 0;
  std::unordered_map<std::string, std::size_t> reported_globals_;
  std::unordered_map<std::string, std::size_t> reported_calls_;
};

/// The constructors, by family. Each gives the value the call stands for.
struct Rebuild {
  static Ref tensor(Objects& objects, const Call& call, Role role);  // rebuild_tensor.cpp
  static Ref quantized(Objects& objects, const Call& call);          // rebuild_tensor.cpp
  static Ref sparse(Objects& objects, const Call& call, Role role);  // rebuild_sparse.cpp
  static Ref numpy(Objects& objects, const Call& call, Role role);   // rebuild_numpy.cpp
  static Ref python(Objects& objects, const Call& call, Role role);  // rebuild_python.cpp
  static Ref plain(Objects& objects, const Call& call, Role role);   // rebuild_plain.cpp
  // Objects that are empty until their state comes.
  static void build_tensor(Objects& objects, Node* node, Ref state);
  static void build_numpy(Objects& objects, Node* node, Ref state);
  static void build_plain(Objects& objects, Node* node, Ref state);
  static Ref device_from_numpy(Objects& objects, const Call& call);
  /// A tensor node over a Tensor made here.
  static Ref computed(Objects& objects, const Tensor& tensor, TypeId type);

  static Tensor value_of(Objects& objects, Ref tensor) {
    return objects.tree_->tensor_of(*tensor.node()->tensor);
  }

  static std::vector<std::function<void()>>& unfinished(Objects& objects) { return objects.unfinished_; }

  static std::uint64_t expansion_limit(const Objects& objects) { return objects.expansion_limit(); }

  static void forbid(const Objects& objects, const std::string& name) { objects.forbid(name); }
};

}  // namespace ballast::torch
