// SPDX-License-Identifier: Apache-2.0
// The inside of OpCache: what was prepared, found again by the numbers and the tensors it was prepared from.
#pragma once

#include <bit>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <vector>

#include "ballast/detail/ops/activation.h"
#include "ballast/detail/ops/cache.h"
#include "ballast/tensor.h"

namespace ballast::ops {

class CacheKey {
 public:
  CacheKey& add(std::int64_t number) {
    numbers_.push_back(number);
    return *this;
  }

  CacheKey& add(const Dims& dims);

  CacheKey& add(Activation activation) {
    return add(static_cast<std::int64_t>(activation.kind))
        .add(std::bit_cast<std::int64_t>(activation.number()));
  }

  /// The tensor as a view of its storage: another storage is another tensor, even at the same address, and so
  /// is the same one after a write.
  CacheKey& add(const Tensor& tensor);

  [[nodiscard]] bool same(const CacheKey& other) const;
  /// True when no key will be the same any more: a storage is gone or was written to.
  [[nodiscard]] bool outdated() const;

 private:
  struct Source {
    std::weak_ptr<const Storage> storage;
    std::uint64_t version;
  };

  std::vector<std::int64_t> numbers_;
  std::vector<Source> sources_;
};

}  // namespace ballast::ops

namespace ballast {

struct OpCache::State {
  struct Entry {
    ops::CacheKey key;
    const std::type_info* type;
    std::shared_ptr<const void> prepared;
  };

  static constexpr std::size_t kMost = 8;  // shapes one layer sees in turn

  std::mutex mutex;
  std::list<Entry> entries;  // the last used first
};

namespace ops {

/// What `make` returned for an equal key, or returns now. Without a cache it is made every time.
template <class Prepared, class Make>
std::shared_ptr<const Prepared> cached(OpCache* cache, const CacheKey& key, const Make& make) {
  if (cache == nullptr) return std::make_shared<const Prepared>(make());
  OpCache::State& state = cache->state();
  const std::lock_guard lock(state.mutex);
  for (auto entry = state.entries.begin(); entry != state.entries.end(); ++entry) {
    if (*entry->type != typeid(Prepared) || !entry->key.same(key)) continue;
    state.entries.splice(state.entries.begin(), state.entries, entry);
    return std::static_pointer_cast<const Prepared>(entry->prepared);
  }
  state.entries.remove_if([](const OpCache::State::Entry& entry) { return entry.key.outdated(); });
  auto prepared = std::make_shared<const Prepared>(make());
  state.entries.push_front({key, &typeid(Prepared), prepared});
  if (state.entries.size() > OpCache::State::kMost) state.entries.pop_back();
  return prepared;
}

}  // namespace ops
}  // namespace ballast
