// SPDX-License-Identifier: Apache-2.0
#include "ops/memory.h"

#include <unistd.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace ballast::ops {
namespace {

constexpr std::uint64_t kLeast = 64 << 10;  // smaller blocks malloc is good at

// Bytes kept for results to come, in the whole process: a sixteenth of the machine's memory, within bounds.
// A batch of large images holds hundreds of megabytes at a time, and fresh pages for them at every call were
// a quarter of its time.
std::uint64_t most_kept() {
  static const std::uint64_t most = [] {
    constexpr std::uint64_t kFew = 128 << 20;
    constexpr std::uint64_t kMany = 1 << 30;
    const auto memory = static_cast<std::uint64_t>(std::max(sysconf(_SC_PHYS_PAGES), 0L)) *
                        static_cast<std::uint64_t>(std::max(sysconf(_SC_PAGESIZE), 0L));
    return std::clamp(memory / 16, kFew, kMany);
  }();
  return most;
}

using Block = std::shared_ptr<Storage>;

class Pool {
 public:
  // The smallest of at least `size` bytes, so that each layer can use what larger ones before it left; but
  // not so large that a small result keeps much. Null when there is none.
  Block take(std::uint64_t size) {
    const std::lock_guard lock(mutex_);
    auto best = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      const std::uint64_t has = (*block)->size();
      if (has >= size && has <= size * 4 && (best == blocks_.end() || has < (*best)->size())) best = block;
    }
    if (best == blocks_.end()) return {};
    Block taken = std::move(*best);
    blocks_.erase(best);
    kept_ -= taken->size();
    return taken;
  }

  void give_back(Block block) noexcept {
    std::list<Block> dropped;  // freed after the lock
    try {
      const std::lock_guard lock(mutex_);
      kept_ += block->size();
      blocks_.push_front(std::move(block));
      while (kept_ > most_kept()) {
        kept_ -= blocks_.back()->size();
        dropped.splice(dropped.begin(), blocks_, std::prev(blocks_.end()));
      }
    } catch (...) {  // no memory for the list: the block is freed
    }
  }

 private:
  std::mutex mutex_;
  std::list<Block> blocks_;  // the last given back first
  std::uint64_t kept_ = 0;
};

// Never destroyed: tensors may outlive every other static object.
Pool& pool() {
  static Pool& only = *new Pool;
  return only;
}

class PooledStorage final : public Storage {
 public:
  PooledStorage(std::uint64_t size, Block block) : Storage(size), block_(std::move(block)) {}

  PooledStorage(const PooledStorage&) = delete;
  PooledStorage& operator=(const PooledStorage&) = delete;

  ~PooledStorage() override { pool().give_back(std::move(block_)); }

  [[nodiscard]] const std::byte* data() const override { return block_->data(); }

 private:
  [[nodiscard]] std::byte* writable_data() override { return block_->mutable_data(); }

  Block block_;
};

#if defined(BALLAST_SANITIZED)
constexpr bool kPooled = false;  // the sanitizer is to see every block come and go
#else
constexpr bool kPooled = true;
#endif

}  // namespace

bool is_from_pool(const Storage& storage) {
  return dynamic_cast<const PooledStorage*>(&storage) != nullptr;
}

Tensor new_tensor(DType dtype, const Shape& shape) {
  const Tensor form(dtype, shape);  // checks the shape
  const std::uint64_t size = form.size_bytes();
  if (!kPooled || size < kLeast || size > most_kept()) return Tensor::empty(dtype, shape);
  Block block = pool().take(size);
  if (!block) block = Storage::heap(size);
  return Tensor::contiguous_view(dtype, shape, std::make_shared<PooledStorage>(size, std::move(block)));
}

}  // namespace ballast::ops
