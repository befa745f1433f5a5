// SPDX-License-Identifier: Apache-2.0
#include "ops/cache.h"

#include <algorithm>

namespace ballast {

OpCache::OpCache(const OpCache& /*other*/) {}

OpCache& OpCache::operator=(const OpCache& other) {
  if (this != &other) clear();
  return *this;
}

// What was prepared belongs to the weights, and they move along.
OpCache::OpCache(OpCache&& other) noexcept : state_(other.state_.exchange(nullptr)) {}

OpCache& OpCache::operator=(OpCache&& other) noexcept {
  if (this != &other) delete state_.exchange(other.state_.exchange(nullptr));
  return *this;
}

OpCache::~OpCache() {
  delete state_.load();
}

OpCache::State& OpCache::state() const {
  State* current = state_.load(std::memory_order_acquire);
  if (current != nullptr) return *current;
  auto made = std::make_unique<State>();
  // Two threads may come here at once; the first one's stays.
  if (state_.compare_exchange_strong(current, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *current;
}

void OpCache::clear() {
  State* current = state_.load(std::memory_order_acquire);
  if (current == nullptr) return;
  const std::lock_guard lock(current->mutex);
  current->entries.clear();
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
