// SPDX-License-Identifier: Apache-2.0
// Storages as persistent ids describe them, and tensors that are views of them. Every argument PyTorch trusts
// is checked, and so is what all tensors of a file together show.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "formats/torch/dtypes.h"
#include "formats/torch/reading.h"

namespace ballast::torch {

inline constexpr std::size_t kMaxRank = 64;  ///< PyTorch's own limit

/// A PyTorch storage as a persistent id describes it.
struct StorageInfo {
  std::optional<DType> dtype;  // none: untyped, counted in bytes
  TypeId location = 0;
  std::uint64_t numel = 0;
  std::uint64_t offset = 0;  // in elements: old files have storages that are windows of others
  std::uint32_t index = 0;   // into ValueTree::storages
  bool big_endian = false;
};

/// Sizes, strides and offset of a view, checked against each other but not yet against a storage.
struct ViewArguments {
  std::int64_t offset = 0;
  std::span<const Ref> sizes;
  std::span<const Ref> strides;
};

class Views {
 public:
  /// The reading lives as long.
  explicit Views(const Reading& reading) : reading_(reading) {}

  /// The node of a storage; `info.index` is one of the tree's storages.
  Ref storage(const StorageInfo& info, TypeId type);

  [[nodiscard]] const StorageInfo& info_of(Ref storage) const { return storages_[storage.node()->index]; }

  /// dtype (none: untyped) of a storage or tensor class; refuses what is none.
  [[nodiscard]] std::optional<DType> dtype_of_class(Ref global) const;
  /// A checked view; `storage` must be one.
  Ref tensor(Ref storage, const ViewArguments& view, std::optional<DType> dtype, bool requires_grad);
  /// The same of a storage's own dtype, with sizes, none of them negative, and as many strides behind them.
  Ref tensor(const StorageInfo& info, std::int64_t offset, std::span<const std::int64_t> dims,
             bool requires_grad);

  /// Tensors that show so many bytes more.
  void declare(std::uint64_t bytes) {
    declared_ += std::min(bytes, UINT64_MAX - declared_);
    check_expansion(declared_);
  }

  /// Errc::expanded_view when so many bytes are too many for a file of this size.
  void check_expansion(std::uint64_t shown) const;

 private:
  /// Sizes, then strides, in the tree's memory.
  struct ViewDims {
    std::int64_t* values;
    std::size_t rank;

    [[nodiscard]] std::span<const std::int64_t> sizes() const { return {values, rank}; }

    [[nodiscard]] std::span<const std::int64_t> strides() const { return {values + rank, rank}; }
  };

  [[nodiscard]] ViewDims read_dims(const ViewArguments& view) const;
  Ref make(const StorageInfo& info, std::int64_t offset, ViewDims dims, DType dtype, bool requires_grad);
  void require_inside(const StorageInfo& info, DType dtype, const ViewDims& dims, std::int64_t offset,
                      std::int64_t count) const;
  [[nodiscard]] ViewDims numbers_of_pairs(const ViewDims& pairs) const;
  std::uint32_t swapped_storage(std::uint32_t index, DType dtype);

  const Reading& reading_;
  std::vector<StorageInfo> storages_;
  std::unordered_map<std::uint64_t, std::uint32_t> swapped_;  // storage index and unit → index
  std::uint64_t declared_ = 0;
};

/// Elements of these sizes, none of them negative; nullopt when their number, their strides or their bytes do
/// not fit into 64 bits, even if one of the sizes is 0.
[[nodiscard]] std::optional<std::int64_t> try_count(ShapeView sizes, std::uint64_t item);

}  // namespace ballast::torch
