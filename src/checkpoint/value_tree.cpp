// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/value_tree.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "ballast/detail/name_index.h"
#include "base/checked.h"
#include "base/hash.h"
#include "base/sizes.h"

namespace ballast {
namespace {

constexpr std::size_t kFirstChunk = 256;  // a value made by a program is a tree of its own
constexpr std::size_t kLargestChunk = std::size_t{8} << 20U;
constexpr std::size_t kIndexedFrom = 16;  // pairs; below it a look at each is faster

void free_chunk(std::byte* bytes) {
  std::free(bytes);
}

// The text a key is looked up by: itself, or the decimal of an integer.
class KeyText {
 public:
  explicit KeyText(Ref key) {
    if (key.is_node() && key.node()->kind == NodeKind::link) key = ValueTree::ref(*key.node()->link);
    if (key.is_small()) {
      text_ = {buffer_, static_cast<std::size_t>(
                            std::to_chars(buffer_, buffer_ + sizeof buffer_, key.small()).ptr - buffer_)};
    } else if (key.is_node() && key.node()->kind == NodeKind::string) {
      text_ = std::string_view(key.node()->text, key.node()->size);
    }
  }

  [[nodiscard]] const std::optional<std::string_view>& text() const { return text_; }

 private:
  char buffer_[24] = {};
  std::optional<std::string_view> text_;
};

auto has(const ValueNode* dict, std::string_view key) {
  return [=](std::size_t pair) { return KeyText(dict->refs[pair * 2]).text() == key; };
}

// Equal keys: the later one is found.
const Ref* find_by_looking(const ValueNode* dict, std::string_view key) {
  for (std::size_t i = dict->size; i-- > 0;) {
    if (KeyText(dict->refs[i * 2]).text() == key) return &dict->refs[i * 2 + 1];
  }
  return nullptr;
}

}  // namespace

// Most dicts are searched for a few keys, if at all: looking through one costs less than learning it.
struct ValueTree::DictIndex {
  [[nodiscard]] const Ref* find(const ValueNode* dict, std::string_view key) {
    constexpr std::uint64_t kFewLooks = 4;
    if (looks_ < kFewLooks) {
      ++looks_;
      return find_by_looking(dict, key);
    }
    if (looks_++ == kFewLooks) learn(dict);
    const auto pair = pairs_.find(hash_name(key), has(dict, key));
    return pair ? &dict->refs[*pair * 2 + 1] : nullptr;
  }

 private:
  void learn(const ValueNode* dict) {
    pairs_.reserve(dict->size);
    for (std::size_t i = 0; i < dict->size; ++i) {
      const KeyText key(dict->refs[i * 2]);
      if (key.text()) pairs_.put(hash_name(*key.text()), i, has(dict, *key.text()));
    }
  }

  std::uint64_t looks_ = 0;
  detail::NameIndex pairs_;
};

ValueTree::ValueTree() : types_{""} {}

ValueTree::~ValueTree() {
  // Trees linked to trees linked to trees: taken apart in a loop, because a chain of destructors would run
  // out of stack.
  std::vector<std::shared_ptr<const ValueTree>> dying;
  const auto take_links = [&dying](ValueTree& tree) {
    for (auto& link : tree.links_) {
      if (link->tree_) dying.push_back(std::move(link->tree_));
    }
    tree.links_.clear();
  };
  take_links(*this);
  while (!dying.empty()) {
    const std::shared_ptr<const ValueTree> tree = std::move(dying.back());
    dying.pop_back();
    if (tree.use_count() == 1) take_links(const_cast<ValueTree&>(*tree));  // ours alone
  }
}

std::byte* ValueTree::allocate_slow(std::size_t size) {
  const std::size_t usual = std::clamp<std::size_t>(footprint_, kFirstChunk, kLargestChunk);
  const bool huge = std::max(size, usual) >= kHugePage;
  const std::size_t alignment = huge ? kHugePage : 64;
  const std::size_t rounded = (std::max(size, usual) + alignment - 1) / alignment * alignment;
  if (budget_) budget_->take(rounded);
  chunks_.emplace_back(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)), &free_chunk);
  if (!chunks_.back()) throw std::bad_alloc();
  // Fresh memory is most of the cost of a large tree, and page faults most of the cost of fresh memory.
  if (huge) madvise(chunks_.back().get(), rounded, MADV_HUGEPAGE);
  footprint_ += rounded;
  std::byte* bytes = chunks_.back().get();
  if (rounded - size > left_) {
    next_ = bytes + size;
    left_ = rounded - size;
  }
  return bytes;
}

Ref ValueTree::integer(std::int64_t value, TypeId type) {
  if (type == 0 && Ref::is_small(value)) return Ref::small(value);
  ValueNode* node = make(NodeKind::integer, type);
  node->integer = value;
  return Ref(node);
}

Ref ValueTree::big_integer(std::string_view bytes) {
  // Bytes that only repeat the sign say nothing.
  while (bytes.size() > 8) {
    const auto last = static_cast<unsigned char>(bytes.back());
    const bool negative = (static_cast<unsigned char>(bytes[bytes.size() - 2]) & 0x80U) != 0;
    if (last != (negative ? 0xFFU : 0U)) break;
    bytes.remove_suffix(1);
  }
  if (bytes.size() <= 8) {
    std::uint64_t bits = 0;
    if (bytes.size() != 0) std::memcpy(&bits, bytes.data(), bytes.size());
    const unsigned unused = bytes.empty() ? 0 : 64 - 8 * static_cast<unsigned>(bytes.size());
    return integer(static_cast<std::int64_t>(bits << unused) >> unused);
  }
  ValueNode* node = make(NodeKind::big_integer);
  node->text = bytes.data();
  node->size = checked_cast<std::uint32_t>(bytes.size(), "integer");
  return Ref(node);
}

Ref ValueTree::decimal_integer(std::string_view digits) {
  std::int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc{})
    return integer(value);
  ValueNode* node = make(NodeKind::big_integer);
  node->flag = true;
  node->text = digits.data();
  node->size = checked_cast<std::uint32_t>(digits.size(), "integer");
  return Ref(node);
}

Ref ValueTree::floating(double value, TypeId type) {
  ValueNode* node = make(NodeKind::floating, type);
  node->floating = value;
  return Ref(node);
}

Ref ValueTree::complex(double real, double imaginary, TypeId type) {
  auto* parts = allocate_array<double>(2);
  parts[0] = real;
  parts[1] = imaginary;
  ValueNode* node = make(NodeKind::complex, type);
  node->complex = parts;
  return Ref(node);
}

Ref ValueTree::string(std::string_view text, TypeId type) {
  ValueNode* node = make(NodeKind::string, type);
  node->text = text.data();
  node->size = checked_cast<std::uint32_t>(text.size(), "text");
  return Ref(node);
}

Ref ValueTree::bytes(std::string_view bytes, TypeId type) {
  ValueNode* node = string(bytes, type).node();
  node->kind = NodeKind::bytes;
  return Ref(node);
}

Ref ValueTree::sequence(NodeKind kind, std::span<const Ref> elements, TypeId type) {
  ValueNode* node = make(kind, type);
  const auto count = static_cast<std::uint32_t>(elements.size());
  node->size = count;
  node->capacity = count;
  node->refs = allocate_array<Ref>(count);
  std::copy(elements.begin(), elements.end(), node->refs);
  return Ref(node);
}

Ref ValueTree::object(TypeId type, Ref args, Ref state) {
  ValueNode* node = make(NodeKind::object, type);
  node->object = new (allocate(sizeof(ObjectRecord)))
      ObjectRecord{.args = args, .kwargs = {}, .state = state, .items = {}, .pairs = {}};
  return Ref(node);
}

Ref ValueTree::tensor(const TensorRecord& record, TypeId type) {
  ++tensors;
  ValueNode* node = make(NodeKind::tensor, type);
  node->tensor = new (allocate(sizeof(TensorRecord))) TensorRecord(record);
  return Ref(node);
}

Ref ValueTree::tensor(const TensorValue& value) {
  const Tensor& tensor = value.tensor;
  if (!tensor.defined()) fail(Errc::invalid_argument, "value", "an undefined tensor is no value");
  TensorRecord record{.dtype = tensor.dtype(),
                      .requires_grad = value.requires_grad,
                      .is_parameter = value.is_parameter,
                      .rank = static_cast<std::uint32_t>(tensor.rank()),
                      .storage = kNoStorage,
                      .location = value.location == "cpu" ? 0 : type_id(value.location),
                      .details = 0,
                      .bit_offset = tensor.bit_offset(),
                      .dims = nullptr};
  if (tensor.has_data()) {
    record.storage = static_cast<std::uint32_t>(storages.size());
    storages.push_back(tensor.storage());
  }
  auto* dims = allocate_array<std::int64_t>(tensor.rank() * 2);
  std::copy(tensor.shape().begin(), tensor.shape().end(), dims);
  std::copy(tensor.strides().begin(), tensor.strides().end(), dims + tensor.rank());
  record.dims = dims;
  if (value.quantization || value.sparse) {
    details.push_back({value.quantization, value.sparse});
    record.details = static_cast<std::uint32_t>(details.size());
  }
  return this->tensor(record);
}

Ref ValueTree::link(const Value& value) {
  if (!value.tree_ || value.tree_.get() == this) return Ref(value.ref_);
  links_.push_back(std::make_unique<Value>(value));
  ValueNode* node = make(NodeKind::link);
  node->link = links_.back().get();
  return Ref(node);
}

void ValueTree::grow(ValueNode* node, std::size_t refs) {
  if (refs <= node->capacity) return;
  if (refs > UINT32_MAX / 2) fail(Errc::too_many, "value", "a container of {} items", refs);
  const auto capacity = std::max<std::size_t>({refs, std::size_t{node->capacity} * 2, 4});
  const std::size_t used = node->kind == NodeKind::dict ? std::size_t{node->size} * 2 : node->size;
  auto* moved = allocate_array<Ref>(capacity);
  if (used != 0) std::memcpy(static_cast<void*>(moved), node->refs, used * sizeof(Ref));
  node->refs = moved;
  node->capacity = static_cast<std::uint32_t>(capacity);
}

void ValueTree::append(ValueNode* list, std::span<const Ref> elements) {
  if (elements.empty()) return;
  grow(list, list->size + elements.size());
  std::memcpy(static_cast<void*>(list->refs + list->size), elements.data(), elements.size_bytes());
  list->size += static_cast<std::uint32_t>(elements.size());
}

void ValueTree::append_pairs(ValueNode* dict, std::span<const Ref> pairs) {
  if (pairs.empty()) return;
  const std::size_t used = std::size_t{dict->size} * 2;
  grow(dict, used + pairs.size());
  std::memcpy(static_cast<void*>(dict->refs + used), pairs.data(), pairs.size_bytes());
  dict->size += static_cast<std::uint32_t>(pairs.size() / 2);
}

void ValueTree::set_attributes(ValueNode* node, Ref attributes) {
  if (budget_) budget_->take(64);  // of the table
  node->has_attributes = true;
  attributes_[node] = attributes;
}

Ref ValueTree::attributes_of(const ValueNode* node) const {
  return node->has_attributes ? attributes_.at(node) : Ref::none();
}

std::string_view ValueTree::store(std::string_view text) {
  if (text.empty()) return {};
  char* copy = allocate_array<char>(text.size());
  std::memcpy(copy, text.data(), text.size());
  return {copy, text.size()};
}

TypeId ValueTree::type_id(std::string_view name) {
  if (const auto known = type_ids_.find(name); known != type_ids_.end()) return known->second;
  if (budget_) budget_->take(128);  // of the tables
  const auto id = static_cast<TypeId>(types_.size());
  types_.push_back(store(name));
  type_ids_.emplace(types_.back(), id);
  return id;
}

const Ref* ValueTree::find(const ValueNode* dict, std::string_view key) const {
  if (dict->size < kIndexedFrom) return find_by_looking(dict, key);
  const std::scoped_lock lock(index_mutex_);
  auto& index = indices_[dict];
  if (!index) index = std::make_unique<DictIndex>();
  return index->find(dict, key);
}

void ValueTree::forget_indices() {
  indices_.clear();
}

Tensor ValueTree::tensor_of(const TensorRecord& record) const {
  if (record.storage == kNoStorage) return {record.dtype, record.shape()};
  return {record.dtype, record.shape(), record.strides(), storages[record.storage], record.bit_offset};
}

Value ValueTree::value(const std::shared_ptr<const ValueTree>& tree, Ref ref) {
  if (!ref.is_node()) return {nullptr, ref.bits()};
  if (ref.node()->kind == NodeKind::link) return *ref.node()->link;
  return {tree, ref.bits()};
}

}  // namespace ballast
