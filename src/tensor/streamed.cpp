// SPDX-License-Identifier: Apache-2.0
#include "tensor/streamed.h"

#include <algorithm>
#include <utility>

#include "base/sizes.h"
#include "base/thread_pool.h"

namespace ballast {
namespace {

class StreamedStorage final : public ComputedStorage {
 public:
  StreamedStorage(std::uint64_t size, MakeBytes make, Storages sources)
      : ComputedStorage(size), make_(std::move(make)), sources_(std::move(sources)) {}

  void check_unchanged() const override {
    for (const auto& source : sources_) source->check_unchanged();
  }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    for (const auto& source : sources_) source->check_sound(0, source->size());
  }

 private:
  void compute(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    parallel_for((out.size() - 1) / kBlockBytes + 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t at = begin * kBlockBytes;
           at < std::min<std::uint64_t>(end * kBlockBytes, out.size()); at += kBlockBytes) {
        make_(offset + at,
              out.subspan(static_cast<std::size_t>(at),
                          static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, out.size() - at))));
      }
    });
  }

  MakeBytes make_;
  Storages sources_;
};

}  // namespace

const std::byte* ComputedStorage::data() const {
  const auto make = [this] {
    auto bytes = Storage::heap(size());
    compute(0, {bytes->mutable_data(), static_cast<std::size_t>(size())});
    return bytes;
  };
  return whole_.get(make)->data();
}

void ComputedStorage::read(std::uint64_t offset, std::span<std::byte> out) const {
  check_range(offset, out.size());
  if (ready()) return whole_.made()->read(offset, out);
  compute(offset, out);
}

std::shared_ptr<const Storage> streamed_storage(std::uint64_t size, MakeBytes make, Storages sources) {
  return std::make_shared<StreamedStorage>(size, std::move(make), std::move(sources));
}

}  // namespace ballast
