// SPDX-License-Identifier: Apache-2.0
#include "ops/cache.h"

#include <algorithm>

namespace ballast {

OpCache::OpCache() : state_(std::make_unique<State>()) {}

OpCache::OpCache(const OpCache& /*other*/) : OpCache() {}

OpCache& OpCache::operator=(const OpCache& other) {
  if (this != &other) clear();
  return *this;
}

// What was prepared belongs to the weights, and they move along; the other side must stay usable.
OpCache::OpCache(OpCache&& other) noexcept : state_(std::move(other.state_)) {
  other.state_ = std::make_unique<State>();
}

OpCache& OpCache::operator=(OpCache&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

OpCache::~OpCache() = default;

void OpCache::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->entries.clear();
}

namespace ops {

CacheKey& CacheKey::add(const Dims& dims) {
  add(static_cast<std::int64_t>(dims.size()));
  numbers_.insert(numbers_.end(), dims.begin(), dims.end());
  return *this;
}

CacheKey& CacheKey::add(const Tensor& tensor) {
  if (!tensor.defined()) return add(-1);
  add(static_cast<std::int64_t>(tensor.dtype()))
      .add(static_cast<std::int64_t>(tensor.bit_offset()))
      .add(tensor.shape())
      .add(tensor.strides());
  storages_.push_back(tensor.storage());
  return *this;
}

bool CacheKey::same(const CacheKey& other) const {
  const auto one = [](const std::weak_ptr<const Storage>& a, const std::weak_ptr<const Storage>& b) {
    return !a.owner_before(b) && !b.owner_before(a);
  };
  return numbers_ == other.numbers_ &&
         std::equal(storages_.begin(), storages_.end(), other.storages_.begin(), other.storages_.end(), one);
}

}  // namespace ops
}  // namespace ballast
