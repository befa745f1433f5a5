// SPDX-License-Identifier: Apache-2.0
#include "ballast/storage.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/lazy.h"
#include "base/sizes.h"
#include "tensor/pool.h"

namespace ballast {
namespace {

struct FreeBytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

using Bytes = std::unique_ptr<std::byte, FreeBytes>;

std::atomic<std::uint64_t> blocks_taken{0};

// Large blocks on huge pages: half of the cost of fresh memory is in its page faults.
Bytes allocate(std::uint64_t size) {
  const std::size_t alignment = size >= 2 * kHugePage ? kHugePage : 64;
  const auto wanted = try_add<std::uint64_t>(size, alignment - 1);
  if (!wanted) throw std::bad_alloc();
  const std::size_t rounded = *wanted / alignment * alignment;
  Bytes bytes(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded)));
  if (!bytes) throw std::bad_alloc();
  blocks_taken.fetch_add(1, std::memory_order_relaxed);
  if (alignment == kHugePage) madvise(bytes.get(), rounded, MADV_HUGEPAGE);
  return bytes;
}

class HeapStorage final : public Storage {
 public:
  HeapStorage(std::uint64_t size, bool zeroed) : Storage(size), bytes_(allocate(size)) {
    if (zeroed) std::memset(bytes_.get(), 0, size);
  }

  [[nodiscard]] const std::byte* data() const override { return bytes_.get(); }

 private:
  [[nodiscard]] std::byte* writable_data() override { return bytes_.get(); }

  Bytes bytes_;
};

class BorrowedStorage final : public Storage {
 public:
  BorrowedStorage(const std::byte* data, std::byte* writable, std::uint64_t size, Function<void()> release,
                  Device device)
      : Storage(size, device), data_(data), writable_(writable), release_(std::move(release)) {}

  ~BorrowedStorage() override {
    if (release_) release_();
  }

  [[nodiscard]] const std::byte* data() const override { return data_; }

 private:
  [[nodiscard]] std::byte* writable_data() override { return writable_; }

  const std::byte* data_;
  std::byte* writable_;
  Function<void()> release_;
};

class DeferredStorage final : public Storage {
 public:
  DeferredStorage(std::uint64_t size, Function<void(std::span<std::byte>)> fill,
                  std::vector<std::shared_ptr<const Storage>> sources)
      : Storage(size), fill_(std::move(fill)), sources_(std::move(sources)) {}

  [[nodiscard]] const std::byte* data() const override {
    const auto make = [this] {
      Bytes bytes = allocate(size());
      fill_({bytes.get(), static_cast<std::size_t>(size())});
      fill_ = nullptr;  // and with it everything it was made from
      return bytes;
    };
    return bytes_.get(make).get();
  }

  [[nodiscard]] bool ready() const noexcept override { return bytes_.ready(); }

  void check_unchanged() const override {
    for (const auto& source : sources_) {
      if (source) source->check_unchanged();
    }
  }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    for (const auto& source : sources_) {
      if (source) source->check_sound(0, source->size());
    }
  }

 private:
  mutable Function<void(std::span<std::byte>)> fill_;
  std::vector<std::shared_ptr<const Storage>> sources_;
  Lazy<Bytes> bytes_;
};

}  // namespace

std::uint64_t heap_blocks() noexcept {
  return blocks_taken.load(std::memory_order_relaxed);
}

std::shared_ptr<Storage> Storage::heap(std::uint64_t size, bool zeroed) {
  return std::make_shared<HeapStorage>(size, zeroed);
}

std::shared_ptr<Storage> Storage::borrow(void* data, std::uint64_t size, Function<void()> release,
                                         Device device) {
  auto* bytes = static_cast<std::byte*>(data);
  return std::make_shared<BorrowedStorage>(bytes, bytes, size, std::move(release), device);
}

std::shared_ptr<const Storage> Storage::borrow(const void* data, std::uint64_t size, Function<void()> release,
                                               Device device) {
  return std::make_shared<BorrowedStorage>(static_cast<const std::byte*>(data), nullptr, size,
                                           std::move(release), device);
}

std::shared_ptr<const Storage> Storage::deferred(std::uint64_t size,
                                                 Function<void(std::span<std::byte>)> fill,
                                                 std::vector<std::shared_ptr<const Storage>> sources) {
  return std::make_shared<DeferredStorage>(size, std::move(fill), std::move(sources));
}

void Storage::check_range(std::uint64_t offset, std::uint64_t length) const {
  if (!fits(offset, length, size_)) {
    fail(Errc::offset_out_of_range, "storage", "{} bytes at offset {} lie outside its {} bytes", length,
         offset, size_);
  }
}

void Storage::read(std::uint64_t offset, std::span<std::byte> out) const {
  check_range(offset, out.size());
  if (device_.type != DeviceType::cpu)
    fail(Errc::unsupported, "storage", "lies in the memory of another device");
  if (!out.empty()) std::memcpy(out.data(), data() + offset, out.size());
}

}  // namespace ballast
