// SPDX-License-Identifier: Apache-2.0
// What is kept of decrypted chunks, and what is made at the same time by many threads.
#include "seal/recent_chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

namespace ballast::seal {
namespace {

// Fills a chunk with its number, and counts.
struct Opener {
  std::atomic<int> opened{0};
  std::atomic<int> at_once{0};
  std::atomic<int> most_at_once{0};

  RecentChunks::Bytes get(RecentChunks& chunks, std::uint64_t index, std::size_t size) {
    return chunks.get(index, size, [&](std::span<std::byte> bytes) {
      const int now = ++at_once;
      for (int most = most_at_once.load(); most < now && !most_at_once.compare_exchange_weak(most, now);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(index));
      ++opened;
      --at_once;
    });
  }
};

void by_threads(int threads, const std::function<void(int)>& work) {
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(work, i);
}

TEST(RecentChunksTest, KeepTheLatestWithinTheirRoom) {
  RecentChunks chunks(30);
  Opener opener;
  for (const std::uint64_t index : {1U, 2U, 3U, 1U, 2U, 3U}) static_cast<void>(opener.get(chunks, index, 10));
  EXPECT_EQ(opener.opened, 3);
  static_cast<void>(opener.get(chunks, 4, 10));  // 1 was asked for longest ago
  static_cast<void>(opener.get(chunks, 2, 10));
  EXPECT_EQ(opener.opened, 4);
  static_cast<void>(opener.get(chunks, 1, 10));
  EXPECT_EQ(opener.opened, 5);
}

TEST(RecentChunksTest, OneThatIsOnItsWayIsOpenedOnceForAllThreads) {
  for (const std::size_t size : {10U, 1000U}) {
    RecentChunks chunks(100);
    Opener opener;
    by_threads(16, [&](int) {
      const auto bytes = opener.get(chunks, 7, size);
      ASSERT_EQ(bytes->size(), size);
      EXPECT_EQ(bytes->back(), std::byte{7});
    });
    EXPECT_EQ(opener.opened, 1);
  }
}

TEST(RecentChunksTest, LargeOnesAreOpenedOneAtATimeAndSmallOnesTogether) {
  for (const int threads : {2, 3, 16}) {
    RecentChunks chunks(100);
    Opener large;
    by_threads(threads, [&](int i) {
      for (std::uint64_t n = 0; n < 5; ++n) {
        const std::uint64_t index = (static_cast<std::uint64_t>(i) + n) % 7;
        EXPECT_EQ(large.get(chunks, index, 1000)->front(), static_cast<std::byte>(index));
      }
    });
    EXPECT_EQ(large.most_at_once, 1) << threads;
  }
}

TEST(RecentChunksTest, AChunkThatCannotBeOpenedKeepsNobodyWaiting) {
  RecentChunks chunks(100);
  std::atomic<int> failed{0};
  by_threads(8, [&](int) {
    try {
      static_cast<void>(
          chunks.get(3, 1000, [](std::span<std::byte>) { throw std::runtime_error("damaged"); }));
    } catch (const std::runtime_error&) {
      ++failed;
    }
  });
  EXPECT_EQ(failed, 8);
  Opener opener;
  EXPECT_EQ(opener.get(chunks, 3, 1000)->front(), std::byte{3});
}

}  // namespace
}  // namespace ballast::seal
