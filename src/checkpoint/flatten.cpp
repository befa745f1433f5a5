// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/flatten.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "ballast/error.h"
#include "base/fail.h"
#include "checkpoint/object_classes.h"
#include "checkpoint/value_tree.h"
#include "tensor/describe.h"

namespace ballast {
namespace {

constexpr std::uint64_t kVisits = 250'000;  // and a few for every node there is
constexpr std::size_t kLongestName = 65'536;
constexpr std::size_t kLongestKey = 1'000;      // of what is no text, printed
constexpr std::uint64_t kEntryFootprint = 256;  // with what a command keeps of each: a row, a hash, a range
constexpr std::uint64_t kNameCopies = 3;  // here, in a listing or a header, and in a buffer on its way out
// Where one object stands in many places, the file holds less than is made of it. Then a name costs what any
// command may keep of it, and all copies of its text: rows, tables, trees, headers. So does what of any name
// is longer than usual: it may be that of an object above, said again for everything below.
constexpr std::uint64_t kSharedFootprint = 576;
constexpr std::uint64_t kAllCopies = 8;
constexpr std::size_t kUsualName = 64;

using Take = ObjectPart::Take;

struct Frame {
  const ValueNode* node = nullptr;
  std::size_t path = 0;  // length of its name
  ObjectParts parts = {};
  std::size_t part = 0;
  std::size_t next = 0;
};

class Flattener {
 public:
  Flattener(std::shared_ptr<const ValueTree> tree, const ObjectClasses* classes, Checkpoint& out,
            const Spend& spend)
      : shared_tree_(std::move(tree)),
        tree_(*shared_tree_),
        classes_(classes),
        out_(out),
        spend_(spend),
        budget_(kVisits + tree_.footprint() / 8) {}

  void run(Ref root) {
    visit(root, {}, 0);
    while (!frames_.empty()) step();
  }

  [[nodiscard]] const std::string& model_class() const noexcept { return model_; }

 private:
  void step();
  void visit(Ref value, std::string_view label, std::size_t above);
  void enter(const ValueNode* node);
  void add_object_parts(Frame& frame, const ValueNode* node);
  void count(std::uint64_t steps);
  void extend_path(std::size_t above, std::string_view label);
  [[nodiscard]] bool is_taken(const ObjectPart& part, std::string_view label, Ref value);
  void emit(const TensorRecord& record, std::string_view label, std::size_t above);

  std::shared_ptr<const ValueTree> shared_tree_;
  const ValueTree& tree_;
  const ObjectClasses* classes_;
  Checkpoint& out_;
  const Spend& spend_;
  std::vector<Frame> frames_;
  std::unordered_set<const ValueNode*> above_;
  std::string path_;
  std::string label_;
  std::string model_;  // class of the first whole model met
  std::uint64_t visits_ = 0;
  std::size_t named_ = 0;
  std::uint64_t budget_;
};

// Bytes of a text as it is shown, or written as JSON, at the most: "\\u0001", "\\u{202e}".
std::uint64_t written_bytes(std::string_view text) {
  std::uint64_t bytes = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
    bytes += is_plain ? 1 : byte >= 0x80 ? 3 : 6;
  }
  return bytes;
}

std::uint64_t room_for(std::string_view name, bool is_shared) {
  const std::string_view usual = name.substr(0, kUsualName);
  const std::uint64_t room = is_shared ? kSharedFootprint + written_bytes(usual) * kNameCopies
                                       : kEntryFootprint + usual.size() * kNameCopies;
  return room + written_bytes(name.substr(usual.size())) * kAllCopies;
}

bool in_set(const ValueNode* names, std::string_view name) {
  for (std::uint32_t i = 0; i < names->size; ++i) {
    const ValueNode* text = as_node(names->refs[i], NodeKind::string);
    if (text != nullptr && std::string_view(text->text, text->size) == name) return true;
  }
  return false;
}

void Flattener::count(std::uint64_t steps) {
  visits_ += steps;
  if (visits_ > budget_) {
    fail(Errc::expansion_limit, display(out_.path),
         "its objects are shared so often that naming its tensors takes more than {} steps", budget_);
  }
}

void Flattener::extend_path(std::size_t above, std::string_view label) {
  path_.resize(above);
  if (!frames_.empty() && above != 0) path_ += '.';
  if (path_.size() + label.size() > kLongestName)
    fail(Errc::too_many, display(out_.path), "a name of more than {} characters", kLongestName);
  path_ += label;
}

bool Flattener::is_taken(const ObjectPart& part, std::string_view label, Ref value) {
  if (part.except != nullptr) count(part.except->size);
  if (part.names != nullptr) count(part.names->size());
  if (part.except != nullptr && in_set(part.except, label)) return false;
  switch (part.take) {
    case Take::all:
      return true;
    case Take::present:
      return !value.is_none();
    case Take::named:
      return std::find(part.names->begin(), part.names->end(), label) != part.names->end();
    case Take::tensors:
      return as_node(value, NodeKind::tensor) != nullptr;
    case Take::objects: {
      const ValueNode* object = as_node(value, NodeKind::object);
      return object != nullptr && tree_.type_name(object->type).starts_with(part.prefix);
    }
  }
  return true;
}

void Flattener::step() {
  Frame& frame = frames_.back();
  if (frame.part == frame.parts.size()) {
    above_.erase(frame.node);
    frames_.pop_back();
    return;
  }
  const ObjectPart& part = frame.parts[frame.part];
  if (frame.next == part.entries->size) {
    ++frame.part;
    frame.next = 0;
    return;
  }
  const std::size_t index = frame.next++;
  const std::size_t above = frame.path;
  if (part.entries->kind != NodeKind::dict) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, index).ptr;
    return visit(part.entries->refs[index], {digits, static_cast<std::size_t>(end - digits)}, above);
  }
  const Ref key = part.entries->refs[index * 2];
  const Ref value = part.entries->refs[index * 2 + 1];
  std::string_view label;
  if (const ValueNode* text = as_node(key, NodeKind::string)) {
    label = {text->text, text->size};
  } else {
    label_ = key_name(ValueTree::value(shared_tree_, key));
    label = label_;
  }
  if (part.take == Take::all && part.except == nullptr) return visit(value, label, above);
  if (is_taken(part, label, value)) visit(value, label, above);
}

void Flattener::visit(Ref value, std::string_view label, std::size_t above) {
  count(1 + label.size() / 64);
  if (!value.is_node()) return;
  const ValueNode* node = value.node();
  switch (node->kind) {
    case NodeKind::tensor:
      return emit(*node->tensor, label, above);
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::dict:
      if (node->size == 0 && !node->has_attributes) return;
      break;
    case NodeKind::object:
      break;
    case NodeKind::link:
      fail(Errc::unsupported, display(out_.path),
           "a tree made by a program has no tensors by name; save the tree itself");
    default:
      return;
  }
  if (!above_.insert(node).second) return;  // a cycle
  extend_path(above, label);
  enter(node);
}

void Flattener::enter(const ValueNode* node) {
  Frame frame{.node = node, .path = path_.size()};
  if (node->kind == NodeKind::object)
    add_object_parts(frame, node);
  else
    frame.parts.add({.entries = node});
  // Attributes of subclasses; Python's own containers have none worth a name.
  if (node->kind != NodeKind::object && node->has_attributes &&
      !tree_.type_name(node->type).starts_with("collections.")) {
    frame.parts.add({.entries = as_node(tree_.attributes_of(node), NodeKind::dict)});
  }
  frames_.push_back(frame);
}

void Flattener::add_object_parts(Frame& frame, const ValueNode* node) {
  if (classes_ != nullptr && classes_->parts_of(tree_, *node, frame.parts)) {
    if (frame.parts.is_model && model_.empty()) model_ = tree_.type_name(node->type);
    if (!frame.parts.left_out.empty())
      out_.notes.push_back(fmt::format("{} is {}, which is left out", quoted(path_), frame.parts.left_out));
    return;
  }
  const ObjectRecord& object = *node->object;
  frame.parts.add({.entries = as_node(object.args, NodeKind::tuple)});
  frame.parts.add({.entries = as_node(object.pairs, NodeKind::dict)});
  frame.parts.add({.entries = as_node(object.items, NodeKind::list)});
  frame.parts.add({.entries = as_node(object.state, NodeKind::dict)});
  const ValueNode* both = as_node(object.state, NodeKind::tuple);
  if (both == nullptr) return;
  if (both->size == 2) {  // (attributes, slots)
    const ValueNode* slots = as_node(both->refs[1], NodeKind::dict);
    if (slots != nullptr || both->refs[1].is_none()) {
      frame.parts.add({.entries = as_node(both->refs[0], NodeKind::dict)});
      return frame.parts.add({.entries = slots});
    }
  }
  frame.parts.add({.entries = both});
}

std::uint64_t tensor_bytes(const TensorRecord& record) {
  if (record.storage == kNoStorage) return 0;
  return bytes_of(record.dtype, static_cast<std::uint64_t>(try_numel(record.shape()).value_or(0)));
}

void Flattener::emit(const TensorRecord& record, std::string_view label, std::size_t above) {
  // A key of the root dict is a name as it stands; others are joined.
  std::string_view name = label;
  const bool is_key = above == 0 && !frames_.empty() && frames_.back().node->kind == NodeKind::dict &&
                      label.data() != label_.data();
  if (!is_key) extend_path(above, label);
  if (name.size() > kLongestName)
    fail(Errc::too_many, display(out_.path), "a name of {} characters", name.size());
  const bool is_shared = ++named_ > tree_.tensors;
  if (spend_) spend_(is_key ? kEntryFootprint : room_for(path_, is_shared), tensor_bytes(record));
  if (!is_key) name = CheckpointBuilder(out_).store_name(path_);
  if (CheckpointBuilder(out_).add_view(name, record.dtype, record.shape(), record.strides(), record.storage,
                                       record.bit_offset))
    return;
  const Tensor there = out_.tensor(name);
  const Tensor here = tree_.tensor_of(record);
  if (there.same_view(here)) return;
  fail(Errc::duplicate_key, display(out_.path), "two different tensors are both called {}", quoted(name));
}

std::string bytes_text(std::span<const std::byte> bytes) {
  std::string text = "b'";
  for (const std::byte byte : bytes.first(std::min<std::size_t>(bytes.size(), 200))) {
    const auto c = static_cast<unsigned char>(byte);
    if (c >= 0x20 && c < 0x7F && c != '\'' && c != '\\')
      text += static_cast<char>(c);
    else
      text += fmt::format("\\x{:02x}", c);
  }
  return text + "'";
}

// As Python prints it, a few levels deep and no longer than a name should be.
void print_key(std::string& text, const Value& value, int depth) {
  if (text.size() > kLongestKey) return;
  switch (value.kind()) {
    case Kind::string: {
      const std::string_view quote = value.type() == "str" ? "'" : "";
      text.append(quote).append(value.as_string().substr(0, kLongestKey)).append(quote);
      return;
    }
    case Kind::bytes:
      text += bytes_text(value.as_bytes());
      return;
    case Kind::tuple: {
      if (depth == 0) {
        text += "(…)";
        return;
      }
      text += '(';
      for (std::size_t i = 0; i < value.size() && i < 32; ++i) {
        if (i != 0) text += ", ";
        print_key(text, value.element(i), depth - 1);
      }
      text += value.size() == 1 ? ",)" : ")";
      return;
    }
    default:
      text += value.summary();
  }
}

}  // namespace

std::string key_name(const Value& key) {
  if (key.kind() == Kind::string) return std::string(key.as_string());
  std::string text;
  print_key(text, key, 4);
  return text;
}

bool is_model(const Value& value) {
  const auto& tree = ValueTree::tree(value);
  if (!tree || tree->classes == nullptr) return false;
  // A class or a function is of Kind::object, too, and has nothing in it.
  const ValueNode* object = as_node(ValueTree::ref(value), NodeKind::object);
  ObjectParts parts;
  return object != nullptr && tree->classes->parts_of(*tree, *object, parts) && parts.is_model;
}

void flatten(const Value& root, Checkpoint& out, const Spend& spend, const ObjectClasses* classes) {
  const auto& tree = ValueTree::tree(root);
  if (!tree) return;  // a number
  CheckpointBuilder(out).keep_alive(tree);
  CheckpointBuilder(out).set_storages(tree->storages);
  // A part may be one of very many: it takes room for what it holds itself.
  out.reserve(spend ? tree->tensors : std::min(tree->tensors, root.size()));
  Flattener flattener(tree, classes == nullptr ? tree->classes : classes, out, spend);
  flattener.run(ValueTree::ref(root));
  if (!flattener.model_class().empty()) {
    out.notes.push_back(fmt::format("holds a whole model ({}): read as its state_dict, nothing was run",
                                    display(flattener.model_class(), 100)));
  }
}

}  // namespace ballast
