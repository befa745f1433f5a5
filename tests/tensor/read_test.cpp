// SPDX-License-Identifier: Apache-2.0
// Tensor::read: any range of bytes of the row-major form is what the whole form has there, whatever stands
// behind the tensor.
#include <gmock/gmock.h>

#include <random>

#include "ballast/error.h"
#include "ballast/tensor.h"
#include "tensor/cast_support.h"
#include "tensor/concat.h"

namespace ballast {
namespace {

Tensor noise(DType dtype, Shape shape, std::uint32_t seed) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  std::mt19937 random(seed);
  for (std::uint64_t i = 0; i < tensor.size_bytes(); ++i)
    tensor.mutable_data()[i] = static_cast<std::byte>(random());
  return tensor;
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.size_bytes());
  tensor.read(0, bytes);
  return bytes;
}

class ChangedStorage final : public Storage {
 public:
  ChangedStorage() : Storage(4) {}

  [[nodiscard]] const std::byte* data() const override { return bytes_; }

  void check_unchanged() const override { throw Error(Errc::file_changed, "test", "changed"); }

 private:
  std::byte bytes_[4] = {};
};

void expect_pieces(const Tensor& tensor, const std::vector<std::byte>& whole) {
  ASSERT_EQ(whole.size(), tensor.size_bytes());
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const std::size_t first = random() % (whole.size() + 1);
    const std::size_t length = random() % (whole.size() - first + 1);
    std::vector<std::byte> piece(length);
    tensor.read(first, piece);
    ASSERT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)))
        << tensor << ' ' << first << '+' << length;
  }
  std::vector<std::byte> beyond(2);
  EXPECT_THROW(tensor.read(whole.size() - 1, beyond), Error);
  EXPECT_THROW(tensor.read(UINT64_MAX, beyond), Error);
}

TEST(Read, PiecesOfStridedTensorsAreThoseOfTheWhole) {
  for (const DType dtype :
       {DType::u8, DType::f16, DType::f32, DType::c128, DType::f4, DType::f6_e2m3, DType::qu2x4}) {
    const Tensor base = noise(dtype, {5, 33, 7}, 1);
    for (const Tensor& view : {base, base.transpose(0, 2), base.index({ellipsis, Slice{1, {}, 2}}),
                               base.index({1}), base.index({Slice{{}, {}, -1}})}) {
      expect_pieces(view, bytes_of(view.clone()));
    }
  }
}

TEST(Read, UnusedBitsOfTheLastByteAreZero) {
  const Tensor base = noise(DType::f4, {4, 5}, 2);
  const Tensor row = base.narrow(0, 0, 1);  // five elements: the sixth, in the same byte, is the next row's
  EXPECT_EQ(bytes_of(row).size(), 3U);
  EXPECT_LT(std::to_integer<int>(bytes_of(row).back()), 16);
  EXPECT_EQ(bytes_of(row), bytes_of(row.clone()));
  EXPECT_EQ(bytes_of(base.index({1})), bytes_of(base.index({1}).clone()));
}

TEST(Read, PiecesOfLazyCastsAreThoseOfTheCast) {
  for (const DType from : real_dtypes()) {
    for (const DType to :
         {DType::f32, DType::bf16, DType::f8_e4m3, DType::f6_e3m2, DType::f4, DType::i64, DType::boolean}) {
      if (from == to) continue;
      const Tensor source = noise(from, {3, 41, 9}, 3).transpose(0, 1);
      const Tensor lazy = source.to_lazy(to);
      const auto whole = bytes_of(source.to(to));
      expect_pieces(lazy, whole);
      EXPECT_FALSE(lazy.storage()->ready());  // nothing was kept
      static_cast<void>(lazy.data());
      EXPECT_TRUE(lazy.storage()->ready());
      expect_pieces(lazy, whole);
    }
  }
}

TEST(Read, LargeLazyCastsAreReadInManyPieces) {
  const Tensor source = noise(DType::bf16, {700, 1003}, 4);
  const Tensor lazy = source.t().to_lazy(DType::f6_e2m3);
  expect_pieces(lazy, bytes_of(source.t().contiguous().to(DType::f6_e2m3)));
  EXPECT_EQ(bytes_of(lazy.clone()), bytes_of(lazy));
  EXPECT_FALSE(lazy.storage()->ready());
}

TEST(Read, ALazyCastOfALazyCastIsBoth) {
  const Tensor source = noise(DType::f64, {50}, 5);
  EXPECT_EQ(bytes_of(source.to_lazy(DType::f32).to_lazy(DType::f16)),
            bytes_of(source.to(DType::f32).to(DType::f16)));
}

TEST(Read, PiecesOfAJoinAreThoseOfTheWhole) {
  for (const std::int64_t dim : {0, 1, 2}) {
    const std::vector<Tensor> parts = {noise(DType::bf16, {6, 31, 40}, 6),
                                       noise(DType::bf16, {6, 40, 31}, 7).transpose(1, 2)};
    const Tensor joined = concat_lazy(parts, dim);
    const Tensor whole = joined.clone();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t length = parts[i].shape()[static_cast<std::size_t>(dim)];
      EXPECT_EQ(bytes_of(whole.narrow(dim, static_cast<std::int64_t>(i) * length, length)),
                bytes_of(parts[i]));
    }
    expect_pieces(joined, bytes_of(whole));
    EXPECT_FALSE(joined.storage()->ready());  // nothing was kept
  }
}

TEST(Read, ACastOfAJoinKeepsNothing) {
  const std::vector<Tensor> parts = {noise(DType::bf16, {3, 9}, 8), noise(DType::bf16, {3, 9}, 9)};
  const Tensor joined = concat_lazy(parts, 0);
  EXPECT_EQ(bytes_of(joined.to(DType::f32).narrow(0, 3, 3)), bytes_of(parts[1].to(DType::f32)));
  EXPECT_FALSE(joined.storage()->ready());
}

TEST(Read, AJoinAsksAllItsSourcesWhetherTheyChanged) {
  const auto fresh = Tensor::zeros(DType::u8, {4});
  const auto changed = std::make_shared<ChangedStorage>();
  const std::vector<Tensor> parts = {fresh, Tensor::contiguous_view(DType::u8, {4}, changed)};
  EXPECT_THROW(concat_lazy(parts, 0).storage()->check_unchanged(), Error);
}

TEST(Read, ShapesWithoutDataSaySo) {
  const Tensor shape_only(DType::f32, {2, 3});
  std::vector<std::byte> out(4);
  EXPECT_THROW(shape_only.read(0, out), Error);
  EXPECT_THROW(static_cast<void>(shape_only.data()), Error);
  EXPECT_FALSE(shape_only.to(DType::f16).has_data());
}

}  // namespace
}  // namespace ballast
