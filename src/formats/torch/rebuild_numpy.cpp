// SPDX-License-Identifier: Apache-2.0
// NumPy's arrays, scalars and dtypes. Their bytes lie inside the pickle.
#include <algorithm>
#include <cstring>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/checked.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle_text.h"

namespace ballast::torch {
namespace {

struct NumpyType {
  bool swapped = false;
  char kind = 0;            // b i u f c U S O M m V
  std::uint64_t bytes = 0;  // of one element
  std::optional<DType> dtype;
};

NumpyType need_type(Objects& objects, Ref value) {
  const ValueNode* node = as_kind(value, NodeKind::string);
  if (node == nullptr || static_cast<Role>(node->role) != Role::numpy_dtype) {
    objects.refuse(Errc::type_mismatch, "{} where a numpy.dtype belongs", objects.describe(value));
  }
  const_cast<ValueNode*>(node)->flag = true;  // it is what it is from here on: NumPy's arrays share it
  std::string_view text(node->text, node->size);
  NumpyType type;
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos) {
    type.swapped = text[0] == '>';
    text.remove_prefix(1);
  }
  if (text.empty()) return type;
  type.kind = text[0];
  for (const char digit : text.substr(1)) {  // is_type_name() has looked at them
    if (digit < '0' || digit > '9' || type.bytes > (UINT32_MAX >> 4U)) return type;
    type.bytes = type.bytes * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (type.kind == 'U') type.bytes *= 4;
  type.dtype = dtype_from_numpy(text);
  return type;
}

// "<f4", "U5", "O8": what pickled dtypes are called. NumPy understands much more.
bool is_type_name(std::string_view text) {
  if (!text.empty() && std::string_view("<>|=").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  if (text.empty() || std::string_view("biufcSUOVMm").find(text[0]) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return text.size() <= 8 &&  // beyond, sizes do not fit into NumPy's 31 bits
         all_digits(text);
}

// "numpy.float64": but for one, NumPy's scalars are called like PyTorch's dtypes.
std::string scalar_class(DType dtype) {
  return dtype == DType::boolean ? "numpy.bool_" : "numpy." + std::string(info(dtype).torch_name);
}

void swap_bytes(std::span<std::byte> bytes, std::size_t unit) {
  for (std::size_t at = 0; at + unit <= bytes.size(); at += unit)
    std::reverse(bytes.data() + at, bytes.data() + at + unit);
}

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// One number as a value; `bytes` are little-endian and as long as the dtype.
Ref number(Objects& objects, DType dtype, const std::byte* bytes, TypeId type) {
  ValueTree& tree = objects.tree();
  switch (dtype) {
    case DType::boolean: {
      ValueNode* node = tree.make(NodeKind::boolean, type);
      node->flag = bytes[0] != std::byte{0};
      return Ref(node);
    }
    case DType::i8:
      return tree.integer(load<std::int8_t>(bytes), type);
    case DType::u8:
      return tree.integer(load<std::uint8_t>(bytes), type);
    case DType::i16:
      return tree.integer(load<std::int16_t>(bytes), type);
    case DType::u16:
      return tree.integer(load<std::uint16_t>(bytes), type);
    case DType::i32:
      return tree.integer(load<std::int32_t>(bytes), type);
    case DType::u32:
      return tree.integer(load<std::uint32_t>(bytes), type);
    case DType::i64:
      return tree.integer(load<std::int64_t>(bytes), type);
    case DType::u64: {
      const auto value = load<std::uint64_t>(bytes);
      if (value <= INT64_MAX) return tree.integer(static_cast<std::int64_t>(value), type);
      const Ref made = tree.decimal_integer(tree.store(std::to_string(value)));
      made.node()->type = type;
      return made;
    }
    case DType::f16:
      return tree.floating(Tensor::from<Half>({load<Half>(bytes)}, {}).item(), type);
    case DType::f32:
      return tree.floating(load<float>(bytes), type);
    case DType::f64:
      return tree.floating(load<double>(bytes), type);
    case DType::c64:
      return tree.complex(load<float>(bytes), load<float>(bytes + 4), type);
    default:
      return tree.complex(load<double>(bytes), load<double>(bytes + 8), type);
  }
}

Ref scalar_of(Objects& objects, const NumpyType& type, std::string_view data, std::string_view name) {
  std::byte bytes[16] = {};
  std::memcpy(bytes, data.data(), data.size());
  if (type.swapped) swap_bytes(std::span(bytes).first(data.size()), swap_unit(*type.dtype));
  return number(objects, *type.dtype, bytes, objects.tree().type_id(name));
}

Ref numpy_text(Objects& objects, const NumpyType& type, std::string_view data) {
  ValueTree& tree = objects.tree();
  if (type.kind == 'S')  // NumPy fills up with NULs and forgets them again
    return tree.bytes(data.substr(0, data.find_last_not_of('\0') + 1), tree.type_id("numpy.bytes_"));
  objects.budget().step(data.size());
  std::string text;
  for (std::size_t at = 0; at + 4 <= data.size(); at += 4) {
    auto character = load<std::uint32_t>(reinterpret_cast<const std::byte*>(data.data()) + at);
    if (type.swapped) character = __builtin_bswap32(character);
    if (character > 0x10FFFF) objects.refuse(Errc::bad_pickle, "NumPy text with character {:#x}", character);
    append_utf8(text, character);
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return tree.string(tree.store(text), tree.type_id("numpy.str_"));
}

Ref scalar(Objects& objects, const Call& call) {
  objects.need_arguments(call, 2, 2);
  const NumpyType type = need_type(objects, call.args[0]);
  if (!type.dtype && type.kind != 'U' && type.kind != 'S') return objects.misfit(call);
  const std::string_view data = objects.need_bytes(call.args[1], "the bytes of a NumPy scalar");
  if (data.size() != type.bytes) {
    objects.refuse(Errc::size_mismatch, "a NumPy scalar of {} bytes, its dtype has {}", data.size(),
                   type.bytes);
  }
  return type.dtype ? scalar_of(objects, type, data, scalar_class(*type.dtype))
                    : numpy_text(objects, type, data);
}

struct ArrayShape {
  Shape sizes;
  Strides strides;
  std::uint64_t bytes = 0;
};

ArrayShape need_shape(Objects& objects, Ref value, std::uint64_t item, bool fortran) {
  ArrayShape shape;
  const auto sizes = objects.need_sequence(value, "the shape of a NumPy array");
  if (sizes.size() > 64) objects.refuse(Errc::too_many, "a NumPy array of {} dimensions", sizes.size());
  for (const Ref size : sizes) shape.sizes.push_back(objects.need_int(size, "a size"));
  if (std::any_of(shape.sizes.begin(), shape.sizes.end(), [](std::int64_t dim) { return dim < 0; })) {
    objects.refuse(Errc::shape_mismatch, "a NumPy array of shape {}", to_string(shape.sizes));
  }
  const auto count = try_count(shape.sizes, item);
  if (!count) objects.refuse(Errc::size_overflow, "a NumPy array of shape {}", to_string(shape.sizes));
  shape.bytes = static_cast<std::uint64_t>(*count) * item;
  shape.strides = contiguous_strides(shape.sizes);
  if (fortran) {
    std::int64_t step = 1;
    for (std::size_t i = 0; i < shape.sizes.size(); ++i) {
      shape.strides[i] = step;
      step *= std::max<std::int64_t>(shape.sizes[i], 1);
    }
  }
  return shape;
}

// Tensor, or a number when there are no dimensions. The bytes are copied: a tensor must not keep the whole
// pickle alive.
Ref array(Objects& objects, const NumpyType& type, const ArrayShape& shape, std::string_view data,
          TypeId class_id) {
  if (data.size() != shape.bytes) {
    objects.refuse(Errc::size_mismatch, "a NumPy array of shape {} needs {} bytes, {} are there",
                   to_string(shape.sizes), shape.bytes, data.size());
  }
  if (shape.sizes.empty()) return scalar_of(objects, type, data, objects.tree().type_name(class_id));
  objects.budget().take(data.size());
  const auto storage = Storage::heap(data.size());
  if (!data.empty()) std::memcpy(storage->mutable_data(), data.data(), data.size());
  if (type.swapped) swap_bytes({storage->mutable_data(), data.size()}, swap_unit(*type.dtype));
  return Rebuild::computed(objects, Tensor(*type.dtype, shape.sizes, shape.strides, storage), class_id);
}

Ref from_buffer(Objects& objects, const Call& call) {
  objects.need_arguments(call, 4, 4);
  const NumpyType type = need_type(objects, call.args[1]);
  const auto order = as_text(call.args[3]);
  if (!type.dtype || (order != "C" && order != "F")) {
    const Ref made = objects.misfit(call);
    made.node()->type = objects.tree().type_id("numpy.ndarray");
    return made;
  }
  const bool fortran = order == "F";
  const ArrayShape shape = need_shape(objects, call.args[2], type.bytes, fortran);
  return array(objects, type, shape, objects.need_bytes(call.args[0], "the buffer of a NumPy array"),
               objects.tree().type_id("numpy.ndarray"));
}

}  // namespace

Ref Rebuild::numpy(Objects& objects, const Call& call, Role role) {
  switch (role) {
    case Role::numpy_scalar:
      return scalar(objects, call);
    case Role::numpy_frombuffer:
      return from_buffer(objects, call);
    case Role::numpy_dtype: {
      objects.need_arguments(call, 1, 3);  // (name, align, copy)
      const std::string_view name = objects.need_bytes(call.args[0], "the name of a numpy.dtype");
      if (!is_type_name(name)) return objects.misfit(call);
      const auto is = [&](std::size_t index, bool wanted) {
        const Ref flag = Objects::argument(call, index);
        return flag == Ref::boolean(wanted) || flag == Ref::small(wanted ? 1 : 0);
      };
      if (!is(1, false) && call.args.size() > 1) return objects.misfit(call);
      const Ref made = objects.tree().string(name, objects.tree().type_id("numpy.dtype"));
      made.node()->role = static_cast<std::uint8_t>(Role::numpy_dtype);
      made.node()->flag = !is(2, true);  // one of NumPy's own, which no state changes
      return made;
    }
    default: {  // _reconstruct(class, (0,), b'b'): an empty array until its state comes
      objects.need_arguments(call, 3, 3);
      const ValueNode* type = as_kind(call.args[0], NodeKind::global);
      const auto sizes = objects.need_sequence(call.args[1], "the shape of a NumPy array");
      if (type == nullptr || sizes.size() != 1 || as_int(sizes[0]) != 0) return objects.misfit(call);
      const Ref made = objects.inert(call);
      made.node()->type = type->type;
      made.node()->role = static_cast<std::uint8_t>(Role::numpy_reconstruct);
      if (role_of(call.args[0]) != Role::numpy_ndarray) objects.note_misfit(call);
      return made;
    }
  }
}

namespace {

// What NumPy writes for a plain type behind its name: item size, alignment, flags. Flags say whether items
// are pointers to objects, and NumPy believes them.
struct TypeTail {
  std::int64_t item = -1;
  std::int64_t alignment = -1;
  std::int64_t flags = 0;

  friend bool operator==(const TypeTail&, const TypeTail&) = default;
};

std::optional<TypeTail> tail_of(const NumpyType& type) {
  const auto bytes = static_cast<std::int64_t>(type.bytes);
  if (type.kind == 'O') return TypeTail{.flags = 63};
  if (type.kind == 'U') return TypeTail{.item = bytes, .alignment = 4, .flags = 8};
  if (type.kind == 'S') return TypeTail{.item = bytes, .alignment = 1};
  if (type.dtype) return TypeTail{};
  return std::nullopt;
}

// (version, byte order, subtype, names, fields, item size, alignment, flags [, metadata]): of plain types
// only the order says something the name does not.
void build_dtype(Objects& objects, ValueNode* node, std::span<const Ref> parts) {
  if (node->flag) objects.refuse(Errc::type_mismatch, "BUILD on a numpy.dtype that is in use");
  if (parts.size() < 8 || parts.size() > 9)
    objects.refuse(Errc::type_mismatch, "a numpy.dtype state of {} parts", parts.size());
  for (const std::size_t part : {std::size_t{2}, std::size_t{3}, std::size_t{4}}) {
    if (!parts[part].is_none()) objects.refuse(Errc::unsupported, "a structured numpy.dtype");
  }
  const std::int64_t version = objects.need_int(parts[0], "the version of a numpy.dtype");
  const auto order = objects.need_bytes(parts[1], "a byte order");
  if ((version != 3 && version != 4) || order.size() != 1 ||
      std::string_view("<>|=").find(order[0]) == std::string_view::npos)
    objects.refuse(Errc::bad_pickle, "version {}, byte order {} of a numpy.dtype", version, quoted(order));
  const std::string_view old(node->text, node->size);
  const bool has_order = std::string_view("<>|=").find(old[0]) != std::string_view::npos;
  const std::string_view text =
      objects.tree().store(std::string(order) + std::string(old.substr(has_order ? 1 : 0)));
  node->text = text.data();
  node->size = static_cast<std::uint32_t>(text.size());
  const auto usual = tail_of(need_type(objects, Ref(node)));
  const TypeTail tail{.item = objects.need_int(parts[5], "the item size of a numpy.dtype"),
                      .alignment = objects.need_int(parts[6], "the alignment of a numpy.dtype"),
                      .flags = objects.need_int(parts[7], "the flags of a numpy.dtype")};
  if (!usual || parts.size() == 9)
    return objects.ledger().note_misfit(node->type);  // dates, and what has metadata
  if (!(tail == *usual)) {
    objects.refuse(Errc::size_mismatch, "a numpy.dtype {} with item size {}, alignment {} and flags {}",
                   quoted(text), tail.item, tail.alignment, tail.flags);
  }
}

// Text, objects, dates: kept as they are. NumPy takes what stands for objects on trust, so that is looked at.
void keep_array(Objects& objects, ValueNode* node, const NumpyType& type, std::span<const Ref> parts,
                Ref state) {
  const ValueNode* list = as_kind(parts[4], NodeKind::list);
  const ArrayShape shape = need_shape(objects, parts[1], std::max<std::uint64_t>(type.bytes, 1), false);
  const std::uint64_t count = shape.bytes / std::max<std::uint64_t>(type.bytes, 1);
  if (type.kind == 'O') {
    if (list == nullptr || list->size != count)
      objects.refuse(Errc::type_mismatch, "a NumPy array of {} objects made of {}", count,
                     objects.describe(parts[4]));
  } else if (type.kind != 'U' && type.kind != 'S') {
    objects.ledger().note_misfit(node->type);
  } else if (objects.need_bytes(parts[4], "the bytes of a NumPy array").size() != shape.bytes) {
    objects.refuse(Errc::size_mismatch, "a NumPy array of text that needs {} bytes", shape.bytes);
  }
  node->role = static_cast<std::uint8_t>(Role::numpy_ndarray);  // no state comes again
  node->object->state = state;
  if (list != nullptr)
    node->object->items = objects.tree().sequence(NodeKind::list, {list->refs, list->size});
}

}  // namespace

void Rebuild::build_numpy(Objects& objects, ValueNode* node, Ref state) {
  const auto parts = objects.need_sequence(state, "the state of a NumPy object");
  if (node->kind == NodeKind::string) return build_dtype(objects, node, parts);
  // array: (version, shape, dtype, Fortran order, bytes or list)
  if (parts.size() != 5) objects.refuse(Errc::type_mismatch, "a NumPy array state of {} parts", parts.size());
  const NumpyType type = need_type(objects, parts[2]);
  if (!parts[3].is_bool())
    objects.refuse(Errc::type_mismatch, "{} for the order of a NumPy array", objects.describe(parts[3]));
  if (!type.dtype) return keep_array(objects, node, type, parts, state);
  const ArrayShape shape = need_shape(objects, parts[1], type.bytes, parts[3].is_true());
  const Ref made =
      array(objects, type, shape, objects.need_bytes(parts[4], "the bytes of a NumPy array"), node->type);
  *node = *made.node();
}

// Tensors of devices without storages travel as arrays; dtypes NumPy lacks arrive as wider ones and are cast
// back.
Ref Rebuild::device_from_numpy(Objects& objects, const Call& call, Role /*role*/) {
  objects.need_arguments(call, 4, 4);
  const Ref data = call.args[0];
  if (as_kind(data, NodeKind::object) != nullptr) return objects.misfit(call);
  // An array: nothing that was made by this function before.
  if (!data.is_node() || objects.tree().type_name(data.node()->type) != "numpy.ndarray")
    objects.refuse(Errc::type_mismatch, "a device tensor made of {}", objects.describe(data));
  const auto name = as_constant(call.args[1], Role::dtype);
  const auto dtype = name ? dtype_of_torch_name(*name) : std::nullopt;
  if (!dtype) objects.refuse(Errc::bad_dtype, "{}: no such dtype", objects.describe(call.args[1]));
  Tensor tensor;
  if (as_kind(data, NodeKind::tensor) != nullptr) {
    tensor = value_of(objects, data);
  } else {
    const Value number = ValueTree::value(objects.shared_tree(), data);
    if (number.kind() == Kind::integer && number.fits_int())
      tensor = Tensor::from<std::int64_t>({number.as_int()}, {});
    else if (number.kind() == Kind::floating)
      tensor = Tensor::from<double>({number.as_float()}, {});
    else
      objects.refuse(Errc::unsupported, "a device tensor made of {}", objects.describe(data));
  }
  // Floats are rounded as PyTorch rounds them; of integers out of range everybody makes something else.
  if (*dtype != tensor.dtype() && !(is_floating(*dtype) && is_floating(tensor.dtype()))) {
    objects.refuse(Errc::bad_dtype, "a device tensor of {} made of {}", info(*dtype).code,
                   info(tensor.dtype()).code);
  }
  // Releases of PyTorch make different numbers of what is too large: 448 of F8_E4M3 since 2.15, NaN before.
  if (*dtype != tensor.dtype() && info(*dtype).bits <= 8) objects.note_misfit(call);
  // By way of float, as PyTorch: a double is rounded twice.
  const bool is_narrow = tensor.dtype() == DType::f64 && *dtype != DType::f64;
  const Tensor cast = (is_narrow ? tensor.to_lazy(DType::f32) : tensor).to_lazy(*dtype);
  const Ref made = computed(objects, with_strides_of_ones(cast, tensor), 0);
  objects.views().declare(static_cast<std::uint64_t>(tensor.numel()) * item_bytes(*dtype));
  made.node()->tensor->requires_grad = call.args[3].is_true();
  const auto device = device_text(call.args[2]);
  if (!device) objects.note_misfit(call);
  if (device && *device != "cpu") made.node()->tensor->location = objects.tree().type_id(*device);
  if (device) objects.note_device(*device);
  return made;
}

}  // namespace ballast::torch
