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

std::shared_ptr<const void> OpCache::State::find(std::list<Entry>& in, const ops::CacheKey& key,
                                                 const std::type_info& type) {
  for (auto entry = in.begin(); entry != in.end(); ++entry) {
    if (*entry->type != type || !entry->key.same(key)) continue;
    in.splice(in.begin(), in, entry);
    return entry->prepared;
  }
  return {};
}

void OpCache::State::tidy() {
  entries.remove_if([](const Entry& entry) { return entry.key.outdated(); });
  while (entries.size() > kMost) entries.pop_back();
  parts.remove_if([](const Entry& part) { return part.prepared.use_count() == 1; });
}

void OpCache::clear() {
  State* current = state_.load(std::memory_order_acquire);
  if (current == nullptr) return;
  const std::lock_guard lock(current->mutex);
  current->entries.clear();
  current->parts.clear();
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
  const std::shared_ptr<const Storage>& storage = tensor.storage();
  // Its address too: storages may have one owner, as those of a .pt file have.
  add(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(storage.get())));
  sources_.push_back({storage, storage ? storage->version() : 0});
  return *this;
}

bool CacheKey::same(const CacheKey& other) const {
  const auto one = [](const Source& a, const Source& b) {
    return a.version == b.version && !a.storage.owner_before(b.storage) && !b.storage.owner_before(a.storage);
  };
  return numbers_ == other.numbers_ &&
         std::equal(sources_.begin(), sources_.end(), other.sources_.begin(), other.sources_.end(), one);
}

bool CacheKey::outdated() const {
  return std::any_of(sources_.begin(), sources_.end(), [](const Source& source) {
    const auto storage = source.storage.lock();
    return !storage || storage->version() != source.version;
  });
}

}  // namespace ops
}  // namespace ballast
