// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/objects.h"

#include <algorithm>
#include <array>

#include "ballast/display.h"
#include "base/checked.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kReportedOffsets = 1000;
constexpr std::uint64_t kAllowed = std::uint64_t{64} << 20U;  // for any pickle, and a few times its size

Role role_of(const Node* node) {
  return static_cast<Role>(node->role);
}

// Values that stand for a torch constant are text with a class of their own.
std::string_view constant_type(Role role) {
  switch (role) {
    case Role::dtype:
      return "torch.dtype";
    case Role::qscheme:
      return "torch.qscheme";
    case Role::layout:
      return "torch.layout";
    case Role::memory_format:
      return "torch.memory_format";
    default:
      return {};
  }
}

bool is_ours(std::string_view name) {
  const std::string_view top = name.substr(0, name.find('.'));
  return top == "torch" || top == "numpy" || top == "builtins" || top == "collections" || top == "copyreg" ||
         top == "torch_npu" || top == "__torch__" || top == "datetime" || top == "pathlib" ||
         top == "_codecs";
}

}  // namespace

Objects::Objects(std::shared_ptr<ValueTree> tree, Settings settings)
    : tree_(std::move(tree)), settings_(settings) {}

void Objects::allow(std::uint64_t pickle_bytes) {
  pickle_bytes_ += pickle_bytes;
  tree_->limit_footprint(kAllowed + pickle_bytes_ * 8);
}

void Objects::spend(std::uint64_t bytes) {
  spent_ += bytes;
  if (spent_ > kAllowed + pickle_bytes_ * 4) {
    refuse(Errc::expansion_limit, "its calls copy {} bytes out of {} bytes of pickles", spent_,
           pickle_bytes_);
  }
}

std::string Objects::location() const {
  return machine != nullptr ? machine->location() : std::string("pickle");
}

std::uint64_t Objects::expansion_limit() const {
  return std::max<std::uint64_t>(std::uint64_t{1} << 30U, settings_.input_bytes * 16);
}

void Objects::note_global(const std::string& name, Verdict verdict) {
  if (verdict != Verdict::known) unknown_.insert(name);
  if (settings_.report == nullptr) return;
  const std::string& entry = machine->stream().entry;
  auto& globals = settings_.report->globals;
  const auto [slot, added] = reported_globals_.try_emplace(entry + '\n' + name, globals.size());
  if (added)
    globals.push_back(
        {.name = name, .offset = machine->offset(), .count = 0, .verdict = verdict, .entry = entry});
  ++globals[slot->second].count;
}

void Objects::note_call(const std::string& name, Verdict verdict) {
  if (settings_.report == nullptr) return;
  const std::string& entry = machine->stream().entry;
  auto& calls = settings_.report->calls;
  const auto [slot, added] = reported_calls_.try_emplace(entry + '\n' + name, calls.size());
  if (added)
    calls.push_back({.name = name,
                     .offset = machine->offset(),
                     .count = 0,
                     .verdict = verdict,
                     .entry = entry,
                     .offsets = {}});
  ScanCall& call = calls[slot->second];
  ++call.count;
  if (verdict != Verdict::known && call.offsets.size() < kReportedOffsets)
    call.offsets.push_back(machine->offset());
}

void Objects::forbid(const std::string& name) const {
  if (settings_.report != nullptr) {
    settings_.report->findings.push_back({.severity = Severity::danger,
                                          .code = Errc::forbidden_global,
                                          .what = fmt::format("{} could run code", display(name)),
                                          .offset = machine->offset(),
                                          .entry = machine->stream().entry});
  }
  if (!settings_.inert) {
    refuse(Errc::forbidden_global,
           "the pickle names {}, which could run code; nothing was run (open it as inert to look at it)",
           display(name));
  }
}

Ref Objects::global(std::string_view module, std::string_view name) {
  std::string full = full_name(module, name);
  if (const auto known = globals_.find(full); known != globals_.end()) {
    note_global(full, known->second.verdict);
    return known->second.value;
  }
  const bool forbidden = is_forbidden(module, name);
  const Role role = forbidden ? Role::unknown : torch::role_of(full);
  const Verdict verdict = forbidden                                 ? Verdict::forbidden
                          : role == Role::unknown && !is_ours(full) ? Verdict::unknown
                                                                    : Verdict::known;
  note_global(full, verdict);
  if (forbidden) forbid(full);
  Ref value;
  if (const std::string_view type = constant_type(role); !type.empty()) {
    value = tree_->string(tree_->store(full), tree_->type_id(type));
  } else {
    value = Ref(tree_->make(NodeKind::global, tree_->type_id(full)));
  }
  value.node()->role = static_cast<std::uint8_t>(role);
  value.node()->flag = forbidden;
  globals_.emplace(std::move(full), Global{value, verdict});
  return value;
}

Ref Objects::inert(const Call& call) {
  const Ref object = tree_->object(call.callee->type, call.tuple);
  object.node()->object->kwargs = call.kwargs;
  object.node()->role = call.callee->role;
  return object;
}

Ref Objects::call(Ref callee, Ref args, Ref kwargs, bool is_new) {
  Node* const node = callee.is_node() ? callee.node() : nullptr;
  const bool is_object = node != nullptr && node->kind == NodeKind::object;
  if (node == nullptr || (node->kind != NodeKind::global && !is_object)) {
    refuse(Errc::type_mismatch, "{} is called, which is no class or function", describe(callee));
  }
  const std::string_view type = tree_->type_name(node->type);
  const Role role = role_of(node);
  if (is_object && role == Role::getattr) return call_member(node, args, is_new);
  const Call made{
      .callee = node, .args = {args.node()->refs, args.node()->size}, .tuple = args, .kwargs = kwargs};
  if (settings_.report != nullptr) {
    note_call(std::string(type), node->flag                                ? Verdict::forbidden
                                 : role == Role::unknown && !is_ours(type) ? Verdict::unknown
                                                                           : Verdict::known);
  }
  if (is_object || role == Role::unknown) return inert(made);
  return call_known(made, role);
}

// getattr(Outer, 'Inner') made into an object is a class inside a class; called in any other way it may be
// anything.
Ref Objects::call_member(const Node* member, Ref args, bool is_new) {
  const Ref* name = tree_->find(member->object->state.node(), "name");
  const std::string full = fmt::format("{}.{}", tree_->type_name(member->type), *as_text(*name));
  note_call(full, is_new ? Verdict::unknown : Verdict::forbidden);
  if (!is_new) forbid(full + "(), reached by getattr");
  return tree_->object(tree_->type_id(full), args);
}

Ref Objects::call_known(const Call& call, Role role) {
  switch (role) {
    case Role::tensor_v1:
    case Role::tensor_v2:
    case Role::tensor_v3:
    case Role::tensor_npu:
    case Role::tensor_meta:
    case Role::parameter:
    case Role::parameter_state:
    case Role::parameter_class:
    case Role::wrapper_subclass:
    case Role::device_from_cpu:
    case Role::from_type:
    case Role::from_type_v2:
    case Role::load_from_bytes:
      return Rebuild::tensor(*this, call, role);
    case Role::device_from_numpy:
      return Rebuild::device_from_numpy(*this, call);
    case Role::qtensor:
      return Rebuild::quantized(*this, call);
    case Role::sparse:
    case Role::sparse_csr:
      return Rebuild::sparse(*this, call, role);
    case Role::numpy_reconstruct:
    case Role::numpy_scalar:
    case Role::numpy_dtype:
    case Role::numpy_frombuffer:
      return Rebuild::numpy(*this, call, role);
    case Role::get_layout:
    case Role::size:
    case Role::device:
    case Role::jit_list:
    case Role::jit_type_tag:
    case Role::path:
    case Role::date:
    case Role::time:
    case Role::datetime:
    case Role::namespace_:
      return Rebuild::plain(*this, call, role);
    case Role::ordered_dict:
    case Role::default_dict:
    case Role::counter:
    case Role::deque:
    case Role::set:
    case Role::frozenset:
    case Role::list:
    case Role::tuple:
    case Role::dict:
    case Role::bytes:
    case Role::bytearray:
    case Role::complex:
    case Role::integer:
    case Role::floating:
    case Role::string:
    case Role::getattr:
    case Role::encode:
    case Role::reconstructor:
    case Role::new_object:
    case Role::new_object_ex:
      return Rebuild::python(*this, call, role);
    case Role::nested:
    case Role::nested_jagged: {  // no tensor of ours; its parts stay reachable as arguments
      const Ref made = inert(call);
      made.node()->type = tree_->type_id("torch.nested.NestedTensor");
      return made;
    }
    default:
      return inert(call);
  }
}

void Objects::append(Ref target, std::span<const Ref> elements) {
  Node* node = target.is_node() ? target.node() : nullptr;
  if (node != nullptr && node->kind == NodeKind::object) {
    Ref& items = node->object->items;
    if (items.is_none()) items = Ref(tree_->make(NodeKind::list));
    node = items.node();
  }
  if (node == nullptr || node->kind != NodeKind::list)
    refuse(Errc::type_mismatch, "APPEND to {}", describe(target));
  tree_->append(node, elements);
}

void Objects::add(Ref target, std::span<const Ref> elements) {
  Node* node = as_kind(target, NodeKind::set);
  if (node == nullptr) refuse(Errc::type_mismatch, "ADDITEMS to {}", describe(target));
  for (const Ref element : elements) need_hashable(element);
  tree_->append(node, elements);
}

void Objects::set_items(Ref target, std::span<const Ref> pairs) {
  Node* node = target.is_node() ? target.node() : nullptr;
  if (node != nullptr && node->kind == NodeKind::object) {
    Ref& held = node->object->pairs;
    if (held.is_none()) held = Ref(tree_->make(NodeKind::dict));
    node = held.node();
  }
  if (node == nullptr || node->kind != NodeKind::dict)
    refuse(Errc::type_mismatch, "SETITEM on {}", describe(target));
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i].is_node() && pairs[i].node()->kind != NodeKind::string) need_hashable(pairs[i]);
  }
  tree_->append_pairs(node, pairs);
}

// Lists, dicts and sets cannot be keys, nor tuples that hold one.
void Objects::need_hashable(Ref key) const {
  struct Level {
    const Node* tuple;
    std::uint32_t next;
  };

  std::vector<Level> levels;
  std::size_t seen = 0;
  for (Ref at = key;;) {
    const Node* node = at.is_node() ? at.node() : nullptr;
    if (node != nullptr && (node->kind == NodeKind::list || node->kind == NodeKind::dict ||
                            (node->kind == NodeKind::set && node->type == 0))) {
      refuse(Errc::type_mismatch, "{} as a key", describe(at));
    }
    if (node != nullptr && node->kind == NodeKind::tuple) levels.push_back({node, 0});
    if (levels.size() > kMaxDepth) refuse(Errc::too_deep, "a key of more than {} levels", kMaxDepth);
    if (++seen > 100'000) refuse(Errc::expansion_limit, "a key of more than {} parts", seen - 1);
    while (!levels.empty() && levels.back().next == levels.back().tuple->size) levels.pop_back();
    if (levels.empty()) return;
    at = levels.back().tuple->refs[levels.back().next++];
  }
}

void Objects::build(Ref target, Ref state) {
  Node* node = target.is_node() ? target.node() : nullptr;
  if (node == nullptr) refuse(Errc::type_mismatch, "BUILD on {}", describe(target));
  switch (node->kind) {
    case NodeKind::object:
      return build_object(node, state);
    case NodeKind::dict:
      if (role_of(node) == Role::namespace_) return Rebuild::build_plain(*this, node, state);
      return tree_->set_attributes(node, state);
    case NodeKind::tensor:
      return tree_->set_attributes(node, state);
    case NodeKind::string:
      if (role_of(node) == Role::numpy_dtype) return Rebuild::build_numpy(*this, node, state);
      [[fallthrough]];
    case NodeKind::list:
    case NodeKind::tuple:
    case NodeKind::set:
    case NodeKind::bytes:
    case NodeKind::integer:
    case NodeKind::floating:
      if (node->type != 0) return tree_->set_attributes(node, state);
      [[fallthrough]];
    default:
      refuse(Errc::type_mismatch, "BUILD on {}", describe(target));
  }
}

void Objects::build_object(Node* node, Ref state) {
  switch (role_of(node)) {
    case Role::tensor_class:
    case Role::parameter_class:
      return Rebuild::build_tensor(*this, node, state);
    case Role::numpy_reconstruct:
      return Rebuild::build_numpy(*this, node, state);
    case Role::omega_container:
    case Role::omega_node:
    case Role::uuid:
      return Rebuild::build_plain(*this, node, state);
    default:
      break;
  }
  Ref& held = node->object->state;
  const Node* old = as_kind(held, NodeKind::dict);
  const Node* more = as_kind(state, NodeKind::dict);
  if (old == nullptr || more == nullptr) {
    held = held.is_none() ? state : tree_->sequence(NodeKind::tuple, std::array{held, state});
    return;
  }
  Node* merged = tree_->make(NodeKind::dict);  // a second BUILD adds to the first
  tree_->append_pairs(merged, {old->refs, std::size_t{old->size} * 2});
  tree_->append_pairs(merged, {more->refs, std::size_t{more->size} * 2});
  held = Ref(merged);
}

Ref Objects::storage(const StorageInfo& info, TypeId type) {
  Node* node = tree_->make(NodeKind::storage, type);
  node->index = storages_.size();
  storages_.push_back(info);
  return Ref(node);
}

void Objects::finish() {
  // NOLINTNEXTLINE(modernize-loop-convert): the list may grow meanwhile
  for (std::size_t i = 0; i < unfinished_.size(); ++i) unfinished_[i]();
  unfinished_.clear();
  tree_->forget_indices();
}

}  // namespace ballast::torch
