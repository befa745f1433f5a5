// SPDX-License-Identifier: Apache-2.0
#include "tensor/lazy_cast.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/cast.h"

namespace ballast {
namespace {

constexpr std::uint64_t kPiece = 1U << 16U;  // elements converted at once; a multiple of 8, so that pieces end on bytes

class CastStorage final : public Storage {
 public:
  CastStorage(Tensor source, DType dtype)
      : Storage(Tensor(dtype, source.shape()).size_bytes()), source_(std::move(source)), dtype_(dtype) {}

  [[nodiscard]] const std::byte* data() const override {
    std::call_once(once_, [this] {
      whole_ = source_.to(dtype_);
      ready_.store(true, std::memory_order_release);
    });
    return whole_.data();
  }

  [[nodiscard]] bool ready() const noexcept override { return ready_.load(std::memory_order_acquire); }
  void check_unchanged() const override {
    if (source_.storage()) source_.storage()->check_unchanged();
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (out.empty()) return;
    if (ready()) return whole_.read(offset, out);
    const std::uint64_t bits = info(dtype_).bits;
    // The elements the range touches; begin on a multiple of eight, which begins on a byte in every dtype.
    const std::uint64_t begin = offset * 8 / bits / 8 * 8;
    const std::uint64_t end = std::min(((offset + out.size()) * 8 + bits - 1) / bits, numel());
    parallel_for((end - begin - 1) / kPiece + 1, 1, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t piece = from; piece < to; ++piece) {
        const std::uint64_t first = begin + piece * kPiece;
        read_piece(first, std::min(kPiece, end - first), offset, out);
      }
    });
  }

 private:
  [[nodiscard]] std::uint64_t numel() const noexcept { return static_cast<std::uint64_t>(source_.numel()); }

  // The part of elements [first, first + count) that lies in `out`, which begins at byte `offset`.
  void read_piece(std::uint64_t first, std::uint64_t count, std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint64_t bits = info(dtype_).bits;
    const std::uint64_t begin = first * bits / 8;
    const std::uint64_t end = begin + (count * bits + 7) / 8;
    if (begin >= offset && end <= offset + out.size()) return convert(first, count, out.data() + (begin - offset));
    std::vector<std::byte> block(static_cast<std::size_t>(end - begin));
    convert(first, count, block.data());
    const std::uint64_t low = std::max(begin, offset);
    const std::uint64_t high = std::min<std::uint64_t>(end, offset + out.size());
    std::memcpy(out.data() + (low - offset), block.data() + (low - begin), static_cast<std::size_t>(high - low));
  }

  // Elements from a multiple of eight on.
  void convert(std::uint64_t first, std::uint64_t count, std::byte* out) const {
    const std::uint64_t bits = info(source_.dtype()).bits;
    std::vector<std::byte> in(static_cast<std::size_t>((count * bits + 7) / 8));
    source_.read(first * bits / 8, in);
    cast_elements(source_.dtype(), in.data(), dtype_, out, count);
  }

  Tensor source_;
  DType dtype_;
  mutable std::once_flag once_;
  mutable Tensor whole_;
  mutable std::atomic<bool> ready_{false};
};

}  // namespace

std::shared_ptr<const Storage> lazy_cast(Tensor source, DType dtype) {
  return std::make_shared<CastStorage>(std::move(source), dtype);
}

}  // namespace ballast
