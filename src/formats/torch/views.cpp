// SPDX-License-Identifier: Apache-2.0
// Every argument PyTorch trusts is checked here. Its own reader had a heap overflow in this place.
#include "formats/torch/views.h"

#include <algorithm>

#include "base/checked.h"
#include "containers/expansion.h"

namespace ballast::torch {
namespace {

std::string shape_text(std::span<const std::int64_t> dims) {
  return to_string(ShapeView(dims));
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
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;  // of nothing
  std::uint64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (static_cast<std::uint64_t>(strides[i]) != expected) return false;
    expected *= static_cast<std::uint64_t>(sizes[i]);
  }
  return true;
}

}  // namespace

std::optional<std::int64_t> try_count(ShapeView sizes, std::uint64_t item) {
  std::optional<std::int64_t> bytes = static_cast<std::int64_t>(item);
  bool is_empty = false;
  for (const std::int64_t size : sizes) {
    is_empty = is_empty || size == 0;
    bytes = try_mul<std::int64_t>(*bytes, std::max<std::int64_t>(size, 1));
    if (!bytes) return std::nullopt;
  }
  return is_empty ? 0 : *bytes / static_cast<std::int64_t>(item);
}

Ref Views::storage(const StorageInfo& info, TypeId type) {
  reading_.budget().take(sizeof(StorageInfo));
  ValueNode* node = reading_.tree().make(NodeKind::storage, type);
  node->index = storages_.size();
  storages_.push_back(info);
  return Ref(node);
}

// All of them together: a file of a kilobyte must not become a terabyte because it says so often enough.
void Views::check_expansion(std::uint64_t shown) const {
  const Settings& settings = reading_.settings();
  if (containers::may_show(shown, settings.input_bytes, settings.expansion)) return;
  containers::require_shown(shown, settings.input_bytes, settings.expansion, reading_.location());
}

std::optional<DType> Views::dtype_of_class(Ref global) const {
  const ValueNode* node = as_kind(global, NodeKind::global);
  if (node == nullptr)
    reading_.refuse(Errc::type_mismatch, "{} where a storage class belongs", reading_.describe(global));
  const auto role = static_cast<Role>(node->role);
  if (role == Role::untyped_storage) return std::nullopt;
  const std::string_view full = reading_.tree().type_name(node->type);
  if (role != Role::storage_class && role != Role::tensor_class)
    reading_.refuse(role == Role::unknown ? Errc::bad_dtype : Errc::type_mismatch,
                    "{} is no storage class of PyTorch", full);
  std::string_view name = full.substr(full.rfind('.') + 1);
  name.remove_suffix(role == Role::storage_class ? std::string_view("Storage").size()
                                                 : std::string_view("Tensor").size());
  const auto dtype = dtype_from_torch_scalar(name);  // of FloatStorage, Float8_e4m3fnStorage
  if (!dtype) reading_.refuse(Errc::bad_dtype, "{}: no such element type", full);
  return dtype;
}

Views::ViewDims Views::read_dims(const ViewArguments& view) const {
  const std::size_t rank = view.sizes.size();
  if (rank != view.strides.size())
    reading_.refuse(Errc::size_mismatch, "a tensor of {} sizes and {} strides", rank, view.strides.size());
  if (rank > kMaxRank)
    reading_.refuse(Errc::too_many, "a tensor of {} dimensions, {} are the most", rank, kMaxRank);
  auto* dims = reading_.tree().allocate_array<std::int64_t>(rank * 2);
  for (std::size_t i = 0; i < rank; ++i) {
    dims[i] = reading_.need_int(view.sizes[i], "a size");
    dims[rank + i] = reading_.need_int(view.strides[i], "a stride");
    if (dims[i] < 0) reading_.refuse(Errc::shape_mismatch, "a size of {}", dims[i]);
  }
  return {dims, rank};
}

void Views::require_inside(const StorageInfo& info, DType dtype, const ViewDims& dims, std::int64_t offset,
                           std::int64_t count) const {
  // The storage in elements of this dtype; sub-byte types are packed, so they have more of them.
  const std::uint64_t held = info.numel * item_bytes(info.dtype);
  const std::uint64_t bits = ballast::info(dtype).bits;
  const std::uint64_t capacity = bits < 8 && dtype != DType::f4 ? held * 8 / bits : held / item_bytes(dtype);
  const Reach extent = reach_of(dims.sizes(), dims.strides());
  if (offset >= 0 && !extent.wild && (count <= 0 || extent.last + offset < static_cast<Int128>(capacity)))
    return;
  reading_.refuse(
      Errc::offset_out_of_range,
      "a tensor of sizes {}, strides {} from element {} does not fit into its storage of {} elements",
      shape_text(dims.sizes()), shape_text(dims.strides()), offset, capacity);
}

// Float4: two numbers a byte, counted as one by PyTorch.
Views::ViewDims Views::numbers_of_pairs(const ViewDims& pairs) const {
  if (!is_row_major(pairs.sizes(), pairs.strides()))
    reading_.refuse(Errc::unsupported, "a float4 tensor with strides {}", shape_text(pairs.strides()));
  const std::size_t rank = std::max<std::size_t>(pairs.rank, 1);
  auto* numbers = reading_.tree().allocate_array<std::int64_t>(rank * 2);
  numbers[0] = 1;
  std::ranges::copy(pairs.sizes(), numbers);
  numbers[rank - 1] *= 2;
  const Strides packed = contiguous_strides(ShapeView(numbers, rank));
  std::copy(packed.begin(), packed.end(), numbers + rank);
  return {numbers, rank};
}

Ref Views::tensor(Ref storage, const ViewArguments& view, std::optional<DType> wanted, bool requires_grad) {
  if (as_kind(storage, NodeKind::storage) == nullptr)
    reading_.refuse(Errc::type_mismatch, "{} where a storage belongs", reading_.describe(storage));
  const StorageInfo info = info_of(storage);
  const DType dtype = wanted ? *wanted : info.dtype.value_or(DType::u8);
  return make(info, view.offset, read_dims(view), dtype, requires_grad);
}

Ref Views::tensor(const StorageInfo& info, std::int64_t offset, std::span<const std::int64_t> dims,
                  bool requires_grad) {
  auto* held = reading_.tree().allocate_array<std::int64_t>(dims.size());
  std::ranges::copy(dims, held);
  return make(info, offset, {held, dims.size() / 2}, info.dtype.value_or(DType::u8), requires_grad);
}

Ref Views::make(const StorageInfo& info, std::int64_t offset, ViewDims dims, DType dtype,
                bool requires_grad) {
  const std::uint64_t item = item_bytes(dtype);
  // Float4 counts in pairs: twice as many of them must fit, too.
  const std::optional<std::int64_t> count = try_count(dims.sizes(), dtype == DType::f4 ? item * 2 : item);
  if (!count)
    reading_.refuse(Errc::size_overflow, "a tensor of sizes {} has more bytes than 64 bits can count",
                    shape_text(dims.sizes()));
  require_inside(info, dtype, dims, offset, *count);
  declare(static_cast<std::uint64_t>(*count) * item);
  const std::uint64_t begin = info.offset * item_bytes(info.dtype);
  const std::uint64_t bit_offset = *count > 0 ? (begin + static_cast<std::uint64_t>(offset) * item) * 8 : 0;
  if (dtype == DType::f4) dims = numbers_of_pairs(dims);
  // PyTorch swaps a storage by its own class, when it is loaded.
  if (info.big_endian && swap_unit(dtype) != swap_unit(info.dtype.value_or(DType::u8)))
    reading_.refuse(Errc::unsupported, "a big-endian storage that is seen as {}", ballast::info(dtype).code);
  const std::uint32_t index = info.big_endian ? swapped_storage(info.index, dtype) : info.index;
  return reading_.tree().tensor({.dtype = dtype,
                                 .requires_grad = requires_grad,
                                 .is_parameter = false,
                                 .rank = static_cast<std::uint32_t>(dims.rank),
                                 .storage = index,
                                 .location = info.location,
                                 .details = 0,
                                 .bit_offset = bit_offset,
                                 .dims = dims.values});
}

// Files of big-endian machines: the bytes of each number reversed, by what the tensor says they are. Done
// when they are read.
std::uint32_t Views::swapped_storage(std::uint32_t index, DType dtype) {
  const std::uint64_t unit = swap_unit(dtype);
  if (unit == 1) return index;
  const auto [slot, added] = swapped_.try_emplace(
      std::uint64_t{index} * 16 + unit, static_cast<std::uint32_t>(reading_.tree().storages.size()));
  if (!added) return slot->second;
  reading_.budget().take(256);
  const auto source = reading_.tree().storages[index];
  const auto swap = [source, unit](std::span<std::byte> out) {
    source->read(0, out);
    for (std::size_t at = 0; at + unit <= out.size(); at += unit)
      std::reverse(out.data() + at, out.data() + at + unit);
  };
  reading_.tree().storages.push_back(Storage::deferred(source->size(), swap, {source}));
  return slot->second;
}

}  // namespace ballast::torch
