// SPDX-License-Identifier: Apache-2.0
#include "ballast/tensor.h"

#include <gmock/gmock.h>

#include <functional>
#include <random>
#include <sstream>

#include "ballast/error.h"
#include "base/error_of.h"
#include "base/fail.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Dims, LiveInlineOrOnTheHeap) {
  Dims dims;
  for (std::int64_t i = 0; i < 9; ++i) {
    dims.push_back(i);
    EXPECT_EQ(dims.size(), static_cast<std::size_t>(i + 1));
    EXPECT_EQ(dims.back(), i);
  }
  dims.erase(0);
  dims.insert(2, 77);
  EXPECT_THAT(dims, ElementsAre(1, 2, 77, 3, 4, 5, 6, 7, 8));
  while (dims.size() > 5) dims.erase(0);
  EXPECT_THAT(dims, ElementsAre(4, 5, 6, 7, 8));
}

TEST(Dims, MovedFromAreEmpty) {
  for (const std::size_t rank : {2U, 6U, 7U, 20U}) {
    Dims from = Dims::filled(rank, 3);
    const Dims to = std::move(from);
    EXPECT_EQ(to, Dims::filled(rank, 3));
    EXPECT_TRUE(from.empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(from.begin(), from.end());
    from = Dims::filled(rank, 4);
    Dims other;
    other = std::move(from);
    EXPECT_EQ(other, Dims::filled(rank, 4));
    EXPECT_EQ(from, Dims());
  }
}

TEST(Dims, ChangeAsAVectorDoes) {
  std::mt19937 random(17);  // the same every time
  std::vector<std::int64_t> plain;
  Dims dims;
  for (std::int64_t step = 0; step < 20'000; ++step) {
    const std::size_t at = plain.empty() ? 0 : random() % plain.size();
    const auto place = plain.begin() + static_cast<std::ptrdiff_t>(at);
    // Up and down across the few that live inline.
    if (!plain.empty() && random() % 12 < plain.size()) {
      plain.erase(place);
      dims.erase(at);
    } else if (random() % 2 == 0) {
      plain.insert(place, step);
      dims.insert(at, step);
    } else {
      plain.push_back(step);
      dims.push_back(step);
    }
    ASSERT_TRUE(std::equal(dims.begin(), dims.end(), plain.begin(), plain.end())) << step;
    if (step % 7 == 0) dims = Dims(dims);
    if (step % 11 == 0) {
      Dims moved = dims;
      dims = std::move(moved);
    }
  }
}

TEST(Shape, ProductsThatDoNotFitAreNotGiven) {
  EXPECT_EQ(try_numel(Shape{}), 1);
  EXPECT_EQ(try_numel(Shape{3, 0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_EQ(try_numel(Shape{INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(try_numel(Shape{2, -1}), std::nullopt);
  EXPECT_EQ(try_numel(Shape{0, -1}), std::nullopt);
  EXPECT_EQ(contiguous_strides(Shape{2, 3, 4}), (Strides{12, 4, 1}));
}

TEST(Tensor, EveryElementMustLieInTheStorage) {
  const auto storage = Storage::heap(24);
  EXPECT_NO_THROW(Tensor(DType::f32, {2, 3}, {3, 1}, storage));
  EXPECT_NO_THROW(Tensor(DType::f32, {2, 3}, {-3, 1}, storage, 3 * 32));
  EXPECT_NO_THROW(Tensor(DType::f32, {0, 3}, {100, 100}, storage));
  const auto refused = [&](Shape shape, Strides strides, std::uint64_t bit_offset) {
    return error_text([&] { Tensor(DType::f32, std::move(shape), std::move(strides), storage, bit_offset); });
  };
  EXPECT_THAT(
      refused({2, 3}, {3, 1}, 8),
      HasSubstr(
          "offset-out-of-range: tensor F32 [2, 3]: strides [3, 1] from bit 8 leave the storage of 24 bytes"));
  EXPECT_THAT(refused({2, 3}, {4, 1}, 0), HasSubstr("leave the storage"));
  EXPECT_THAT(refused({2, 3}, {-3, 1}, 64), HasSubstr("leave the storage"));
  EXPECT_THAT(refused({2, 2}, {INT64_MAX, INT64_MAX}, 0), HasSubstr("leave the storage"));
  EXPECT_THAT(refused({3}, {INT64_MAX}, 0), HasSubstr("size-overflow"));
  EXPECT_THAT(refused({3}, {INT64_MIN}, 0), HasSubstr("size-overflow"));
  EXPECT_THAT(refused({3}, {1, 1}, 0), HasSubstr("has 2 strides"));
  EXPECT_THAT(refused({1}, {1}, UINT64_MAX), HasSubstr("leave the storage"));
  EXPECT_THAT(error_text([&] {
                static_cast<void>(Tensor::contiguous_view(DType::u8, {1}, storage, UINT64_MAX / 4));
              }),
              HasSubstr("size-overflow"));
  EXPECT_THAT(error_text([] { Tensor(DType::f32, {std::int64_t{1} << 60}); }), HasSubstr("size-overflow"));
}

TEST(Tensor, SpansAreGivenOutOnlyForWhatTheTensorIs) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(tensor.span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(error_text([&] { static_cast<void>(tensor.span<double>()); }),
              HasSubstr("bad-dtype: tensor F32 [2, 3]: was asked for as F64"));
  EXPECT_THAT(error_text([&] { static_cast<void>(tensor.t().span<float>()); }),
              HasSubstr("use contiguous() first"));
  const auto storage = Storage::heap(16, true);
  EXPECT_THAT(error_text([&] {
                static_cast<void>(Tensor::contiguous_view(DType::f32, {2}, storage, 2).span<float>());
              }),
              HasSubstr("misaligned"));
  EXPECT_THAT(error_text([] { static_cast<void>(Tensor(DType::f32, {2}).span<float>()); }),
              HasSubstr("no data"));
  EXPECT_THAT(error_text([] { static_cast<void>(Tensor::from<float>({1}, {2})); }),
              HasSubstr("size-mismatch"));
}

TEST(Tensor, ReadOnlyMemoryIsNotWritten) {
  const float values[2] = {1, 2};
  Tensor tensor = Tensor::contiguous_view(DType::f32, {2},
                                          Storage::borrow(static_cast<const void*>(values), sizeof values));
  EXPECT_THAT(error_text([&] { static_cast<void>(tensor.mutable_span<float>()); }), HasSubstr("read-only"));
  tensor.clone().mutable_span<float>()[0] = 3;
  EXPECT_EQ(values[0], 1);
}

template <class T>
concept GivesItsBytesToWriters = requires(T& object) {
  object.mutable_data();
};

TEST(Tensor, WhatIsConstIsNotWritten) {
  static_assert(GivesItsBytesToWriters<Tensor> && !GivesItsBytesToWriters<const Tensor>);
  static_assert(GivesItsBytesToWriters<Storage> && !GivesItsBytesToWriters<const Storage>);
  Tensor heap = Tensor::zeros(DType::f32, {2});
  const std::uint64_t version = heap.storage()->version();
  EXPECT_TRUE(heap.is_writable());
  EXPECT_NE(heap.storage()->version(), version);
  const float value = 1;
  Tensor read_only = Tensor::contiguous_view(DType::f32, {1}, Storage::borrow(&value, 4));
  EXPECT_FALSE(read_only.is_writable());
  EXPECT_FALSE(Tensor(DType::f32, {2}).is_writable());
}

TEST(Tensor, MemoryOfAnotherDeviceIsNotTouched) {
  const auto storage = Storage::borrow(reinterpret_cast<void*>(0x1000), 64, {}, Device{DeviceType::cuda, 0});
  const Tensor tensor = Tensor::contiguous_view(DType::f32, {4, 4}, std::shared_ptr<const Storage>(storage));
  for (const Tensor& view : {tensor, tensor.t()}) {
    EXPECT_THAT(error_text([&] { static_cast<void>(view.clone()); }), HasSubstr("another device"));
    EXPECT_THAT(error_text([&] { static_cast<void>(view.to(DType::f16)); }), HasSubstr("another device"));
    std::byte out[4];
    EXPECT_THAT(error_text([&] { view.read(0, out); }), HasSubstr("another device"));
  }
}

TEST(Tensor, EmptyTensorsHaveNoBytesAndNoTrouble) {
  Tensor tensor = Tensor::empty(DType::f32, {0, 3});
  EXPECT_EQ(tensor.size_bytes(), 0U);
  EXPECT_TRUE(tensor.span<float>().empty());
  EXPECT_TRUE(tensor.mutable_span<float>().empty());
  EXPECT_EQ(tensor.to(DType::f16).numel(), 0);
  EXPECT_EQ(tensor.to_lazy(DType::f16).clone().numel(), 0);
  const Tensor nothing =
      Tensor::contiguous_view(DType::f32, {0}, Storage::borrow(static_cast<const void*>(nullptr), 0));
  EXPECT_TRUE(nothing.span<float>().empty());
  EXPECT_EQ(nothing.clone().numel(), 0);
}

TEST(Tensor, ItemIsTheOnlyElement) {
  EXPECT_EQ(Tensor::from<std::int64_t>({-7}, {}).item(), -7);
  EXPECT_EQ(Tensor::from<Half>({Half{0x3C00}}, {1, 1}).item(), 1);
  EXPECT_THAT(error_text([] {
                static_cast<void>(Tensor::from<float>({1, 2}, {2}).item());
              }),
              HasSubstr("has 2 elements"));
  EXPECT_THAT(error_text([] { static_cast<void>(Tensor::zeros(DType::c64, {}).item()); }),
              HasSubstr("cannot be cast"));
}

TEST(Tensor, CastsOfViewsAreCastsOfTheirElements) {
  const Tensor tensor = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_THAT(tensor.t().to(DType::i32).span<std::int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(tensor.t().to_lazy(DType::i32).span<std::int32_t>(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_TRUE(tensor.to(DType::f32).same_view(tensor));
}

TEST(Storage, DeferredBytesAreMadeOnceAndAgainAfterAFailure) {
  int calls = 0;
  const auto storage = Storage::deferred(4, [&](std::span<std::byte> out) {
    if (++calls == 1) throw Error(Errc::io_error, "", "not yet");
    std::fill(out.begin(), out.end(), std::byte{9});
  });
  EXPECT_FALSE(storage->ready());
  EXPECT_THROW(static_cast<void>(storage->data()), Error);
  EXPECT_FALSE(storage->ready());
  EXPECT_EQ(storage->data()[3], std::byte{9});
  EXPECT_EQ(storage->data()[0], std::byte{9});
  EXPECT_TRUE(storage->ready());
  EXPECT_EQ(calls, 2);
}

TEST(Storage, BorrowedMemoryIsReleasedWhenTheLastTensorIsGone) {
  float values[4] = {};
  int released = 0;
  {
    Tensor view;
    {
      const Tensor tensor = Tensor::contiguous_view(
          DType::f32, {4}, Storage::borrow(values, sizeof values, [&] { ++released; }));
      view = tensor.narrow(0, 1, 2);
    }
    EXPECT_EQ(released, 0);
    view.mutable_span<float>()[0] = 5;
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(values[1], 5);
}

TEST(DType, EveryNameLeadsBack) {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_code(info(dtype).code), dtype);
    if (!info(dtype).numpy.empty()) {
      EXPECT_EQ(dtype_from_numpy(info(dtype).numpy), dtype);
    }
    if (info(dtype).torch_name.empty()) continue;
    EXPECT_EQ(dtype_from_torch(info(dtype).torch_name), dtype);
    EXPECT_EQ(dtype_from_torch_scalar(info(dtype).torch_scalar), dtype);
  }
  EXPECT_EQ(dtype_from_code(""), std::nullopt);
  EXPECT_EQ(dtype_from_torch(""), std::nullopt);
  EXPECT_EQ(dtype_from_numpy(""), std::nullopt);
}

TEST(DType, ItsNameIsReadAsPeopleWriteIt) {
  for (const char* name : {"BF16", "bf16", "bfloat16", "torch.bfloat16"})
    EXPECT_EQ(dtype_from_name(name), DType::bf16) << name;
  EXPECT_EQ(dtype_from_name("full"), DType::f32);
  EXPECT_EQ(dtype_from_name("half"), DType::f16);
  EXPECT_EQ(dtype_from_name("double"), DType::f64);
  EXPECT_EQ(dtype_from_name("F8_e4m3"), DType::f8_e4m3);
  // Small letters are NumPy's where NumPy has them, capitals Safetensors' codes.
  EXPECT_EQ(dtype_from_name("f4"), DType::f32);
  EXPECT_EQ(dtype_from_name("F4"), DType::f4);
  EXPECT_EQ(dtype_from_name("<i8"), DType::i64);
  EXPECT_EQ(dtype_from_name("I8"), DType::i8);
  EXPECT_EQ(dtype_from_name(">f4"), std::nullopt);
  EXPECT_EQ(dtype_from_name("torch.long"), DType::i64);
  EXPECT_EQ(dtype_from_name("f31"), std::nullopt);
  EXPECT_EQ(dtype_from_name(""), std::nullopt);
  EXPECT_EQ(dtype_from_name("torch."), std::nullopt);
}

TEST(Tensor, UndefinedOnesAreNeitherCastNorReshaped) {
  EXPECT_EQ(code_of([] { static_cast<void>(Tensor().to(DType::f16)); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([] { static_cast<void>(Tensor().reshape({-1})); }), Errc::invalid_argument);
}

TEST(Shape, TextOfManyDimensionsIsCut) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  const std::string text = to_string(Shape(std::vector<std::int64_t>(600'000, 1)));
  EXPECT_LT(text.size(), 560U);
  EXPECT_THAT(text, ::testing::EndsWith("… (600000 dimensions)]"));
}

}  // namespace
}  // namespace ballast
