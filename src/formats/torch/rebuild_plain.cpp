// SPDX-License-Identifier: Apache-2.0
// Small values of PyTorch and of Python's library that are better as text, tuples and dicts: sizes, devices,
// paths, dates, namespaces.
#include <algorithm>
#include <vector>

#include "ballast/error.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

// torch.device('cuda', 0), torch.device('cuda:0')
Ref device(Objects& objects, const Call& call) {
  objects.need_arguments(call, 1, 2);
  const auto name = as_text(call.args[0]);
  const auto index = as_int(Objects::argument(call, 1));
  if (!name || (call.args.size() == 2 && !index)) return objects.misfit(call);
  const std::string text = index ? fmt::format("{}:{}", *name, *index) : std::string(*name);
  const Ref made = objects.tree().string(objects.tree().store(text), call.callee->type);
  made.node()->role = static_cast<std::uint8_t>(Role::device);
  return device_text(made) ? made : objects.misfit(call);
}

// As pathlib puts parts together: an absolute one begins anew, "." and "//" inside say nothing.
std::string joined_path(std::span<const std::string> parts) {
  std::string root;
  std::vector<std::string_view> names;
  for (const std::string_view part : parts) {
    if (part.starts_with('/')) {
      root = part.starts_with("//") && !part.starts_with("///") ? "//" : "/";
      names.clear();
    }
    for (std::size_t at = 0; at < part.size();) {
      const std::size_t end = std::min(part.find('/', at), part.size());
      const std::string_view name = part.substr(at, end - at);
      if (!name.empty() && name != ".") names.push_back(name);
      at = end + 1;
    }
  }
  std::string text = root;
  for (const std::string_view name : names) {
    if (text.size() > root.size()) text += '/';
    text += name;
  }
  return text.empty() ? "." : text;
}

Ref path(Objects& objects, const Call& call) {
  const bool windows = objects.tree().type_name(call.callee->type).find("Windows") != std::string_view::npos;
  std::vector<std::string> parts;
  for (const Ref part : call.args) {
    const auto piece = as_text(part);
    if (!piece) return objects.misfit(call);
    objects.budget().take(piece->size() * 2 + sizeof(std::string));
    parts.emplace_back(*piece);
  }
  std::string text;
  if (!windows) {
    text = joined_path(parts);
  } else {
    for (const std::string& piece : parts) text += (text.empty() || text.back() == '\\' ? "" : "\\") + piece;
  }
  return objects.tree().string(objects.tree().store(text.empty() ? "." : text), call.callee->type);
}

unsigned byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<unsigned char>(bytes[index]);
}

std::string time_text(std::string_view bytes) {
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", byte_at(bytes, 0) & 0x7FU, byte_at(bytes, 1), byte_at(bytes, 2));
  const unsigned micro = byte_at(bytes, 3) << 16U | byte_at(bytes, 4) << 8U | byte_at(bytes, 5);
  return micro == 0 ? text : fmt::format("{}.{:06}", text, micro);
}

std::string date_text(std::string_view bytes) {
  return fmt::format("{:04}-{:02}-{:02}", byte_at(bytes, 0) << 8U | byte_at(bytes, 1),
                     byte_at(bytes, 2) & 0x7FU, byte_at(bytes, 3));
}

// "+02:00" of timezone(timedelta(0, 7200)); empty for no time zone, nullopt for one that cannot be written
// so.
std::optional<std::string> zone_text(Objects& objects, Ref zone) {
  if (zone.is_none()) return "";
  const ValueNode* timezone = as_kind(zone, NodeKind::object);
  if (timezone == nullptr || static_cast<Role>(timezone->role) != Role::timezone) return std::nullopt;
  const auto args = objects.need_sequence(timezone->object->args, "the arguments of a timezone");
  const ValueNode* delta = args.empty() ? nullptr : as_kind(args[0], NodeKind::object);
  if (delta == nullptr || static_cast<Role>(delta->role) != Role::timedelta) return std::nullopt;
  std::int64_t parts[3] = {0, 0, 0};  // days, seconds, microseconds
  const auto numbers = objects.need_sequence(delta->object->args, "the arguments of a timedelta");
  for (std::size_t i = 0; i < 3 && i < numbers.size(); ++i)
    parts[i] = std::clamp<std::int64_t>(as_int(numbers[i]).value_or(0), -100'000, 100'000);
  const std::int64_t seconds = parts[0] * 86'400 + parts[1];
  if (seconds % 60 != 0 || parts[2] != 0) return std::nullopt;
  const std::int64_t minutes = (seconds < 0 ? -seconds : seconds) / 60;
  return fmt::format("{}{:02}:{:02}", seconds < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

// The highest bit of a time's first byte, or of a datetime's month, is no part of the number.
bool is_sane(std::string_view bytes, Role role) {
  const auto within = [&](std::size_t index, unsigned least, unsigned most, unsigned mask = 0xFF) {
    const unsigned number = byte_at(bytes, index) & mask;
    return number >= least && number <= most;
  };
  const unsigned fold = 0x7F;
  if (role == Role::time)
    return within(0, 0, 23, fold) && within(1, 0, 59) && within(2, 0, 59) && within(3, 0, 15);
  const bool is_date = within(2, 1, 12, role == Role::datetime ? fold : 0xFF) && within(3, 1, 31);
  if (role == Role::date) return is_date;
  return is_date && within(4, 0, 23) && within(5, 0, 59) && within(6, 0, 59) && within(7, 0, 15);
}

Ref date_or_time(Objects& objects, const Call& call, Role role) {
  if (call.args.empty() || call.args.size() > (role == Role::date ? 1U : 2U)) return objects.misfit(call);
  const Ref first = call.args[0];
  const ValueNode* packed = as_kind(first, NodeKind::bytes);
  if ((packed == nullptr || packed->type != 0) && !as_text(first)) return objects.misfit(call);
  const std::string_view bytes = objects.need_bytes(first, "a date");
  const std::size_t size = role == Role::date ? 4 : role == Role::time ? 6 : 10;
  const auto zone = zone_text(objects, Objects::argument(call, 1));
  // Python 2's text stands for bytes of Latin-1, and only of ASCII are these the same.
  const bool is_other_text =
      as_text(first) && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c < 0; });
  if (bytes.size() != size || !zone || is_other_text) return objects.misfit(call);
  if (!is_sane(bytes, role)) return objects.misfit(call);
  std::string text;
  if (role != Role::time) text = date_text(bytes);
  if (role == Role::datetime) text += 'T';
  if (role != Role::date) text += time_text(role == Role::time ? bytes : bytes.substr(4)) + *zone;
  return objects.tree().string(objects.tree().store(text), call.callee->type);
}

const Ref* member(Objects& objects, Ref state, std::string_view name) {
  const ValueNode* dict = as_dict(state);
  return dict == nullptr ? nullptr : objects.find_now(dict, name);
}

// timedelta(days, seconds, microseconds), timezone(timedelta [, name]): kept with their arguments.
Ref with_numbers(Objects& objects, const Call& call, Role role) {
  bool fits_role = call.args.size() <= 3;
  constexpr std::int64_t kMost[] = {999'999'999, 86'399, 999'999};  // as they are pickled
  for (std::size_t i = 0; fits_role && role == Role::timedelta && i < call.args.size(); ++i) {
    const auto number = as_int(call.args[i]);
    fits_role = number && *number <= kMost[i] && *number >= (i == 0 ? -kMost[0] : 0);
  }
  if (role == Role::timezone) {
    fits_role = (call.args.size() == 1 || (call.args.size() == 2 && as_text(call.args[1]))) &&
                as_kind(call.args[0], NodeKind::object) != nullptr &&
                role_of(call.args[0]) == Role::timedelta;
  }
  if (!fits_role) return objects.misfit(call);
  return objects.inert(call, role);
}

// An object whose state says what it is.
Ref awaiting_state(Objects& objects, const Call& call, Role role) {
  if (role == Role::uuid && call.how == How::call && call.args.empty())
    objects.refuse(Errc::type_mismatch, "uuid.UUID() without a number");
  if (!call.args.empty()) return objects.misfit(call);
  return objects.inert(call, role);
}

Ref layout(Objects& objects, const Call& call) {
  objects.need_arguments(call, 1, 1);
  if (as_kind(call.args[0], NodeKind::object) != nullptr) return objects.misfit(call);
  const std::string_view name = objects.need_text(call.args[0], "a layout's name");
  constexpr std::string_view kPrefix = "torch.";
  const bool is_known =
      name.starts_with(kPrefix) && find_torch_constant(Role::layout, name.substr(kPrefix.size())) != nullptr;
  if (!is_known) objects.refuse(Errc::unsupported, "layout {}", quoted(name));
  const Ref made = objects.tree().string(name, objects.tree().type_id("torch.layout"));
  made.node()->role = static_cast<std::uint8_t>(Role::layout);
  return made;
}

Ref size(Objects& objects, const Call& call) {
  if (call.args.size() > 1) return objects.misfit(call);
  std::span<const Ref> sizes;
  if (!call.args.empty()) {
    if (as_kind(call.args[0], NodeKind::object) != nullptr) return objects.misfit(call);
    sizes = objects.need_sequence(call.args[0], "the argument of torch.Size");
  }
  const auto is_int = [](Ref value) { return as_int(value).has_value(); };
  if (!std::all_of(sizes.begin(), sizes.end(), is_int)) return objects.misfit(call);
  return objects.tree().sequence(NodeKind::tuple, sizes, objects.tree().type_id("torch.Size"));
}

// The object becomes what `value` is, keeping its own class.
void become(ValueNode* node, Ref value) {
  const TypeId type = node->type;
  if (value.is_node()) {
    *node = *value.node();
    node->has_attributes = false;
    node->capacity = 0;  // the elements are the other's: growing takes new room
  } else if (value.is_small()) {
    node->kind = NodeKind::integer;
    node->integer = value.small();
  } else {
    node->kind = value.is_none() ? NodeKind::none : NodeKind::boolean;
    node->flag = value.is_true();
  }
  node->type = type;
  node->role = 0;
}

std::string uuid_text(const Value& number) {
  std::uint32_t words[4] = {};  // lowest first
  for (const char digit : number.as_decimal()) {
    auto carry = static_cast<std::uint64_t>(digit - '0');
    for (std::uint32_t& word : words) {
      carry += std::uint64_t{word} * 10;
      word = static_cast<std::uint32_t>(carry);
      carry >>= 32U;
    }
  }
  const std::uint64_t high = std::uint64_t{words[3]} << 32U | words[2];
  const std::uint64_t low = std::uint64_t{words[1]} << 32U | words[0];
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32U, high >> 16U & 0xFFFFU,
                     high & 0xFFFFU, low >> 48U, low & 0xFFFFFFFFFFFFU);
}

}  // namespace

Ref Rebuild::plain(Objects& objects, const Call& call, Role role) {
  ValueTree& tree = objects.tree();
  switch (role) {
    case Role::get_layout:
      return layout(objects, call);
    case Role::size:
      return size(objects, call);
    case Role::device:
      return device(objects, call);
    case Role::jit_list:
      objects.need_arguments(call, 1, 1);
      return call.args[0];
    case Role::jit_type_tag:
      objects.need_arguments(call, 2, 2);
      return call.args[0];
    case Role::path:
      return path(objects, call);
    case Role::timedelta:
    case Role::timezone:
      return with_numbers(objects, call, role);
    case Role::uuid:
    case Role::omega_container:
    case Role::omega_node:
      return awaiting_state(objects, call, role);
    case Role::namespace_: {
      if (!call.args.empty()) return objects.misfit(call);
      ValueNode* made = tree.make(NodeKind::dict, call.callee->type);
      made->role = static_cast<std::uint8_t>(Role::namespace_);
      return Ref(made);
    }
    default:
      return date_or_time(objects, call, role);
  }
}

void Rebuild::build_plain(Objects& objects, ValueNode* node, Ref state) {
  if (node->kind == NodeKind::dict) {  // a namespace: its attributes are its content
    const ValueNode* fields = as_dict(state);
    if (fields == nullptr)
      objects.refuse(Errc::type_mismatch, "{} for a namespace's state", objects.describe(state));
    objects.check_attributes(node, fields);
    return objects.tree().append_pairs(node, {fields->refs, std::size_t{fields->size} * 2});
  }
  const auto role = static_cast<Role>(node->role);
  node->role = 0;
  node->object->state = state;
  if (role == Role::uuid) {
    const Ref* number = member(objects, state, "int");
    const Value value = number == nullptr ? Value() : ValueTree::value(objects.shared_tree(), *number);
    const bool is_number = value.kind() == Kind::integer && value.type() == "int";
    // 2^128 has 39 digits, too.
    const std::string digits = is_number ? value.as_decimal() : std::string();
    if (!is_number || digits.size() > 39 || digits.starts_with('-') ||
        (digits.size() == 39 && digits > "340282366920938463463374607431768211455"))
      objects.refuse(Errc::type_mismatch, "{} for the state of a uuid.UUID", objects.describe(state));
    return become(node, objects.tree().string(objects.tree().store(uuid_text(value))));
  }
  const Ref* content = member(objects, state, role == Role::omega_node ? "_val" : "_content");
  if (content == nullptr || *content == Ref(node)) return;
  const bool is_object = content->is_node() && (content->node()->kind == NodeKind::object ||
                                                content->node()->kind == NodeKind::storage ||
                                                content->node()->kind == NodeKind::global);
  if (!is_object) become(node, *content);
}

}  // namespace ballast::torch
