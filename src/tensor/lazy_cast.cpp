// SPDX-License-Identifier: Apache-2.0
#include "tensor/lazy_cast.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/lazy.h"
#include "base/thread_pool.h"
#include "tensor/cast_loss.h"
#include "tensor/elements.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

// Elements converted at once; a multiple of 8, so that pieces end on bytes. Strided sources (transposes)
// waste less of every cache line they touch when more of their rows are taken together.
constexpr std::uint64_t kPiece = 1U << 16U;
constexpr std::uint64_t kStridedPiece = 1U << 18U;

void add(CastCount& count, const CastLoss& loss) {
  count.rounded += loss.rounded;
  count.overflowed += loss.overflowed;
}

// Elements of a tensor, read and cast.
class Converter {
 public:
  Converter(const Tensor& source, DType dtype, CastCount* count)
      : reader_(source), dtype_(dtype), count_(count) {}

  // From a multiple of eight on.
  void operator()(std::uint64_t first, std::uint64_t count, std::byte* out) {
    const std::byte* raw = reader_.read(first, count).data();
    cast_elements(reader_.stored(), raw, dtype_, out, count);
    if (count_ != nullptr) add(*count_, cast_loss(reader_.stored(), raw, dtype_, out, count));
  }

 private:
  ElementReader reader_;
  DType dtype_;
  CastCount* count_;
};

class CastStorage final : public Storage {
 public:
  CastStorage(Tensor source, DType dtype, std::shared_ptr<CastCount> count)
      : Storage(Tensor(dtype, source.shape()).size_bytes()),
        source_(std::move(source)),
        dtype_(dtype),
        count_(std::move(count)) {}

  [[nodiscard]] const std::byte* data() const override {
    const auto make = [this] {
      Tensor whole = source_.to(dtype_);
      if (count_) add(*count_, cast_loss(source_, whole));
      return whole;
    };
    return whole_.get(make).data();
  }

  [[nodiscard]] bool ready() const noexcept override { return whole_.ready(); }

  void check_unchanged() const override {
    if (source_.storage()) source_.storage()->check_unchanged();
  }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    ballast::check_sound(source_);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (out.empty()) return;
    if (ready()) return whole_.made().read(offset, out);
    const std::uint64_t bits = info(dtype_).bits;
    // The elements the range touches; begin on a multiple of eight, which begins on a byte in every dtype.
    const std::uint64_t begin = offset * 8 / bits / 8 * 8;
    const std::uint64_t end = std::min(((offset + out.size()) * 8 + bits - 1) / bits, numel());
    const std::uint64_t most = source_.is_contiguous() ? kPiece : kStridedPiece;
    parallel_for((end - begin - 1) / most + 1, 1, [&](std::uint64_t from, std::uint64_t to) {
      Converter convert(source_, dtype_, count_.get());
      for (std::uint64_t piece = from; piece < to; ++piece) {
        const std::uint64_t first = begin + piece * most;
        read_piece(convert, first, std::min(most, end - first), offset, out);
      }
    });
  }

 private:
  [[nodiscard]] std::uint64_t numel() const noexcept { return static_cast<std::uint64_t>(source_.numel()); }

  // The part of elements [first, first + count) that lies in `out`, which begins at byte `offset`.
  void read_piece(Converter& convert, std::uint64_t first, std::uint64_t count, std::uint64_t offset,
                  std::span<std::byte> out) const {
    const std::uint64_t begin = bytes_of(dtype_, first);
    const std::uint64_t end = begin + bytes_of(dtype_, count);
    if (begin >= offset && end <= offset + out.size())
      return convert(first, count, out.data() + (begin - offset));
    const auto block = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(end - begin));
    convert(first, count, block.get());
    const std::uint64_t low = std::max(begin, offset);
    const std::uint64_t high = std::min<std::uint64_t>(end, offset + out.size());
    std::memcpy(out.data() + (low - offset), block.get() + (low - begin),
                static_cast<std::size_t>(high - low));
  }

  Tensor source_;
  DType dtype_;
  std::shared_ptr<CastCount> count_;
  Lazy<Tensor> whole_;
};

}  // namespace

std::shared_ptr<const Storage> lazy_cast(Tensor source, DType dtype, std::shared_ptr<CastCount> count) {
  return std::make_shared<CastStorage>(std::move(source), dtype, std::move(count));
}

}  // namespace ballast
