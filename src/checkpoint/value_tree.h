// SPDX-License-Identifier: Apache-2.0
// The arena behind Values. Nodes never move and are freed all at once with the tree, so nothing recurses and
// a cycle costs nothing. Readers build a tree through this header; once it is handed out as Values it does
// not change any more.
//
// A Ref is eight bytes: an integer of 63 bits, None, True and False lie in it; everything else is a pointer
// to a ValueNode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ballast/value.h"
#include "base/budget.h"
#include "base/hash.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct ValueNode;
class ObjectClasses;

class Ref {
 public:
  constexpr Ref() = default;  // None

  explicit constexpr Ref(std::uint64_t bits) : bits_(bits) {}

  explicit Ref(const ValueNode* node) : bits_(reinterpret_cast<std::uint64_t>(node)) {}

  static constexpr Ref none() { return Ref{}; }

  static constexpr Ref boolean(bool value) { return Ref(value ? kTrue : kFalse); }

  static constexpr bool is_small(std::int64_t value) {
    return value >= -(INT64_C(1) << 62) && value < (INT64_C(1) << 62);
  }

  static constexpr Ref small(std::int64_t value) { return Ref(static_cast<std::uint64_t>(value) << 1U | 1U); }

  [[nodiscard]] constexpr bool is_none() const { return bits_ == kNone; }

  [[nodiscard]] constexpr bool is_bool() const { return bits_ == kTrue || bits_ == kFalse; }

  [[nodiscard]] constexpr bool is_true() const { return bits_ == kTrue; }

  [[nodiscard]] constexpr bool is_small() const { return (bits_ & 1U) != 0; }

  [[nodiscard]] constexpr std::int64_t small() const { return static_cast<std::int64_t>(bits_) >> 1; }

  [[nodiscard]] constexpr bool is_node() const { return (bits_ & 7U) == 0; }

  [[nodiscard]] ValueNode* node() const { return reinterpret_cast<ValueNode*>(bits_); }

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }

  friend constexpr bool operator==(Ref, Ref) = default;

 private:
  static constexpr std::uint64_t kNone = 2;
  static constexpr std::uint64_t kFalse = 10;
  static constexpr std::uint64_t kTrue = 18;
  std::uint64_t bits_ = kNone;
};

/// The public kinds in their order, then what only readers and the tree itself see.
enum class NodeKind : std::uint8_t {
  none,
  boolean,
  integer,
  floating,
  complex,
  string,
  bytes,
  list,
  tuple,
  set,
  dict,
  tensor,
  object,
  big_integer,  // beyond 64 bits: two's complement, little-endian, or decimal digits (flag)
  global,       // a class or function by name; type is the name
  storage,      // a PyTorch storage that is not seen through a tensor; type is its class
  link,         // a value of another tree
};

using TypeId = std::uint32_t;  // 0: Python's plain class for this kind

struct ObjectRecord {
  Ref args;
  Ref kwargs;
  Ref state;
  Ref items;
  Ref pairs;
};

inline constexpr std::uint32_t kNoStorage = 0xFFFFFFFF;

struct TensorRecord {
  DType dtype = DType::f32;
  bool requires_grad = false;
  bool is_parameter = false;
  std::uint32_t rank = 0;
  std::uint32_t storage = kNoStorage;  // into ValueTree::storages; kNoStorage: shape only
  TypeId location = 0;                 // 0: "cpu"
  std::uint32_t details = 0;           // 1 + index into ValueTree::details; 0: none
  std::uint64_t bit_offset = 0;
  const std::int64_t* dims = nullptr;  // rank sizes, then rank strides

  [[nodiscard]] ShapeView shape() const { return {dims, rank}; }

  [[nodiscard]] ShapeView strides() const { return {dims + rank, rank}; }
};

struct ValueNode {
  NodeKind kind;
  std::uint8_t role = 0;            // for readers: what a global means, what an object still has to become
  bool flag = false;                // boolean: its value. big_integer: `text` is decimal digits.
  bool has_attributes : 1 = false;  // in ValueTree::attributes_of
  bool visited : 1 = false;         // for readers: seen by the check of a finished graph
  TypeId type = 0;
  std::uint32_t size = 0;      // bytes, elements, or pairs
  std::uint32_t capacity = 0;  // Refs at `refs`

  union {
    std::int64_t integer;
    double floating;
    const double* complex;  // real, imaginary
    const char* text;       // string, bytes, big_integer
    Ref* refs;              // list, tuple, set: elements; dict: key, value, key, value, …
    ObjectRecord* object;
    TensorRecord* tensor;
    const Value* link;
    std::uint64_t index;  // storage: into a table of the reader's
  };
};

static_assert(sizeof(ValueNode) == 24 && std::is_trivially_destructible_v<ValueNode>);

struct TensorDetails {
  std::optional<Quantization> quantization;
  std::optional<Sparse> sparse;
};

class ValueTree {
 public:
  ValueTree();
  ~ValueTree();
  ValueTree(const ValueTree&) = delete;
  ValueTree& operator=(const ValueTree&) = delete;

  // Building.
  ValueNode* make(NodeKind kind, TypeId type = 0) {
    auto* node = new (allocate(sizeof(ValueNode))) ValueNode{};
    node->kind = kind;
    node->type = type;
    return node;
  }

  Ref integer(std::int64_t value, TypeId type = 0);
  /// Two's complement, little-endian; a small one becomes an ordinary integer. The bytes must outlive the
  /// tree.
  Ref big_integer(std::string_view bytes);
  /// Digits, perhaps after a minus; the caller has looked. They must outlive the tree.
  Ref decimal_integer(std::string_view digits);
  Ref floating(double value, TypeId type = 0);
  Ref complex(double real, double imaginary, TypeId type = 0);
  /// `text` must outlive the tree: use store() when it does not.
  Ref string(std::string_view text, TypeId type = 0);
  Ref bytes(std::string_view bytes, TypeId type = 0);
  Ref sequence(NodeKind kind, std::span<const Ref> elements, TypeId type = 0);
  Ref object(TypeId type, Ref args = {}, Ref state = {});
  Ref tensor(const TensorRecord& record, TypeId type = 0);
  Ref tensor(const TensorValue& value);
  Ref link(const Value& value);
  /// list, set
  void append(ValueNode* list, std::span<const Ref> elements);
  /// dict; `pairs` holds key, value, key, value. Keys are not compared with those already there.
  void append_pairs(ValueNode* dict, std::span<const Ref> pairs);
  void set_attributes(ValueNode* node, Ref attributes);
  /// A copy of the text that lives as long as the tree.
  std::string_view store(std::string_view text);
  TypeId type_id(std::string_view name);
  template <class T>

  requires std::is_trivially_destructible_v<T> T* allocate_array(std::size_t count) {
    return static_cast<T*>(static_cast<void*>(allocate(sizeof(T) * count)));
  }

  /// Kept alive as long as the tree: what string views point into.
  void keep_alive(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

  /// Forgets what find() learned of dicts: a reader's last act, since they may have grown meanwhile.
  void forget_indices();

  /// Bytes of nodes it holds.
  [[nodiscard]] std::uint64_t footprint() const noexcept { return footprint_; }

  /// From now on what it takes is taken from this budget: a reader's guard against files that are all
  /// objects.
  void charge(std::shared_ptr<Budget> budget) noexcept { budget_ = std::move(budget); }

  // Looking.
  [[nodiscard]] std::string_view type_name(TypeId id) const noexcept { return types_[id]; }

  [[nodiscard]] Ref attributes_of(const ValueNode* node) const;
  /// Value of a text key (or the decimal of an integer key) in a dict; nullptr when absent. The last of equal
  /// keys.
  [[nodiscard]] const Ref* find(const ValueNode* dict, std::string_view key) const;
  [[nodiscard]] Tensor tensor_of(const TensorRecord& record) const;
  [[nodiscard]] static Value value(const std::shared_ptr<const ValueTree>& tree, Ref ref);

  [[nodiscard]] static Ref ref(const Value& value) noexcept { return Ref(value.ref_); }

  [[nodiscard]] static const std::shared_ptr<const ValueTree>& tree(const Value& value) noexcept {
    return value.tree_;
  }

  std::vector<std::shared_ptr<const Storage>> storages;
  std::size_t tensors = 0;  // made so far
  std::vector<TensorDetails> details;
  const ObjectClasses* classes = nullptr;  // what its objects mean (object_classes.h); lives for ever

 private:
  struct DictIndex;

  std::byte* allocate(std::size_t size) {
    size = (size + 7U) & ~std::size_t{7};
    if (size > left_) return allocate_slow(size);
    std::byte* bytes = next_;
    next_ += size;
    left_ -= size;
    return bytes;
  }

  std::byte* allocate_slow(std::size_t size);
  void grow(ValueNode* node, std::size_t refs);

  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
  std::uint64_t footprint_ = 0;
  std::shared_ptr<Budget> budget_;
  std::vector<std::unique_ptr<std::byte, void (*)(std::byte*)>> chunks_;
  std::vector<std::string_view> types_;
  NameViewMap<TypeId> type_ids_;
  std::unordered_map<const ValueNode*, Ref> attributes_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::unique_ptr<Value>> links_;
  mutable std::mutex index_mutex_;
  mutable std::unordered_map<const ValueNode*, std::unique_ptr<DictIndex>> indices_;
};

/// Value::at(), with `where` in the message: the file the tree comes from.
[[nodiscard]] Value value_at(const Value& root, std::string_view path, const std::string& where);

}  // namespace ballast

#pragma GCC visibility pop
