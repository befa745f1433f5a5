// SPDX-License-Identifier: Apache-2.0
// Globals and calls.
#include "formats/torch/objects.h"

#include <algorithm>

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

Ref Objects::inert(const Call& call) {
  const Ref object = tree().object(call.callee->type, call.tuple);
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

Ref Objects::call_known(const Call& call, Role role) {
  switch (role) {
    case Role::tensor_v1:
    case Role::tensor_v2:
    case Role::tensor_v3:
    case Role::tensor_npu:
    case Role::tensor_meta:
    case Role::tensor_class:
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
    case Role::timedelta:
    case Role::timezone:
    case Role::uuid:
    case Role::namespace_:
    case Role::omega_container:
    case Role::omega_node:
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
    case Role::boolean:
    case Role::range:
    case Role::slice:
    case Role::object:
    case Role::getattr:
    case Role::encode:
    case Role::reconstructor:
    case Role::new_object:
    case Role::new_object_ex:
      return Rebuild::python(*this, call, role);
    case Role::nested:
    case Role::nested_jagged: {  // no tensor of ours; its parts stay reachable as arguments
      const Ref made = inert(call);
      made.node()->type = tree().type_id("torch.nested.NestedTensor");
      return made;
    }
    default:  // classes that are only ever named
      return misfit(call);
  }
}

}  // namespace ballast::torch
