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

  static constexpr std::size_t kMost = 32;  // shapes one layer sees in turn

  std::recursive_mutex mutex;  // what is prepared is made of parts
  std::list<Entry> entries;    // the last used first
  std::list<Entry> parts;      // of entries: what several of them share, as long as one is there

  /// Null when there is none. What is found comes first.
  static std::shared_ptr<const void> find(std::list<Entry>& in, const ops::CacheKey& key,
                                          const std::type_info& type);
  /// Entries of other weights, entries beyond kMost, and parts nobody holds.
  void tidy();
};

namespace ops {

/// What `make` returned for an equal key, or returns now. Without a cache it is made every time.
template <class Prepared, class Make>
std::shared_ptr<const Prepared> cached(OpCache* cache, const CacheKey& key, const Make& make) {
  if (cache == nullptr) return std::make_shared<const Prepared>(make());
  OpCache::State& state = cache->state();
  const std::lock_guard lock(state.mutex);
  if (auto found = OpCache::State::find(state.entries, key, typeid(Prepared)))
    return std::static_pointer_cast<const Prepared>(found);
  state.tidy();
  auto prepared = std::make_shared<const Prepared>(make());
  state.entries.push_front({key, &typeid(Prepared), prepared});
  state.tidy();
  return prepared;
}

/// The same for a part of what is prepared, inside its `make`: it stays as long as something that has it.
template <class Part, class Make>
std::shared_ptr<const Part> cached_part(OpCache* cache, const CacheKey& key, const Make& make) {
  if (cache == nullptr) return std::make_shared<const Part>(make());
  OpCache::State& state = cache->state();
  const std::lock_guard lock(state.mutex);
  if (auto found = OpCache::State::find(state.parts, key, typeid(Part)))
    return std::static_pointer_cast<const Part>(found);
  auto part = std::make_shared<const Part>(make());
  state.parts.push_front({key, &typeid(Part), part});
  return part;
}

}  // namespace ops
}  // namespace ballast
