// SPDX-License-Identifier: Apache-2.0
// Globals and calls.
#include "formats/torch/objects.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "ballast/error.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kLongestName = 1024;       // of a global; real ones are a tenth of it
constexpr std::uint64_t kGlobalFootprint = 512;  // beside its name: tables, rows of a report

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

std::string joined(GlobalName name) {
  std::string full(name.module);
  full += '.';
  full += name.name;
  return full;
}

}  // namespace

Ref Objects::global(GlobalName written, bool is_python2) {
  if (written.module.size() + written.name.size() > kLongestName) {
    refuse(Errc::bad_pickle, "a global whose name has {} characters",
           written.module.size() + written.name.size());
  }
  const GlobalName current = is_python2 ? current_name(written) : written;
  std::string key(is_python2 ? "2" : "3");
  key.append(written.module).append("\n").append(written.name);
  auto found = globals_.find(key);
  if (found == globals_.end()) {
    budget().take(key.size() * 4 + kGlobalFootprint);
    found = globals_.emplace(std::move(key), make_global(written, current)).first;
  }
  Global& global = found->second;
  const ValueNode* node = global.value.node();
  const std::string_view shown = node->kind == NodeKind::string ? std::string_view(node->text, node->size)
                                                                : tree().type_name(node->type);
  ledger_.note_global(global.seen, shown);
  if (global.seen.verdict == Verdict::danger) ledger_.forbid(joined(current));
  return global.value;
}

// The name as it is written counts too: a stream may be read by a Python that knows it.
Objects::Global Objects::make_global(GlobalName written, GlobalName current) {
  const bool forbidden =
      is_forbidden(current.module, current.name) || is_forbidden(written.module, written.name);
  const KnownGlobal* known = forbidden ? nullptr : find_known_global(current.module, current.name);
  Global global;
  global.seen.verdict = forbidden ? Verdict::danger : known != nullptr ? known->verdict : Verdict::unknown;
  const std::string shown = known != nullptr ? known->shown : joined(current);
  const Role role = known != nullptr ? known->role : Role::unknown;
  if (const std::string_view type = constant_type(role); !type.empty()) {
    global.value = tree().string(tree().store(shown), tree().type_id(type));
  } else {
    global.value = Ref(tree().make(NodeKind::global, tree().type_id(shown)));
    global.value.node()->index =
        known == nullptr ? 0 : 1 + static_cast<std::uint64_t>(known - known_globals().data());
  }
  global.value.node()->role = static_cast<std::uint8_t>(role);
  global.value.node()->flag = forbidden;
  if (global.seen.verdict != Verdict::clean) ledger_.note_unknown(shown);
  return global;
}

void Objects::need_arguments(const Call& call, std::size_t least, std::size_t most) const {
  if (call.args.size() >= least && call.args.size() <= most) return;
  refuse(Errc::type_mismatch, "{} with {} arguments, it takes {}{}",
         display(tree().type_name(call.callee->type)), call.args.size(), least,
         least == most ? "" : fmt::format(" to {}", most));
}

Ref Objects::inert(const Call& call, Role role) {
  const Ref object = tree().object(call.callee->type, call.tuple);
  object.node()->role = static_cast<std::uint8_t>(role);
  object.node()->object->kwargs = call.kwargs;
  return object;
}

Ref Objects::call(Ref callee, Ref args, Ref kwargs, How how) {
  ValueNode* const node = callee.is_node() ? callee.node() : nullptr;
  if (node == nullptr || (node->kind != NodeKind::global && node->kind != NodeKind::object)) {
    refuse(Errc::type_mismatch, "{} is called, which is no class or function", describe(callee));
  }
  const Call made{.callee = node,
                  .args = need_sequence(args, "the arguments of a call"),
                  .tuple = args,
                  .kwargs = kwargs,
                  .how = how};
  if (node->kind == NodeKind::global) return call_global(made);
  if (role_of(callee) == Role::getattr) return call_member(made);
  // An object that is called runs its class's code.
  if (how == How::make) refuse(Errc::type_mismatch, "{} is no class to make objects of", describe(callee));
  ledger_.note_call(node->type, Verdict::unknown);
  return inert(made);
}

bool Objects::is_class(Ref callee) noexcept {
  const ValueNode* global = as_kind(callee, NodeKind::global);
  if (global == nullptr) return role_of(callee) == Role::getattr;
  return global->index == 0 || known_globals()[global->index - 1].callable == Callable::type;
}

Ref Objects::call_global(const Call& call) {
  const KnownGlobal* known = call.callee->index == 0 ? nullptr : &known_globals()[call.callee->index - 1];
  if (known == nullptr) {
    ledger_.note_call(call.callee->type, call.callee->flag ? Verdict::danger : Verdict::unknown);
    return inert(call);
  }
  if (call.how == How::make && known->callable == Callable::function)
    refuse(Errc::type_mismatch, "{} is a function, no class to make objects of", known->shown);
  ledger_.note_call(call.callee->type, known->verdict);
  const ValueNode* named = as_dict(call.kwargs);
  if (named != nullptr && named->size != 0) return misfit(call);  // no role has any
  return call_known(call, known->role);
}

// getattr(Outer, 'Inner') made into an object is a class inside a class; called in any other way it may be
// anything.
Ref Objects::call_member(const Call& call) {
  const bool is_made = call.how == How::make;
  const ValueNode* state = as_dict(call.callee->object->state);
  const Ref* name = state == nullptr ? nullptr : find_now(state, "name");
  const std::string full = fmt::format("{}.{}", tree().type_name(call.callee->type),
                                       name == nullptr ? "?" : as_text(*name).value_or("?"));
  const TypeId type = tree().type_id(full);
  ledger_.note_call(type, is_made ? Verdict::unknown : Verdict::danger);
  if (!is_made) ledger_.forbid(full + "(), reached by getattr");
  return tree().object(type, call.tuple);
}

namespace {

using Constructor = Ref (*)(Objects& objects, const Call& call, Role role);

Ref inert_nested(Objects& objects, const Call& call, Role /*role*/) {
  const Ref made = objects.inert(call);  // no tensor of ours; its parts stay reachable as arguments
  made.node()->type = objects.tree().type_id("torch.nested.NestedTensor");
  return made;
}

// Null: classes that are only ever named.
constexpr auto kConstructors = [] {
  std::array<Constructor, 256> table{};
  const auto put = [&](Constructor constructor, std::initializer_list<Role> roles) {
    for (const Role role : roles) table[static_cast<std::size_t>(role)] = constructor;
  };
  using enum Role;
  put(Rebuild::tensor,
      {tensor_v1, tensor_v2, tensor_v3, tensor_npu, tensor_meta, tensor_class, parameter, parameter_state,
       parameter_class, wrapper_subclass, device_from_cpu, from_type, from_type_v2, load_from_bytes});
  put(Rebuild::device_from_numpy, {device_from_numpy});
  put(Rebuild::quantized, {qtensor});
  put(Rebuild::sparse, {sparse, sparse_csr});
  put(inert_nested, {nested, nested_jagged});
  put(Rebuild::numpy, {numpy_reconstruct, numpy_scalar, numpy_dtype, numpy_frombuffer});
  put(Rebuild::plain, {get_layout, size, device, jit_list, jit_type_tag, path, date, time, datetime,
                       timedelta, timezone, uuid, namespace_, omega_container, omega_node});
  put(Rebuild::python,
      {ordered_dict, default_dict, counter,   deque,   set,     frozenset,     list,       tuple,
       dict,         bytes,        bytearray, complex, integer, floating,      string,     boolean,
       range,        slice,        object,    getattr, encode,  reconstructor, new_object, new_object_ex});
  return table;
}();

}  // namespace

Ref Objects::call_known(const Call& call, Role role) {
  const Constructor constructor = kConstructors[static_cast<std::size_t>(role)];
  return constructor == nullptr ? misfit(call) : constructor(*this, call, role);
}

}  // namespace ballast::torch
