// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/storage_table.h"

#include <algorithm>

#include "base/fail.h"
#include "formats/tensor_image.h"
#include "formats/torch/dtypes.h"

namespace ballast::torch {
namespace {

constexpr std::uint32_t kNoRecord = 0xFFFFFFFF;

// Two 4-bit floats are one element to PyTorch; everything else below a byte is quantized, counted in elements
// and packed by row-major order.
bool counts_pairs(DType dtype) {
  return dtype == DType::f4;
}

bool is_packed(DType dtype) {
  return info(dtype).bits < 8;
}

std::string_view storage_scalar(DType dtype) {
  return info(dtype).torch_storage ? info(dtype).torch_scalar : std::string_view();
}

struct Span {
  std::uint64_t begin;
  std::uint64_t end;
};

// Bytes of the storage from the first to the last element.
Span bytes_of(const Tensor& tensor) {
  const std::uint64_t begin = tensor.bit_offset() / 8;
  if (tensor.numel() == 0) return {begin, begin};
  if (is_packed(tensor.dtype())) return {begin, begin + tensor.size_bytes()};
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
    last +=
        static_cast<std::uint64_t>(tensor.shape()[i] - 1) * static_cast<std::uint64_t>(tensor.strides()[i]);
  }
  return {begin, begin + (last + 1) * item_bytes(tensor.dtype())};
}

// As a view of its storage; the others are written as a copy.
bool is_expressible(const Tensor& tensor) {
  if (tensor.bit_offset() % 8 != 0) return false;
  if (is_packed(tensor.dtype())) return tensor.is_contiguous();
  return std::all_of(tensor.strides().begin(), tensor.strides().end(),
                     [](std::int64_t stride) { return stride >= 0; });
}

}  // namespace

Shape shape_for_torch(const Tensor& tensor) {
  Shape shape = tensor.shape();
  if (counts_pairs(tensor.dtype()) && !shape.empty()) shape[shape.size() - 1] /= 2;
  return shape;
}

bool StorageTable::keep_whole(const Storage& storage) const {
  if (extent_ != Extent::automatic) return extent_ == Extent::whole;
  return !storage.holds_many();
}

void StorageTable::note(const Tensor& tensor, const Where& where) {
  if (info(tensor.dtype()).torch_name.empty()) {
    fail(Errc::not_representable, where(), "PyTorch has no dtype {}", info(tensor.dtype()).code);
  }
  if (counts_pairs(tensor.dtype()) && (tensor.shape().empty() || tensor.shape().back() % 2 != 0)) {
    fail(Errc::not_representable, where(), "4-bit floats go in pairs, the last dimension of {} is odd",
         to_string(tensor.shape()));
  }
  if (!tensor.storage() || !is_expressible(tensor)) return;
  const Key key{tensor.storage().get(), storage_scalar(tensor.dtype())};
  const auto [found, is_new] = groups_of_.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) {
    groups_.push_back({.whole = !is_packed(tensor.dtype()) && keep_whole(*tensor.storage())});
    if (groups_.back().whole) uses_.push_back({found->second, 0, tensor.storage()->size()});
  }
  if (groups_[found->second].whole || tensor.numel() == 0) return;
  const Span span = bytes_of(tensor);
  uses_.push_back({found->second, span.begin, span.end});
}

// Overlapping uses of one storage become one cluster.
void StorageTable::settle() {
  std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
    return a.group != b.group ? a.group < b.group : a.begin < b.begin;
  });
  for (const Use& use : uses_) {
    Group& group = groups_[use.group];
    if (group.count > 0 && use.begin < clusters_.back().end) {
      clusters_.back().end = std::max(clusters_.back().end, use.end);
      continue;
    }
    if (group.count++ == 0) group.first = static_cast<std::uint32_t>(clusters_.size());
    clusters_.push_back({use.begin, use.end, kNoRecord});
  }
  uses_ = {};
}

std::uint32_t StorageTable::add_record(StorageRecord record) {
  records_.push_back(std::move(record));
  return static_cast<std::uint32_t>(records_.size() - 1);
}

Placement StorageTable::place(const Tensor& tensor) {
  if (!is_expressible(tensor)) return place_copy(tensor);
  const std::uint64_t item = item_bytes(tensor.dtype());
  const std::string_view scalar = storage_scalar(tensor.dtype());
  const Group& group = groups_[groups_of_.at({tensor.storage().get(), scalar})];
  const Span span = bytes_of(tensor);
  // Without elements and without a whole storage around it there is nothing to be a view of.
  if (tensor.numel() == 0 && !group.whole) return place_copy(tensor);
  const auto first = clusters_.begin() + group.first;
  Cluster& cluster =
      *std::prev(std::upper_bound(first, first + group.count, span.begin,
                                  [](std::uint64_t at, const Cluster& other) { return at < other.begin; }));
  const std::uint64_t offset = span.begin - cluster.begin;
  if (offset % item != 0 || (is_packed(tensor.dtype()) && offset != 0)) return place_copy(tensor);
  if (cluster.record == kNoRecord) {
    const std::uint64_t unit = scalar.empty() ? 1 : item;
    const std::uint64_t size = (cluster.end - cluster.begin) / unit * unit;
    cluster.record = add_record({tensor.storage(), cluster.begin, size, size / unit, scalar});
  }
  Placement placement{.record = cluster.record,
                      .offset = static_cast<std::int64_t>(offset / item),
                      .shape = shape_for_torch(tensor)};
  placement.strides = counts_pairs(tensor.dtype()) ? contiguous_strides(placement.shape) : tensor.strides();
  return placement;
}

Placement StorageTable::place_copy(const Tensor& tensor) {
  const std::string_view scalar = storage_scalar(tensor.dtype());
  const std::uint64_t size = tensor.size_bytes();
  const auto storage = tensor_image(tensor);  // its row-major form, streamed
  Placement placement{
      .record =
          add_record({storage, 0, size, scalar.empty() ? size : size / item_bytes(tensor.dtype()), scalar}),
      .shape = shape_for_torch(tensor)};
  const bool keeps_strides = tensor.numel() == 0 && is_expressible(tensor) && !counts_pairs(tensor.dtype());
  placement.strides = keeps_strides ? tensor.strides() : contiguous_strides(placement.shape);
  return placement;
}

}  // namespace ballast::torch
