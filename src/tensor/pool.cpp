// SPDX-License-Identifier: Apache-2.0
#include "tensor/pool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ballast {
namespace {

constexpr std::uint64_t kSmall = 64 << 10;  // up to here blocks are of few sizes, and are found by it

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

// Small blocks: four sizes between each power of two and the next, each size with a lock of its own, since
// models of many callers make hundreds of small results in a millisecond.
class SmallBlocks {
 public:
  Block take(std::uint64_t size) {
    const Size rounded = round(size);
    Shelf& shelf = shelves_[rounded.shelf];
    {
      const std::lock_guard lock(shelf.mutex);
      if (!shelf.blocks.empty()) {
        Block taken = std::move(shelf.blocks.back());
        shelf.blocks.pop_back();
        return taken;
      }
    }
    return Storage::heap(rounded.bytes);
  }

  void give_back(Block block) noexcept {
    constexpr std::uint64_t kMostKept = 1 << 20;  // of each size
    Shelf& shelf = shelves_[round(block->size()).shelf];
    try {
      const std::lock_guard lock(shelf.mutex);
      if (shelf.blocks.size() * block->size() < kMostKept) shelf.blocks.push_back(std::move(block));
    } catch (...) {  // no memory for the list: the block is freed
    }
  }

 private:
  static constexpr std::uint64_t kLeastBits = 6;

  struct Size {
    std::size_t shelf;
    std::uint64_t bytes;
  };

  static Size round(std::uint64_t size) {
    constexpr std::uint64_t kLeast = 1ULL << kLeastBits;
    if (size <= kLeast) return {0, kLeast};
    const auto bits = static_cast<std::uint64_t>(std::bit_width(size - 1));
    const std::uint64_t below = 1ULL << (bits - 1);
    const std::uint64_t step = below / 4;
    const std::uint64_t quarter = (size - 1 - below) / step;
    return {(bits - kLeastBits - 1) * 4 + quarter + 1, below + (quarter + 1) * step};
  }

  struct Shelf {
    std::mutex mutex;
    std::vector<Block> blocks;
  };

  std::array<Shelf, (static_cast<std::uint64_t>(std::bit_width(kSmall)) - 1 - kLeastBits) * 4 + 1> shelves_;
};

class LargeBlocks {
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
      blocks_.push_front(std::move(block));
      kept_ += blocks_.front()->size();
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

struct ResultPool {
  SmallBlocks small;
  LargeBlocks large;
};

// Never destroyed: tensors may outlive every other static object.
ResultPool& result_pool() {
  static ResultPool& only = *new ResultPool;
  return only;
}

class PooledStorage final : public Storage {
 public:
  PooledStorage(std::uint64_t size, Block block, Pooled use)
      : Storage(size), block_(std::move(block)), use_(use) {}

  PooledStorage(const PooledStorage&) = delete;
  PooledStorage& operator=(const PooledStorage&) = delete;

  ~PooledStorage() override {
    if (block_->size() <= kSmall)
      result_pool().small.give_back(std::move(block_));
    else
      result_pool().large.give_back(std::move(block_));
  }

  [[nodiscard]] const std::byte* data() const override { return block_->data(); }

  [[nodiscard]] Pooled use() const noexcept { return use_; }

 private:
  [[nodiscard]] std::byte* writable_data() override { return block_->mutable_data(); }

  Block block_;
  Pooled use_;
};

#if defined(BALLAST_SANITIZED)
constexpr bool kPooled = false;  // the sanitizer is to see every block come and go
#else
constexpr bool kPooled = true;
#endif

}  // namespace

std::shared_ptr<Storage> pooled_storage(std::uint64_t size, Pooled use) {
  constexpr std::uint64_t kMostCopied = 16 << 20;  // larger copies are seldom made again and again
  if (!kPooled || size > (use == Pooled::copy ? kMostCopied : most_kept())) return Storage::heap(size);
  Block block = size <= kSmall ? result_pool().small.take(size) : result_pool().large.take(size);
  if (!block) block = Storage::heap(size);
  return std::make_shared<PooledStorage>(size, std::move(block), use);
}

bool is_pooled_result(const Storage& storage) {
  const auto* pooled = dynamic_cast<const PooledStorage*>(&storage);
  return pooled != nullptr && pooled->use() == Pooled::result;
}

}  // namespace ballast
