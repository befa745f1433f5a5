// SPDX-License-Identifier: Apache-2.0
// Which storages a PyTorch file gets: every tensor is noted first, then placed. Tensors that share memory
// share a record; records are numbered in the order in which they are first placed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/tensor.h"
#include "ballast/torch.h"

namespace ballast::torch {

using Where = std::function<std::string()>;  // the place of a tensor, made only for a message

/// One `data/<key>` record.
struct StorageRecord {
  std::shared_ptr<const Storage> storage;
  std::uint64_t offset = 0;  ///< in the storage, in bytes
  std::uint64_t size = 0;    ///< in bytes
  std::uint64_t numel = 0;   ///< as PyTorch counts it: bytes when untyped
  std::string_view scalar;   ///< "Float" for a FloatStorage; empty: UntypedStorage
};

/// A tensor as PyTorch sees it on its record.
struct Placement {
  std::uint32_t record = 0;
  std::int64_t offset = 0;  ///< in elements
  Shape shape = {};
  Strides strides = {};
};

/// Two 4-bit floats are one element there.
[[nodiscard]] Shape shape_for_torch(const Tensor& tensor);

class StorageTable {
 public:
  /// `extent` is whole, used, or automatic: whole but for data of a file.
  explicit StorageTable(Extent extent) : extent_(extent) {}

  /// `where` is called for messages. Errc::not_representable for a dtype or layout PyTorch does not have.
  void note(const Tensor& tensor, const Where& where);
  /// After the last note(), before the first place().
  void settle();
  /// Of a tensor that was noted.
  [[nodiscard]] Placement place(const Tensor& tensor);

  [[nodiscard]] const std::vector<StorageRecord>& records() const noexcept { return records_; }

 private:
  struct Group {  // one storage, seen as one class
    bool whole = false;
    std::uint32_t first = 0;  // of its clusters
    std::uint32_t count = 0;
  };

  struct Use {
    std::uint32_t group;
    std::uint64_t begin;  // bytes
    std::uint64_t end;
  };

  struct Cluster {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint32_t record;
  };

  struct Key {
    const Storage* storage;
    std::string_view scalar;
    friend bool operator==(const Key&, const Key&) = default;
  };

  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<const void*>{}(key.storage) * 31 + std::hash<const void*>{}(key.scalar.data());
    }
  };

  [[nodiscard]] bool keep_whole(const Storage& storage) const;
  [[nodiscard]] Placement place_copy(const Tensor& tensor);
  std::uint32_t add_record(StorageRecord record);

  Extent extent_;
  std::unordered_map<Key, std::uint32_t, KeyHash> groups_of_;
  std::vector<Group> groups_;
  std::vector<Use> uses_;
  std::vector<Cluster> clusters_;
  std::vector<StorageRecord> records_;
};

}  // namespace ballast::torch
