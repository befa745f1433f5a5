// SPDX-License-Identifier: Apache-2.0
// PyTorch's functions that make tensors, and the classes that become one when their state comes.
#include <algorithm>

#include "ballast/error.h"
#include "base/checked.h"
#include "formats/torch/distributed.h"
#include "formats/torch/objects.h"
#include "tensor/source_storage.h"

namespace ballast::torch {
Ref Rebuild::computed(Objects& objects, const Tensor& tensor, TypeId type) {
  objects.budget().take(512);  // a storage of its own, and what it is computed from
  const Ref made = objects.tree().tensor(TensorValue{.tensor = tensor});
  made.node()->type = type;
  return made;
}

Tensor Rebuild::with_strides_of_ones(const Tensor& made, const Tensor& like) {
  Strides strides = made.strides();
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (made.shape()[i] == 1) strides[i] = like.strides()[i];
  return {made.dtype(), made.shape(), strides, made.storage(), made.bit_offset()};
}

Tensor Rebuild::in_usual_order(Objects& objects, const Tensor& tensor) {
  objects.budget().take(512);  // as computed() does
  const auto read = [tensor](std::span<std::byte> out) { tensor.read(0, out); };
  return Tensor::contiguous_view(tensor.dtype(), tensor.shape(),
                                 Storage::deferred(tensor.size_bytes(), read, {tensor.storage()}));
}

namespace {

// {'conj': True, 'neg': True}: bits of a view that PyTorch resolves when the numbers are used; here when they
// are read.
Ref apply_bits(Objects& objects, const Call& call, Ref tensor, Ref metadata) {
  if (metadata.is_none()) return tensor;
  const ValueNode* dict = as_dict(metadata);
  if (dict == nullptr)
    objects.refuse(Errc::type_mismatch, "{} for the metadata of a tensor", objects.describe(metadata));
  const auto is_set = [&](std::string_view key) {
    const Ref* value = objects.find_now(dict, key);
    return value != nullptr && value->is_true();
  };
  const bool conj = is_set("conj");
  const bool neg = is_set("neg");
  for (std::uint32_t i = 0; i < dict->size; ++i) {
    const auto key = as_text(dict->refs[std::size_t{i} * 2]);
    if (key != "conj" && key != "neg") objects.note_misfit(call);
    // PyTorch looks whether the key is there, not at what it says.
    else if (!dict->refs[std::size_t{i} * 2 + 1].is_true())
      objects.refuse(Errc::unsupported, "{} of a tensor that is {}", quoted(*key),
                     objects.describe(dict->refs[std::size_t{i} * 2 + 1]));
  }
  if (!conj && !neg) return tensor;
  const Tensor plain = Rebuild::value_of(objects, tensor);
  const DTypeInfo& type = info(plain.dtype());
  const bool complex = type.kind == DTypeKind::complex;
  // Of these PyTorch makes no numbers either: without a sign, without a negative zero, or two in a byte.
  const bool odd = plain.dtype() == DType::f8_e8m0 || plain.dtype() == DType::f8_e4m3fnuz ||
                   plain.dtype() == DType::f8_e5m2fnuz || type.bits % 8 != 0;
  if ((type.kind != DTypeKind::floating && !complex) || odd)
    objects.refuse(Errc::unsupported, "a conjugate or negative view of {}", type.code);
  const std::size_t part = item_bytes(plain.dtype()) / (complex ? 2 : 1);
  // The sign bit is the highest bit of the last byte of a number.
  const auto storage =
      Storage::deferred(plain.size_bytes(),
                        [plain, conj, neg, complex, part](std::span<std::byte> out) {
                          plain.read(0, out);
                          for (std::size_t at = 0, number = 0; at < out.size(); at += part, ++number) {
                            const bool flip = neg != (conj && complex && number % 2 == 1);
                            if (flip) out[at + part - 1] ^= std::byte{0x80};
                          }
                        },
                        {plain.storage()});
  const Tensor resolved = Tensor::contiguous_view(plain.dtype(), plain.shape(), storage);
  const Ref made =
      Rebuild::computed(objects, Rebuild::with_strides_of_ones(resolved, plain), tensor.node()->type);
  made.node()->tensor->requires_grad = tensor.node()->tensor->requires_grad;
  made.node()->tensor->location = tensor.node()->tensor->location;
  return made;
}

DType need_dtype(Objects& objects, Ref value) {
  const auto name = as_constant(value, Role::dtype);
  const bool is_name = as_kind(value, NodeKind::global) != nullptr;
  if (!name)
    objects.refuse(is_name ? Errc::bad_dtype : Errc::type_mismatch, "{} where a dtype belongs",
                   objects.describe(value));
  const auto dtype = dtype_of_torch_name(*name);
  if (!dtype) objects.refuse(Errc::bad_dtype, "{}: no such dtype", display(*name));
  return *dtype;
}

// A dtype of a PyTorch that is newer than this: its tensor stays an inert object, and hides no others.
bool is_unknown_dtype(Ref value) {
  const auto name = as_constant(value, Role::dtype);
  return name && !dtype_of_torch_name(*name);
}

Ref of_unknown_dtype(Objects& objects, const Call& call) {
  const auto sizes = objects.need_sequence(call.args[2], "sizes");
  if (sizes.size() > kMaxRank) objects.refuse(Errc::too_many, "a tensor of {} dimensions", sizes.size());
  Shape shape;
  for (const Ref dim : sizes) shape.push_back(objects.need_int(dim, "a size"));
  if (as_kind(call.args[0], NodeKind::storage) == nullptr)
    objects.refuse(Errc::type_mismatch, "{} where a storage belongs", objects.describe(call.args[0]));
  const StorageInfo storage = objects.views().info_of(call.args[0]);
  objects.ledger().note_left_out(
      fmt::format("{}: a tensor {} of the unknown dtype {}, in a storage of {} bytes, is not read",
                  objects.location(), to_string(shape), display(*as_constant(call.args[6], Role::dtype)),
                  storage.numel * item_bytes(storage.dtype)));
  return objects.misfit(call);
}

// Hooks are called when gradients flow: nothing of a model's weights.
// (storage, offset, size, stride), in later versions (…, requires_grad, hooks, [dtype,] [metadata])
Ref strided(Objects& objects, const Call& call, Role role) {
  const bool has_dtype = role == Role::tensor_v3;
  if (role == Role::tensor_v1)
    objects.need_arguments(call, 4, 4);
  else
    objects.need_arguments(call, has_dtype ? 7 : 6, has_dtype ? 8 : 7);
  if (has_dtype && is_unknown_dtype(call.args[6])) return of_unknown_dtype(objects, call);
  const ViewArguments view{.offset = objects.need_int(call.args[1], "a storage offset"),
                           .sizes = objects.need_sequence(call.args[2], "sizes"),
                           .strides = objects.need_sequence(call.args[3], "strides")};
  std::optional<DType> dtype;
  if (has_dtype) dtype = need_dtype(objects, call.args[6]);
  objects.expect_no_hooks(call.callee->type, Objects::argument(call, 5));
  const Ref tensor = objects.views().tensor(call.args[0], view, dtype, Objects::argument(call, 4).is_true());
  if (role == Role::tensor_npu) return tensor;  // its last argument is another library's
  return apply_bits(objects, call, tensor, Objects::argument(call, has_dtype ? 7 : 6));
}

// Shape without bytes.
Ref meta(Objects& objects, DType dtype, Ref size, Ref requires_grad) {
  const auto sizes = objects.need_sequence(size, "sizes");
  if (sizes.size() > kMaxRank) objects.refuse(Errc::too_many, "a tensor of {} dimensions", sizes.size());
  Shape shape;
  for (const Ref dim : sizes) shape.push_back(objects.need_int(dim, "a size"));
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) {
    objects.refuse(Errc::shape_mismatch, "sizes {}", to_string(shape));
  }
  if (!try_count(ShapeView(shape), item_bytes(dtype) * 2))
    objects.refuse(Errc::size_overflow, "a tensor of sizes {}", to_string(shape));
  if (dtype == DType::f4 && shape.empty()) shape.push_back(1);  // a pair, which is two numbers
  if (dtype == DType::f4) shape[shape.size() - 1] *= 2;
  const Ref made = Rebuild::computed(objects, Tensor(dtype, shape), 0);
  made.node()->tensor->requires_grad = requires_grad.is_true();
  return made;
}

// Attributes that would change the tensor itself when Python sets them one by one.
void check_attributes(Objects& objects, const Call& call, const ValueNode* attributes) {
  constexpr std::string_view kOfTensors[] = {"data",  "grad", "grad_dtype", "requires_grad",
                                             "names", "real", "imag"};
  for (std::uint32_t i = 0; i < attributes->size; ++i) {
    const auto name = as_text(attributes->refs[std::size_t{i} * 2]);
    const Ref value = attributes->refs[std::size_t{i} * 2 + 1];
    const bool is_callable = as_kind(value, NodeKind::global) != nullptr;
    if (name == "_is_buffer" && value.is_bool()) continue;  // torch.nn.Buffer's own mark
    // "volatile" Python takes, warns, and forgets.
    if (!name || name->starts_with('_') || is_callable || *name == "volatile") {
      objects.note_misfit(call);
    } else if (std::find(std::begin(kOfTensors), std::end(kOfTensors), *name) != std::end(kOfTensors)) {
      objects.refuse(Errc::unsupported, "an attribute {} of a tensor, which replaces what it holds",
                     quoted(*name));
    }
  }
}

void set_state(Objects& objects, const Call& call, Ref tensor, Ref state) {
  if (state.is_none()) return;
  const ValueNode* held = as_dict(state);
  if (held == nullptr) {  // (attributes, slots)
    objects.note_misfit(call);
    return objects.tree().set_attributes(tensor.node(), state);
  }
  if (held->size == 0) return;
  check_attributes(objects, call, held);
  objects.tree().set_attributes(tensor.node(), Ref(objects.copy_dict(held)));
}

Ref as_parameter(Objects& objects, const Call& call, Role role) {
  if (as_kind(call.args[0], NodeKind::object) != nullptr) return objects.misfit(call);
  const ValueNode* inner = as_kind(call.args[0], NodeKind::tensor);
  if (inner == nullptr)
    objects.refuse(Errc::type_mismatch, "a parameter made of {}", objects.describe(call.args[0]));
  TensorRecord record = *inner->tensor;
  const std::string_view name = objects.tree().type_name(call.callee->type);
  const bool is_buffer = name.ends_with("Buffer");
  record.is_parameter = !is_buffer;
  // Parameters want gradients unless they say otherwise.
  const Ref flag = Objects::argument(call, 1);
  record.requires_grad = flag.is_bool() ? flag.is_true() : !is_buffer;
  const Ref made = objects.tree().tensor(
      record,
      objects.tree().type_id(is_buffer ? "torch.nn.parameter.Buffer" : "torch.nn.parameter.Parameter"));
  objects.expect_no_hooks(call.callee->type, Objects::argument(call, 2));
  if (role == Role::parameter_state) set_state(objects, call, made, Objects::argument(call, 3));
  return made;
}

// Functions that make one tensor of their arguments and call nothing themselves.
bool makes_a_tensor(Role role) {
  using enum Role;
  constexpr Role kMakers[] = {tensor_v1,  tensor_v2,         tensor_v3,      tensor_meta,
                              parameter,  parameter_state,   qtensor,        sparse,
                              sparse_csr, device_from_numpy, device_from_cpu};
  return std::find(std::begin(kMakers), std::end(kMakers), role) != std::end(kMakers);
}

// (function, class, its arguments, state): the function's result with the class's name and the state as
// attributes. The function is one of those above, or a stranger's: nothing that would come back here.
Ref from_type(Objects& objects, const Call& call, Role called) {
  objects.need_arguments(call, 4, 4);
  if (as_kind(call.args[2], NodeKind::tuple) == nullptr) {
    objects.refuse(Errc::type_mismatch, "{} for the arguments of a rebuild function",
                   objects.describe(call.args[2]));
  }
  const ValueNode* function = as_kind(call.args[0], NodeKind::global);
  const ValueNode* type = as_kind(call.args[1], NodeKind::global);
  const Role role = role_of(call.args[0]);
  if (type != nullptr) note_part_of_tensor(objects, type, call);
  if (function == nullptr || type == nullptr || (role != Role::unknown && !makes_a_tensor(role)))
    return objects.misfit(call);
  const Role made_into = role_of(call.args[1]);
  if (made_into != Role::tensor_class && made_into != Role::parameter_class) objects.note_misfit(call);
  const Ref inner = objects.call(call.args[0], call.args[2], Ref::none(), How::call);
  ValueNode* node = as_kind(inner, NodeKind::tensor);
  if (node == nullptr) {  // a stranger's function: what it gives has a class all the same
    const Ref made = objects.inert(call);
    made.node()->type = type->type;
    made.node()->object->args = call.args[2];
    made.node()->object->state = call.args[3];
    return made;
  }
  const Ref made = objects.tree().tensor(*node->tensor, type->type);
  // The older function gives plain tensors no state.
  const bool is_plain = objects.tree().type_name(type->type) == "torch.Tensor";
  if (!is_plain || called == Role::from_type_v2) set_state(objects, call, made, call.args[3]);
  return made;
}

Ref load_from_bytes(Objects& objects, const Call& call) {
  objects.need_arguments(call, 1, 1);
  if (as_kind(call.args[0], NodeKind::object) != nullptr) return objects.misfit(call);
  const std::string_view bytes = objects.need_bytes(call.args[0], "the argument of _load_from_bytes");
  // A copy of its own: tensors of the stream keep it alive, and nothing of the tree.
  objects.budget().take(bytes.size());
  const auto copy = Storage::heap(bytes.size());
  if (!bytes.empty()) std::memcpy(copy->mutable_data(), bytes.data(), bytes.size());
  return objects.load_stream(copy, fmt::format("{}: the stream inside", objects.location()));
}

Ref device_from_cpu(Objects& objects, const Call& call) {
  objects.need_arguments(call, 4, 4);
  const ValueNode* inner = as_kind(call.args[0], NodeKind::tensor);
  if (inner == nullptr)
    objects.refuse(Errc::type_mismatch, "a device tensor made of {}", objects.describe(call.args[0]));
  TensorRecord record = *inner->tensor;
  if (need_dtype(objects, call.args[1]) != record.dtype)
    objects.refuse(Errc::unsupported, "a device tensor of another dtype than the one it is made of");
  objects.note_copied(call);
  record.requires_grad = call.args[3].is_true();
  const auto device = device_text(call.args[2]);
  if (!device || *device == "cpu") objects.note_misfit(call);  // to new releases that is the same tensor
  record.location = !device || *device == "cpu" ? 0 : objects.tree().type_id(*device);
  if (device) objects.note_device(*device);
  return objects.tree().tensor(record);
}

Ref wrapper_subclass(Objects& objects, const Call& call) {
  objects.need_arguments(call, 8, 8);
  // only to refuse nonsense
  static_cast<void>(meta(objects, need_dtype(objects, call.args[1]), call.args[2], call.args[7]));
  const Ref made = objects.inert(call);
  if (const ValueNode* type = as_kind(call.args[0], NodeKind::global)) {
    made.node()->type = type->type;
    note_part_of_tensor(objects, type, call);
  }
  if (role_of(call.args[0]) != Role::tensor_class) objects.note_misfit(call);
  return made;
}

// An object that has no numbers until its state comes.
Ref empty_tensor(Objects& objects, const Call& call, Role role) {
  if (!call.args.empty()) return objects.misfit(call);
  return objects.inert(call, role);
}

}  // namespace

Ref Rebuild::tensor(Objects& objects, const Call& call, Role role) {
  switch (role) {
    case Role::tensor_meta:
      objects.need_arguments(call, 4, 4);
      return meta(objects, need_dtype(objects, call.args[0]), call.args[1], call.args[3]);
    case Role::wrapper_subclass:
      return wrapper_subclass(objects, call);
    case Role::device_from_cpu:
      return device_from_cpu(objects, call);
    case Role::parameter:
      objects.need_arguments(call, 3, 3);
      return as_parameter(objects, call, role);
    case Role::parameter_state:
      objects.need_arguments(call, 4, 4);
      return as_parameter(objects, call, role);
    case Role::parameter_class:
      if (call.args.empty()) return empty_tensor(objects, call, role);
      if (call.args.size() > 2) return objects.misfit(call);
      return as_parameter(objects, call, role);
    case Role::tensor_class:
      return empty_tensor(objects, call, role);
    case Role::from_type:
    case Role::from_type_v2:
      return from_type(objects, call, role);
    case Role::load_from_bytes:
      return load_from_bytes(objects, call);
    default:
      return strided(objects, call, role);
  }
}

// (requires_grad, unused, hooks): what a tensor that is there already may still hear.
void Rebuild::build_made_tensor(Objects& objects, ValueNode* node, Ref state) {
  const auto parts = objects.need_sequence(state, "the state of a tensor");
  if (parts.size() != 3 || !parts[0].is_bool())
    objects.refuse(Errc::type_mismatch, "BUILD with a state of {} parts on {}", parts.size(),
                   objects.describe(Ref(node)));
  objects.expect_no_hooks(node->type, parts[2]);
  node->tensor->requires_grad = parts[0].is_true();
}

// torch 0.1: an empty tensor object whose state is (storage, offset, sizes, strides), or a Variable around
// one.
void Rebuild::build_tensor(Objects& objects, ValueNode* node, Ref state) {
  const auto parts = objects.need_sequence(state, "the state of a tensor");
  const auto become = [&](const TensorRecord& record) {
    node->tensor = objects.tree().tensor(record).node()->tensor;
    node->kind = NodeKind::tensor;
    node->role = 0;
  };
  const std::string_view name = objects.tree().type_name(node->type);
  const bool is_view = parts.size() == 4 && as_kind(parts[0], NodeKind::storage) != nullptr;
  if (is_view && static_cast<Role>(node->role) == Role::tensor_class) {
    const ViewArguments view{.offset = objects.need_int(parts[1], "a storage offset"),
                             .sizes = objects.need_sequence(parts[2], "sizes"),
                             .strides = objects.need_sequence(parts[3], "strides")};
    const TensorRecord& made = *objects.views().tensor(parts[0], view, {}, false).node()->tensor;
    const std::string_view scalar = name.substr(name.rfind('.') + 1);
    const auto dtype =
        dtype_from_torch_scalar(scalar.substr(0, scalar.size() - std::string_view("Tensor").size()));
    if (dtype && *dtype != made.dtype)
      objects.refuse(Errc::bad_dtype, "a {} over a storage of {}", name, info(made.dtype).code);
    return become(made);
  }
  // Variable and Parameter: (data, gradient, hooks, requires_grad, volatile); other releases had other tuples
  const ValueNode* data = parts.size() >= 2 ? as_kind(parts[0], NodeKind::tensor) : nullptr;
  if (data == nullptr || static_cast<Role>(node->role) != Role::parameter_class)
    objects.refuse(Errc::type_mismatch, "a state of {} parts for {}", parts.size(), name);
  TensorRecord record = *data->tensor;
  record.is_parameter = name.ends_with("Parameter");
  if (parts.size() != 5 || !parts[3].is_bool()) objects.ledger().note_misfit(node->type);
  if (parts.size() == 5) objects.expect_no_hooks(node->type, parts[2]);
  if (parts.size() == 5) record.requires_grad = parts[3].is_true();
  for (const Ref part : parts.subspan(1)) record.requires_grad |= parts.size() != 5 && part.is_true();
  become(record);
}

}  // namespace ballast::torch
