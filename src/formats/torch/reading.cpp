// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/reading.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/ascii.h"
#include "formats/torch/modules.h"

namespace ballast::torch {

std::optional<std::int64_t> as_int(Ref value) noexcept {
  if (value.is_small()) return value.small();
  if (const ValueNode* node = as_kind(value, NodeKind::integer)) return node->integer;
  return std::nullopt;
}

std::int64_t Reading::need_int(Ref value, const char* what) const {
  if (const auto number = as_int(value)) return *number;
  if (as_kind(value, NodeKind::big_integer) != nullptr)
    refuse(Errc::size_overflow, "{} is an integer of more than 64 bits", what);
  refuse(Errc::type_mismatch, "{} is {}, not an int", what, describe(value));
}

std::optional<std::string_view> as_text(Ref value) noexcept {
  const ValueNode* node = as_kind(value, NodeKind::string);
  if (node == nullptr || node->type != 0) return std::nullopt;
  return std::string_view(node->text, node->size);
}

std::optional<std::string_view> as_constant(Ref value, Role role) noexcept {
  const ValueNode* node = as_kind(value, NodeKind::string);
  if (node == nullptr || node->type == 0 || static_cast<Role>(node->role) != role) return std::nullopt;
  return std::string_view(node->text, node->size);
}

Role role_of(Ref value) noexcept {
  return value.is_node() ? static_cast<Role>(value.node()->role) : Role::unknown;
}

std::string_view Reading::need_text(Ref value, const char* what) const {
  if (const auto text = as_text(value)) return *text;
  refuse(Errc::type_mismatch, "{} is {}, not a str", what, describe(value));
}

std::string_view Reading::need_bytes(Ref value, const char* what) const {
  if (const ValueNode* node = as_kind(value, NodeKind::bytes)) return {node->text, node->size};
  return need_text(value, what);
}

std::span<const Ref> Reading::need_sequence(Ref value, const char* what) const {
  const ValueNode* node = as_kind(value, NodeKind::tuple);
  if (node == nullptr) node = as_kind(value, NodeKind::list);
  if (node == nullptr) refuse(Errc::type_mismatch, "{} is {}, not a tuple", what, describe(value));
  return {node->refs, node->size};
}

ValueNode* as_kind(Ref value, NodeKind kind) noexcept {
  return value.is_node() && value.node()->kind == kind ? value.node() : nullptr;
}

ValueNode* as_dict(Ref value) noexcept {
  return role_of(value) == Role::namespace_ ? nullptr : as_kind(value, NodeKind::dict);
}

Reading::Reading(std::shared_ptr<ValueTree> tree, Settings settings)
    : tree_(std::move(tree)),
      settings_(std::move(settings)),
      budget_(std::make_shared<Budget>(settings_.where)) {
  tree_->charge(budget_);
  tree_->classes = &modules();
}

Reading::~Reading() {
  tree_->charge(nullptr);
}

std::string Reading::location() const {
  return machine != nullptr ? machine->location() : settings_.where;
}

std::string Reading::describe(Ref value) const {
  const Value seen = ValueTree::value(tree_, value);
  if (seen.is_global()) return "class " + display(seen.type());
  return fmt::format("a {}{}", display(seen.type()), seen.kind() == Kind::object ? " object" : "");
}

void Reading::need_keywords(Ref kwargs) const {
  const ValueNode* dict = as_dict(kwargs);
  for (std::uint32_t i = 0; dict != nullptr && i < dict->size; ++i)
    static_cast<void>(need_text(dict->refs[std::size_t{i} * 2], "a keyword"));
}

const Ref* Reading::find_now(const ValueNode* dict, std::string_view key) const {
  budget_->step(dict->size);
  for (std::size_t i = dict->size; i-- > 0;) {
    if (as_text(dict->refs[i * 2]) == key) return &dict->refs[i * 2 + 1];
  }
  return nullptr;
}

// "cpu", "cuda:0"
bool is_device_name(std::string_view text) noexcept {
  const std::string_view kind = text.substr(0, text.find(':'));
  constexpr std::string_view kKinds[] = {
      "cpu", "cuda", "fpga", "hip",    "hpu",    "ideep",         "ipu", "lazy",   "maia", "meta", "mkldnn",
      "mps", "mtia", "npu",  "opencl", "opengl", "privateuseone", "ve",  "vulkan", "xla",  "xpu"};
  if (std::find(std::begin(kKinds), std::end(kKinds), kind) == std::end(kKinds)) return false;
  if (kind.size() == text.size()) return true;
  const std::string_view index = text.substr(kind.size() + 1);
  // PyTorch counts devices in eight bits, with a sign.
  return !index.empty() && index.size() <= 3 && (index == "0" || index[0] != '0') && all_digits(index) &&
         (index.size() < 3 || index <= "127");
}

bool is_meta(std::string_view device) noexcept {
  return device.substr(0, device.find(':')) == "meta";
}

// torch.device keeps its name as text.
std::optional<std::string_view> device_text(Ref value) noexcept {
  const ValueNode* node = as_kind(value, NodeKind::string);
  if (node == nullptr || (node->type != 0 && role_of(value) != Role::device)) return std::nullopt;
  const std::string_view text(node->text, node->size);
  return is_device_name(text) ? std::optional(text) : std::nullopt;
}

}  // namespace ballast::torch
