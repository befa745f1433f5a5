// SPDX-License-Identifier: Apache-2.0
#include "ballast/checkpoint.h"

#include <algorithm>
#include <cstring>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/hash.h"
#include "checkpoint/value_tree.h"
#include "tensor/describe.h"

namespace ballast {

Entry::Entry(const Checkpoint& owner, std::size_t index)
    : name(owner.name_of(owner.records_[index])),
      dtype(owner.records_[index].dtype),
      shape(owner.dims_.data() + owner.records_[index].dims, owner.records_[index].rank),
      // Sizes were checked when the tensor was added.
      bytes(bytes_of(dtype, static_cast<std::uint64_t>(*try_numel(shape)))),
      owner_(&owner),
      index_(index) {}

Tensor Entry::tensor() const {
  const Checkpoint::Record& record = owner_->records_[index_];
  if (record.storage == Checkpoint::kNoStorage) return {dtype, shape};
  const Strides strides = record.strided ? Strides(ShapeView(shape.data() + record.rank, record.rank))
                                         : contiguous_strides(shape);
  return {dtype, shape, strides, owner_->storages_[record.storage], record.bit_offset};
}

// Here and not in the header: everybody who includes it would compile them again.
Checkpoint::Checkpoint() = default;
Checkpoint::Checkpoint(const Checkpoint& other) = default;
Checkpoint& Checkpoint::operator=(const Checkpoint& other) = default;
Checkpoint::Checkpoint(Checkpoint&& other) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&& other) noexcept = default;
Checkpoint::~Checkpoint() = default;

Checkpoint::NameBlocks::NameBlocks(const NameBlocks& other) : blocks_(other.blocks_) {}

std::string_view Checkpoint::NameBlocks::store(std::string_view text) {
  if (text.empty()) return "";  // there may be no block yet
  constexpr std::size_t kBlock = 64U << 10U;
  if (text.size() > left_) {
    left_ = std::max(kBlock, text.size());
    const std::shared_ptr<char[]> block(new char[left_]);
    blocks_.push_back(block);
    next_ = block.get();
  }
  std::memcpy(next_, text.data(), text.size());
  const std::string_view stored(next_, text.size());
  next_ += text.size();
  left_ -= text.size();
  return stored;
}

Checkpoint::NameBlocks& Checkpoint::NameBlocks::operator=(const NameBlocks& other) {
  if (this == &other) return *this;
  blocks_ = other.blocks_;
  left_ = 0;
  return *this;
}

void Checkpoint::reserve(std::size_t tensors) {
  records_.reserve(tensors);
  dims_.reserve(tensors * 2);
  index_.reserve(tensors);
}

bool Checkpoint::append(const Record& record) {
  if (records_.size() >= kNoStorage - 1)
    fail(Errc::too_many, display(path), "more than {} tensors", records_.size());
  index_.reserve(records_.size() + 1);
  const std::string_view name = name_of(record);
  const auto same = [&](std::size_t i) { return name_of(records_[i]) == name; };
  if (!index_.add(hash_name(name), records_.size(), same)) return false;
  records_.push_back(record);
  return true;
}

std::optional<std::size_t> Checkpoint::position(std::string_view name) const noexcept {
  return index_.find(hash_name(name), [&](std::size_t i) { return name_of(records_[i]) == name; });
}

void Checkpoint::add(std::string_view name, const Tensor& tensor) {
  if (!tensor.defined()) fail(Errc::invalid_argument, quoted(name), "an undefined tensor cannot be added");
  if (contains(name)) fail(Errc::duplicate_key, display(path), "tensor {} is there already", quoted(name));
  std::uint32_t storage = kNoStorage;
  if (tensor.has_data()) {
    const bool same_as_last = !storages_.empty() && storages_.back() == tensor.storage();
    storage = same_as_last ? static_cast<std::uint32_t>(storages_.size() - 1)
                           : CheckpointBuilder(*this).add_storage(tensor.storage());
  }
  const bool strided = !tensor.is_contiguous();
  const std::string_view stored = names_.store(name);
  append({.name = stored.data(),
          .bit_offset = tensor.bit_offset(),
          .name_size = static_cast<std::uint32_t>(stored.size()),
          .rank = static_cast<std::uint32_t>(tensor.rank()),
          .storage = storage,
          .dtype = tensor.dtype(),
          .strided = strided,
          .dims = dims_.size()});
  dims_.insert(dims_.end(), tensor.shape().begin(), tensor.shape().end());
  if (strided) dims_.insert(dims_.end(), tensor.strides().begin(), tensor.strides().end());
}

std::uint32_t CheckpointBuilder::add_storage(std::shared_ptr<const Storage> storage) {
  into_.storages_.push_back(std::move(storage));
  return static_cast<std::uint32_t>(into_.storages_.size() - 1);
}

bool CheckpointBuilder::add_view(std::string_view name, DType dtype, ShapeView shape, std::uint32_t storage,
                                 std::uint64_t bit_offset) {
  const Checkpoint::Record record{.name = name.data(),
                                  .bit_offset = bit_offset,
                                  .name_size = static_cast<std::uint32_t>(name.size()),
                                  .rank = static_cast<std::uint32_t>(shape.size()),
                                  .storage = storage,
                                  .dtype = dtype,
                                  .strided = false,
                                  .dims = into_.dims_.size()};
  if (!into_.append(record)) return false;
  into_.dims_.insert(into_.dims_.end(), shape.begin(), shape.end());
  return true;
}

bool CheckpointBuilder::add_view(std::string_view name, DType dtype, ShapeView shape, ShapeView strides,
                                 std::uint32_t storage, std::uint64_t bit_offset) {
  bool strided = false;
  std::uint64_t expected = 1;  // may wrap when a dimension is 0; then it does not matter
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;  // its stride is never used
    strided = strided || static_cast<std::uint64_t>(strides[i]) != expected;
    expected *= static_cast<std::uint64_t>(shape[i]);
  }
  const bool is_empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  strided = strided && !is_empty && storage != kNoStorage;
  if (!add_view(name, dtype, shape, storage, bit_offset)) return false;
  into_.records_.back().strided = strided;
  if (strided) into_.dims_.insert(into_.dims_.end(), strides.begin(), strides.end());
  return true;
}

void CheckpointBuilder::set_storages(std::vector<std::shared_ptr<const Storage>> storages) {
  into_.storages_ = std::move(storages);
}

std::string_view CheckpointBuilder::store_name(std::string_view name) {
  return into_.names_.store(name);
}

void CheckpointBuilder::keep_alive(std::shared_ptr<const void> owner) {
  into_.owners_.push_back(std::move(owner));
}

Entry Checkpoint::at(std::string_view name) const {
  if (const auto found = position(name)) return (*this)[*found];
  std::vector<std::string_view> names;
  for (const Entry& entry : *this) names.push_back(entry.name);
  fail(Errc::not_found, display(path), "has no tensor {}{}", quoted(name), did_you_mean(name, names));
}

Value Checkpoint::value(std::string_view dotted) const {
  if (!tree)
    fail(Errc::not_found, display(path), "holds tensors only, no other values ({} was asked for)",
         quoted(dotted));
  return value_at(*tree, dotted, display(path));
}

std::uint64_t Checkpoint::total_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const Entry& entry : *this) total += entry.bytes;
  return total;
}

}  // namespace ballast
