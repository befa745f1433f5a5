// SPDX-License-Identifier: Apache-2.0
// Answers that are kept: the ones asked for last, up to so many bytes.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tool::view {

class Lru {
 public:
  explicit Lru(std::size_t most) : most_(most) {}

  [[nodiscard]] std::shared_ptr<const std::string> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    items_.splice(items_.begin(), items_, found->second);
    return found->second->bytes;
  }

  void keep(const std::string& key, std::shared_ptr<const std::string> bytes) {
    const std::lock_guard lock(mutex_);
    if (by_key_.contains(key) || cost(key, *bytes) > most_) return;
    held_ += cost(key, *bytes);
    items_.push_front({key, std::move(bytes)});
    by_key_.emplace(key, items_.begin());
    while (held_ > most_) {
      held_ -= cost(items_.back().key, *items_.back().bytes);
      by_key_.erase(items_.back().key);
      items_.pop_back();
    }
  }

 private:
  struct Item {
    std::string key;
    std::shared_ptr<const std::string> bytes;
  };

  static std::size_t cost(const std::string& key, const std::string& bytes) {
    return bytes.size() + 2 * key.size() + 256;
  }

  std::size_t most_;
  std::size_t held_ = 0;
  std::mutex mutex_;
  std::list<Item> items_;
  std::map<std::string, std::list<Item>::iterator> by_key_;
};

}  // namespace tool::view
