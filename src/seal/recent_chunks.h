// SPDX-License-Identifier: Apache-2.0
// The chunks that were decrypted last: parsers go in small steps, and would open each many times.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace ballast::seal {

/// For several threads.
class RecentChunks {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  /// The latest is kept whatever its size.
  explicit RecentChunks(std::size_t most_bytes) : most_(most_bytes) {}

  /// The chunk of this index, of `size` bytes, which open(bytes) fills when it is not there. Whoever asks for
  /// one that is on its way waits for it; and of those that are larger than all that is kept one is on its
  /// way at a time, so that memory does not grow with the threads.
  template <class Open>
  [[nodiscard]] Bytes get(std::uint64_t index, std::size_t size, const Open& open) {
    const OnItsWay mine{index, size > most_};
    std::unique_lock lock(mutex_);
    for (;;) {
      if (Bytes found = find(index)) return found;
      if (std::none_of(coming_.begin(), coming_.end(),
                       [&](const OnItsWay& other) { return mine.waits_for(other); }))
        break;
      arrived_.wait(lock);
    }
    coming_.push_back(mine);
    lock.unlock();
    const Arrival arrival(*this, index);
    auto fresh = std::make_shared<std::vector<std::byte>>(size);
    open(std::span(*fresh));
    put(index, fresh);
    return fresh;
  }

  void put(std::uint64_t index, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    held_ += bytes->size();
    chunks_.push_back({index, std::move(bytes)});
    while (held_ > most_ && chunks_.size() > 1) {
      held_ -= chunks_.front().bytes->size();
      chunks_.erase(chunks_.begin());
    }
  }

 private:
  struct Chunk {
    std::uint64_t index;
    Bytes bytes;
  };

  struct OnItsWay {
    std::uint64_t index;
    bool is_large;

    [[nodiscard]] bool waits_for(const OnItsWay& other) const {
      return index == other.index || (is_large && other.is_large);
    }
  };

  // Says that a chunk is on its way no more, also when it could not be opened.
  struct Arrival {
    Arrival(RecentChunks& chunks, std::uint64_t index) : chunks_(chunks), index_(index) {}
    Arrival(const Arrival&) = delete;
    Arrival& operator=(const Arrival&) = delete;

    ~Arrival() {
      const std::lock_guard lock(chunks_.mutex_);
      std::erase_if(chunks_.coming_, [&](const OnItsWay& one) { return one.index == index_; });
      chunks_.arrived_.notify_all();
    }

    RecentChunks& chunks_;
    std::uint64_t index_;
  };

  // Null when it is not there any more. The lock is held.
  [[nodiscard]] Bytes find(std::uint64_t index) {
    const auto found = std::find_if(chunks_.begin(), chunks_.end(),
                                    [&](const Chunk& chunk) { return chunk.index == index; });
    if (found == chunks_.end()) return nullptr;
    std::rotate(found, found + 1, chunks_.end());
    return chunks_.back().bytes;
  }

  std::size_t most_;
  std::size_t held_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<OnItsWay> coming_;
  std::vector<Chunk> chunks_;  // the latest last
};

}  // namespace ballast::seal
