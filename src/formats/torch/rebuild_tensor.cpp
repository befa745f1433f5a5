// SPDX-License-Identifier: Apache-2.0
// Tensors over storages: every argument PyTorch trusts is checked here. Its own reader had a heap overflow in
// this place.
#include <algorithm>

#include "ballast/display.h"
#include "base/checked.h"
#include "formats/source.h"
#include "formats/torch/objects.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kMaxRank = 64;

std::string shape_text(std::span<const std::int64_t> dims) {
  return to_string(ShapeView(dims));
}

// Elements, or nullopt when their number, or that of their bytes, does not fit.
std::optional<std::int64_t> count_elements(std::span<const std::int64_t> sizes, std::uint64_t item) {
  const auto count = try_numel(ShapeView(sizes));
  if (!count || !try_mul<std::int64_t>(*count, static_cast<std::int64_t>(item))) return std::nullopt;
  return count;
}

struct Reach {
  Int128 last = 0;    // furthest element from the first
  bool wild = false;  // a stride that leads outside of everything
};

Reach reach_of(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  Reach extent;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;  // its stride is never used
    const Int128 reach = static_cast<Int128>(sizes[i] - 1) * strides[i];
    if (strides[i] < 0 || reach > INT64_MAX)
      extent.wild = true;
    else
      extent.last += reach;
  }
  return extent;
}

bool is_row_major(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  std::uint64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (static_cast<std::uint64_t>(strides[i]) != expected) return false;
    expected *= static_cast<std::uint64_t>(sizes[i]);
  }
  return true;
}

}  // namespace

Ref Objects::tensor(Ref storage, const ViewArguments& view, std::optional<DType> wanted, bool requires_grad) {
  if (as_kind(storage, NodeKind::storage) == nullptr)
    refuse(Errc::type_mismatch, "{} where a storage belongs", describe(storage));
  const StorageInfo info = storage_info(storage);
  const DType dtype = wanted ? *wanted : info.dtype.value_or(DType::u8);
  const std::size_t rank = view.sizes.size();
  if (rank != view.strides.size())
    refuse(Errc::size_mismatch, "a tensor of {} sizes and {} strides", rank, view.strides.size());
  if (rank > kMaxRank) refuse(Errc::too_many, "a tensor of {} dimensions, {} are the most", rank, kMaxRank);
  auto* dims = tree_->allocate_array<std::int64_t>(rank * 2);
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = need_int(view.sizes[i], "a size");
    dims[rank + i] = need_int(view.strides[i], "a stride");
    if (dims[i] < 0) refuse(Errc::shape_mismatch, "a size of {}", dims[i]);
  }
  const std::span<std::int64_t> sizes(dims, rank);
  const std::span<std::int64_t> strides(dims + rank, rank);
  const std::uint64_t item = item_bytes(dtype);
  const auto count = count_elements(sizes, item);
  if (!count)
    refuse(Errc::size_overflow, "a tensor of sizes {} has more bytes than 64 bits can count",
           shape_text(sizes));
  // The storage in elements of this dtype; sub-byte types are packed, so they have more of them.
  const std::uint64_t held = info.dtype ? info.numel * item_bytes(*info.dtype) : info.numel;
  const std::uint64_t begin = info.offset * (info.dtype ? item_bytes(*info.dtype) : 1);
  const std::uint64_t bits = ballast::info(dtype).bits;
  const std::uint64_t capacity = bits < 8 && dtype != DType::f4 ? held * 8 / bits : held / item;
  const Reach extent = reach_of(sizes, strides);
  if (view.offset < 0 || extent.wild ||
      (*count > 0 && extent.last + view.offset >= static_cast<Int128>(capacity))) {
    refuse(Errc::offset_out_of_range,
           "a tensor of sizes {}, strides {} from element {} does not fit into its storage of {} elements",
           shape_text(sizes), shape_text(strides), view.offset, capacity);
  }
  const std::uint64_t logical = static_cast<std::uint64_t>(*count) * item;
  if (logical > held && logical > expansion_limit()) {
    refuse(Errc::expanded_view, "a tensor of sizes {} shows {} bytes of a storage of {}", shape_text(sizes),
           logical, held);
  }
  std::uint64_t bit_offset = *count > 0 ? (begin + static_cast<std::uint64_t>(view.offset) * item) * 8 : 0;
  std::size_t kept_rank = rank;
  if (dtype == DType::f4) {  // two numbers a byte, counted as one by PyTorch
    if (!is_row_major(sizes, strides))
      refuse(Errc::unsupported, "a float4 tensor with strides {}", shape_text(strides));
    kept_rank = std::max<std::size_t>(rank, 1);
    auto* doubled = tree_->allocate_array<std::int64_t>(kept_rank * 2);
    doubled[0] = 1;
    std::copy(sizes.begin(), sizes.end(), doubled);
    doubled[kept_rank - 1] *= 2;
    const Strides packed = contiguous_strides(ShapeView(doubled, kept_rank));
    std::copy(packed.begin(), packed.end(), doubled + kept_rank);
    dims = doubled;
  }
  const std::uint32_t index = info.big_endian ? swapped_storage(info.index, dtype) : info.index;
  return tree_->tensor({.dtype = dtype,
                        .requires_grad = requires_grad,
                        .is_parameter = false,
                        .rank = static_cast<std::uint32_t>(kept_rank),
                        .storage = index,
                        .location = info.location,
                        .details = 0,
                        .bit_offset = bit_offset,
                        .dims = dims});
}

// Files of big-endian machines: the bytes of each number reversed, by what the tensor says they are. Done
// when they are read.
std::uint32_t Objects::swapped_storage(std::uint32_t index, DType dtype) {
  const bool complex = ballast::info(dtype).kind == DTypeKind::complex;
  const std::uint64_t unit = complex ? item_bytes(dtype) / 2 : item_bytes(dtype);
  if (unit == 1) return index;
  const auto [slot, added] = swapped_.try_emplace(std::uint64_t{index} * 16 + unit,
                                                  static_cast<std::uint32_t>(tree_->storages.size()));
  if (!added) return slot->second;
  const auto source = tree_->storages[index];
  tree_->storages.push_back(Storage::deferred(source->size(), [source, unit](std::span<std::byte> out) {
    source->read(0, out);
    for (std::size_t at = 0; at + unit <= out.size(); at += unit)
      std::reverse(out.data() + at, out.data() + at + unit);
  }));
  return slot->second;
}

Ref Rebuild::computed(Objects& objects, const Tensor& tensor, TypeId type) {
  const Ref made = objects.tree_->tensor(TensorValue{.tensor = tensor});
  made.node()->type = type;
  return made;
}

namespace {

// {'conj': True, 'neg': True}: bits of a view that PyTorch resolves when the numbers are used; here when they
// are read.
Ref apply_bits(Objects& objects, Ref tensor, Ref metadata) {
  const Node* dict = Objects::as_kind(metadata, NodeKind::dict);
  if (dict == nullptr) return tensor;
  const auto is_set = [&](std::string_view key) {
    const Ref* value = objects.tree().find(dict, key);
    return value != nullptr && value->is_true();
  };
  const bool conj = is_set("conj");
  const bool neg = is_set("neg");
  if (!conj && !neg) return tensor;
  const Tensor plain = Rebuild::value_of(objects, tensor);
  const DTypeInfo& type = info(plain.dtype());
  const bool complex = type.kind == DTypeKind::complex;
  if (type.kind != DTypeKind::floating && !complex)
    objects.refuse(Errc::unsupported, "a conjugate or negative view of {}", type.code);
  const std::size_t part = item_bytes(plain.dtype()) / (complex ? 2 : 1);
  // The sign bit is the highest bit of the last byte of a number.
  const auto storage =
      Storage::deferred(plain.size_bytes(), [plain, conj, neg, complex, part](std::span<std::byte> out) {
        plain.read(0, out);
        for (std::size_t at = 0, number = 0; at < out.size(); at += part, ++number) {
          const bool flip = neg != (conj && complex && number % 2 == 1);
          if (flip) out[at + part - 1] ^= std::byte{0x80};
        }
      });
  const Ref made = Rebuild::computed(objects, Tensor::contiguous_view(plain.dtype(), plain.shape(), storage),
                                     tensor.node()->type);
  made.node()->tensor->requires_grad = tensor.node()->tensor->requires_grad;
  made.node()->tensor->location = tensor.node()->tensor->location;
  return made;
}

Ref strided(Objects& objects, const Call& call, Role role) {
  objects.need_arguments(call, role == Role::tensor_v3 ? 7 : 4);
  const ViewArguments view{.offset = objects.need_int(call.args[1], "a storage offset"),
                           .sizes = objects.need_sequence(call.args[2], "sizes"),
                           .strides = objects.need_sequence(call.args[3], "strides")};
  std::optional<DType> dtype;
  if (role == Role::tensor_v3) {
    const Node* named = Objects::as_kind(call.args[6], NodeKind::string);
    const Node* global = Objects::as_kind(call.args[6], NodeKind::global);
    if ((named == nullptr || static_cast<Role>(named->role) != Role::dtype) && global == nullptr) {
      objects.refuse(Errc::type_mismatch, "{} where a dtype belongs", objects.describe(call.args[6]));
    }
    if (named != nullptr) dtype = dtype_of_torch_name({named->text, named->size});
    if (!dtype) objects.refuse(Errc::bad_dtype, "{}: no such dtype", objects.describe(call.args[6]));
  }
  const Ref tensor = objects.tensor(call.args[0], view, dtype, Objects::argument(call, 4).is_true());
  return apply_bits(objects, tensor, Objects::argument(call, role == Role::tensor_v3 ? 7 : 6));
}

DType need_dtype(Objects& objects, Ref value) {
  const auto name = Objects::as_text(value);
  if (!name) objects.refuse(Errc::type_mismatch, "{} where a dtype belongs", objects.describe(value));
  const auto dtype = dtype_of_torch_name(*name);
  if (!dtype) objects.refuse(Errc::bad_dtype, "{}: no such dtype", display(*name));
  return *dtype;
}

// Shape without bytes.
Ref meta(Objects& objects, DType dtype, Ref size) {
  const auto sizes = objects.need_sequence(size, "sizes");
  if (sizes.size() > kMaxRank) objects.refuse(Errc::too_many, "a tensor of {} dimensions", sizes.size());
  Shape shape;
  for (const Ref dim : sizes) shape.push_back(objects.need_int(dim, "a size"));
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) {
    objects.refuse(Errc::shape_mismatch, "sizes {}", to_string(shape));
  }
  if (dtype == DType::f4 && !shape.empty()) shape[shape.size() - 1] *= 2;
  return Rebuild::computed(objects, Tensor(dtype, shape), 0);
}

Ref as_parameter(Objects& objects, const Call& call) {
  objects.need_arguments(call, 1);
  if (Objects::as_kind(call.args[0], NodeKind::object) != nullptr) return objects.inert(call);
  const Node* inner = Objects::as_kind(call.args[0], NodeKind::tensor);
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
  if (call.args.size() > 3 && !call.args[3].is_none())
    objects.tree().set_attributes(made.node(), call.args[3]);
  return made;
}

// (function, class, its arguments, state): the function's result with the class's name and the state as
// attributes.
Ref from_type(Objects& objects, const Call& call) {
  objects.need_arguments(call, 3);
  if (Objects::as_kind(call.args[2], NodeKind::tuple) == nullptr) {
    objects.refuse(Errc::type_mismatch, "{} for the arguments of a rebuild function",
                   objects.describe(call.args[2]));
  }
  const Ref inner = objects.call(call.args[0], call.args[2], Ref::none(), false);
  const Ref state = Objects::argument(call, 3);
  if (!inner.is_node()) return inner;
  ValueTree& tree = objects.tree();
  Ref made = inner;
  if (inner.node()->kind == NodeKind::tensor) made = tree.tensor(*inner.node()->tensor, inner.node()->type);
  if (const Node* type = Objects::as_kind(call.args[1], NodeKind::global)) made.node()->type = type->type;
  const Node* held = Objects::as_kind(state, NodeKind::dict);
  if (state.is_none() || (held != nullptr && held->size == 0)) return made;
  if (made.node()->kind == NodeKind::object)
    made.node()->object->state = state;
  else
    tree.set_attributes(made.node(), state);
  return made;
}

Ref load_from_bytes(Objects& objects, const Call& call) {
  objects.need_arguments(call, 1);
  if (Objects::as_kind(call.args[0], NodeKind::object) != nullptr) return objects.inert(call);
  const std::string_view bytes = objects.need_bytes(call.args[0], "the argument of _load_from_bytes");
  // A copy of its own: tensors of the stream keep it alive, and nothing of the tree.
  objects.spend(bytes.size());
  const auto copy = Storage::heap(bytes.size());
  if (!bytes.empty()) std::memcpy(copy->mutable_data(), bytes.data(), bytes.size());
  return objects.load_stream(copy, fmt::format("{}: the stream inside", objects.location()));
}

}  // namespace

Ref Rebuild::tensor(Objects& objects, const Call& call, Role role) {
  switch (role) {
    case Role::tensor_meta:
      objects.need_arguments(call, 2);
      return meta(objects, need_dtype(objects, call.args[0]), call.args[1]);
    case Role::wrapper_subclass: {
      objects.need_arguments(call, 3);
      static_cast<void>(
          meta(objects, need_dtype(objects, call.args[1]), call.args[2]));  // only to refuse nonsense
      const Ref made = objects.inert(call);
      made.node()->role = static_cast<std::uint8_t>(Role::unknown);
      if (const Node* type = Objects::as_kind(call.args[0], NodeKind::global)) made.node()->type = type->type;
      return made;
    }
    case Role::device_from_cpu: {
      objects.need_arguments(call, 3);
      const Node* inner = Objects::as_kind(call.args[0], NodeKind::tensor);
      if (inner == nullptr)
        objects.refuse(Errc::type_mismatch, "a device tensor made of {}", objects.describe(call.args[0]));
      TensorRecord record = *inner->tensor;
      record.requires_grad = Objects::argument(call, 3).is_true();
      if (const auto device = Objects::as_text(call.args[2]))
        record.location = *device == "cpu" ? 0 : objects.tree().type_id(*device);
      return objects.tree().tensor(record);
    }
    case Role::parameter:
    case Role::parameter_state:
      return as_parameter(objects, call);
    case Role::parameter_class:
      return call.args.empty() ? objects.inert(call) : as_parameter(objects, call);
    case Role::from_type:
    case Role::from_type_v2:
      return from_type(objects, call);
    case Role::load_from_bytes:
      return load_from_bytes(objects, call);
    default:
      return strided(objects, call, role);
  }
}

// torch 0.1: an empty tensor object whose state is (storage, offset, sizes, strides), or a Variable around
// one.
void Rebuild::build_tensor(Objects& objects, Node* node, Ref state) {
  const Node* tuple = Objects::as_kind(state, NodeKind::tuple);
  const auto take = [&](const Node* made, bool is_parameter) {
    node->tensor = objects.tree().tensor(*made->tensor).node()->tensor;
    node->tensor->is_parameter = is_parameter;
    node->kind = NodeKind::tensor;
  };
  if (tuple != nullptr && tuple->size == 4 &&
      Objects::as_kind(tuple->refs[0], NodeKind::storage) != nullptr) {
    const std::span<const Ref> parts(tuple->refs, 4);
    const ViewArguments view{.offset = objects.need_int(parts[1], "a storage offset"),
                             .sizes = objects.need_sequence(parts[2], "sizes"),
                             .strides = objects.need_sequence(parts[3], "strides")};
    take(objects.tensor(parts[0], view, {}, false).node(), false);
    return;
  }
  if (tuple != nullptr && tuple->size >= 2) {
    const Node* data = Objects::as_kind(tuple->refs[0], NodeKind::tensor);
    if (data != nullptr) {
      const bool is_parameter = objects.tree().type_name(node->type).ends_with("Parameter");
      take(data, is_parameter);
      for (std::uint32_t i = 1; i < tuple->size; ++i) node->tensor->requires_grad |= tuple->refs[i].is_true();
      return;
    }
  }
  node->object->state = state;
}

}  // namespace ballast::torch
