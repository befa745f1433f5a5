// SPDX-License-Identifier: Apache-2.0
// What the globals and calls of a pickle mean: tensors over storages, containers, numbers, and inert objects
// for everything nobody knows. One Objects serves one file: the pickles in it share a tree and a budget.
// Every number is checked before it is used.
#pragma once

#include <algorithm>
#include <array>
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
#include "base/budget.h"
#include "base/fail.h"
#include "base/hash.h"
#include "checkpoint/value_tree.h"
#include "formats/torch/dtypes.h"
#include "formats/torch/pickle.h"
#include "formats/torch/python2_names.h"
#include "formats/torch/roles.h"

namespace ballast::torch {

struct Settings {
  bool inert = false;             ///< read past calls that could run code
  ScanReport* report = nullptr;   ///< gets every global and call
  std::uint64_t input_bytes = 0;  ///< of the whole file: what expansion is measured against
  double expansion = 16;          ///< how many times as much its tensors may show
  std::string where = "pickle";   ///< the file, for refusals
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

/// Sizes, strides and offset of a view, checked against each other but not yet against a storage.
struct ViewArguments {
  std::int64_t offset = 0;
  std::span<const Ref> sizes;
  std::span<const Ref> strides;
};

class Objects {
 public:
  Objects(std::shared_ptr<ValueTree> tree, Settings settings);
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;
  ~Objects();

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

  // For everybody.
  [[nodiscard]] ValueTree& tree() noexcept { return *tree_; }

  [[nodiscard]] const std::shared_ptr<ValueTree>& shared_tree() const noexcept { return tree_; }

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  [[nodiscard]] Budget& budget() noexcept { return *budget_; }

  /// Tensors that show so many bytes more.
  void declare(std::uint64_t bytes) {
    declared_ += std::min(bytes, UINT64_MAX - declared_);
    check_expansion(declared_);
  }

  /// Errc::expanded_view when so many bytes are too many for a file of this size.
  void check_expansion(std::uint64_t shown) const;

  [[nodiscard]] const std::set<std::string, std::less<>>& unknown_names() const noexcept { return unknown_; }

  /// For a report, where there is one.
  void find(Severity severity, Errc code, std::string what, std::uint64_t offset, std::string_view entry);

  /// Throws with the place the machine is at.
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, location(), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::string location() const;
  Machine* machine = nullptr;                 ///< at work now
  std::optional<bool> keys_are_numbers = {};  ///< those of storages: all of a file are of one kind
  std::uint32_t streams = 0;                  ///< that were begun

  // Operands. `what` names the operand in the refusal.
  [[nodiscard]] static std::optional<std::int64_t> as_int(Ref value) noexcept;
  [[nodiscard]] std::int64_t need_int(Ref value, const char* what) const;
  /// A str; constants of PyTorch and the like, which are kept as text, are none.
  [[nodiscard]] static std::optional<std::string_view> as_text(Ref value) noexcept;
  [[nodiscard]] std::string_view need_text(Ref value, const char* what) const;
  /// "torch.float32" of a dtype, layout, …: `role` says which.
  [[nodiscard]] static std::optional<std::string_view> as_constant(Ref value, Role role) noexcept;
  /// bytes, or a Python 2 string.
  [[nodiscard]] std::string_view need_bytes(Ref value, const char* what) const;
  [[nodiscard]] std::span<const Ref> need_sequence(Ref value, const char* what) const;
  [[nodiscard]] static ValueNode* as_kind(Ref value, NodeKind kind) noexcept;
  /// A dict; a namespace, which is kept as one, is none.
  [[nodiscard]] static ValueNode* as_dict(Ref value) noexcept;
  [[nodiscard]] static Role role_of(Ref value) noexcept;
  /// The value of a text key, as it is now; nullptr when absent.
  [[nodiscard]] const Ref* find_now(const ValueNode* dict, std::string_view key);
  /// "a str", "a mynet.Block object": for refusals.
  [[nodiscard]] std::string describe(Ref value) const;

  [[nodiscard]] static Ref argument(const Call& call, std::size_t index) noexcept {
    return index < call.args.size() ? call.args[index] : Ref::none();
  }

  /// The keys of `kwargs`, a dict, are text.
  void need_keywords(Ref kwargs) const;
  /// Python would raise TypeError.
  void need_arguments(const Call& call, std::size_t least, std::size_t most) const;
  /// An inert object of the callee's class.
  Ref inert(const Call& call);
  /// The call is not what the callee's role is: the verdict is unknown.
  void note_misfit(const Call& call) { note_misfit(call.callee->type); }

  void note_misfit(TypeId type);
  /// A tensor keeps the dict of its hooks, and Python calls what is in it: it must be empty, and stay so.
  void expect_no_hooks(TypeId type, Ref hooks);
  /// At the end of a pickle: those that were filled meanwhile.
  void check_hooks();

  Ref misfit(const Call& call) {
    note_misfit(call);
    return inert(call);
  }

  /// A dict with the same pairs, of its own.
  ValueNode* copy_dict(const ValueNode* dict, TypeId type = 0);

  /// A deque that forgets what is beyond its length.
  void bound(const ValueNode* deque, std::int64_t length) { bounded_[deque] = length; }

 private:
  friend struct Rebuild;  // the constructors themselves: rebuild_*.cpp

  struct Global {
    Ref value;
    Verdict verdict = Verdict::unknown;
    std::uint32_t stream = 0;  // in whose rows it is
    std::size_t row = 0;
  };

  Ref call_global(const Call& call);
  Ref call_known(const Call& call, Role role);
  Ref call_member(const Call& call);
  Global make_global(GlobalName written, GlobalName current);
  void forbid(const std::string& name);
  void note_global(Global& global, std::string_view name);
  void note_call(TypeId type, Verdict verdict);
  void build_object(ValueNode* node, Ref state);
  void add_attributes(ValueNode* node, Ref state);
  void check_attributes(const ValueNode* node, const ValueNode* attributes);
  void need_hashable(Ref key);
  void make_unique(ValueNode* container);
  void check_depth(Ref root);
  std::uint32_t swapped_storage(std::uint32_t index, DType dtype);

  std::shared_ptr<ValueTree> tree_;
  Settings settings_;
  std::shared_ptr<Budget> budget_;
  NameMap<Global> globals_;
  std::set<std::string, std::less<>> unknown_;
  std::vector<StorageInfo> storages_;
  std::unordered_map<std::uint64_t, std::uint32_t> swapped_;  // storage index and unit → index
  std::vector<std::function<void()>> unfinished_;
  std::unordered_map<const ValueNode*, std::int64_t> bounded_;
  std::vector<std::pair<const ValueNode*, TypeId>> hooks_;  // empty dicts, and whose
  std::uint64_t declared_ = 0;
  std::array<std::size_t, 3> found_ = {};                  // by severity
  std::unordered_map<std::uint64_t, std::size_t> called_;  // stream and type → row
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
  static void build_tensor(Objects& objects, ValueNode* node, Ref state);
  static void build_made_tensor(Objects& objects, ValueNode* node, Ref state);
  static void build_numpy(Objects& objects, ValueNode* node, Ref state);
  static void build_plain(Objects& objects, ValueNode* node, Ref state);
  static Ref device_from_numpy(Objects& objects, const Call& call);
  /// A tensor node over a Tensor made here.
  static Ref computed(Objects& objects, const Tensor& tensor, TypeId type);

  static Tensor value_of(Objects& objects, Ref tensor) {
    return objects.tree_->tensor_of(*tensor.node()->tensor);
  }

  static std::vector<std::function<void()>>& unfinished(Objects& objects) { return objects.unfinished_; }

  static void forbid(Objects& objects, const std::string& name) { objects.forbid(name); }
};

inline constexpr std::size_t kMaxRank = 64;  ///< PyTorch's own limit

/// Elements of these sizes, none of them negative; nullopt when their number, their strides or their bytes do
/// not fit into 64 bits, even if one of the sizes is 0.
[[nodiscard]] std::optional<std::int64_t> try_count(ShapeView sizes, std::uint64_t item);
/// "cuda:0" of text or a torch.device; nullopt for what is no device's name.
[[nodiscard]] std::optional<std::string_view> device_text(Ref value) noexcept;
[[nodiscard]] bool is_device_name(std::string_view text) noexcept;

/// Python's rules for equal keys and equal elements, in keys.cpp: appends bytes that are the same for two of
/// them exactly when Python takes them for equal.
void append_key(std::string& out, Ref key, const ValueTree& tree, Budget& budget);

}  // namespace ballast::torch
