// SPDX-License-Identifier: Apache-2.0
#include "ballast/dlpack.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "base/error_of.h"

namespace ballast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A tensor whose end can be seen.
Tensor watched(bool& gone, DType dtype, Shape shape, bool read_only = false) {
  const std::uint64_t size = Tensor(dtype, shape).size_bytes();
  auto* bytes = new std::byte[size]();
  const auto release = [&gone, bytes] {
    gone = true;
    delete[] bytes;
  };
  if (read_only)
    return Tensor::contiguous_view(dtype, std::move(shape),
                                   Storage::borrow(static_cast<const void*>(bytes), size, release));
  return Tensor::contiguous_view(dtype, std::move(shape),
                                 Storage::borrow(static_cast<void*>(bytes), size, release));
}

TEST(DLPack, ShowsTheTensorsOwnBytes) {
  Tensor tensor = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {2, 3});
  dlpack::ManagedTensor* managed = to_dlpack(tensor.t().index({Slice{1, {}, {}}}));
  const dlpack::TensorView& view = managed->dl_tensor;
  EXPECT_EQ(view.ndim, 2);
  EXPECT_EQ(view.shape[0], 2);
  EXPECT_EQ(view.shape[1], 2);
  EXPECT_EQ(view.strides[0], 1);
  EXPECT_EQ(view.strides[1], 3);
  EXPECT_EQ(static_cast<float*>(view.data), tensor.span<float>().data() + 1);
  EXPECT_EQ(view.byte_offset, 0U);
  EXPECT_EQ(view.device.device_type, 1);
  EXPECT_EQ(view.dtype.code, 2);
  EXPECT_EQ(view.dtype.bits, 32);
  EXPECT_EQ(view.dtype.lanes, 1);
  managed->deleter(managed);
}

// Code and bits as in dlpack.h of DLPack 1.1.
TEST(DLPack, TypesHaveTheCodesOfTheStandard) {
  const std::tuple<DType, int, int> expected[] = {
      {DType::i8, 0, 8},           {DType::i64, 0, 64},         {DType::u8, 1, 8},
      {DType::u16, 1, 16},         {DType::u64, 1, 64},         {DType::f16, 2, 16},
      {DType::f64, 2, 64},         {DType::bf16, 4, 16},        {DType::c32, 5, 32},
      {DType::c64, 5, 64},         {DType::c128, 5, 128},       {DType::boolean, 6, 8},
      {DType::f8_e4m3, 10, 8},     {DType::f8_e4m3fnuz, 11, 8}, {DType::f8_e5m2, 12, 8},
      {DType::f8_e5m2fnuz, 13, 8}, {DType::f8_e8m0, 14, 8},     {DType::f6_e2m3, 15, 6},
      {DType::f6_e3m2, 16, 6},     {DType::f4, 17, 4}};
  for (const auto& [dtype, code, bits] : expected) {
    dlpack::ManagedTensorVersioned* managed = to_dlpack_versioned(Tensor::zeros(dtype, {8}));
    EXPECT_EQ(managed->dl_tensor.dtype.code, code) << dtype;
    EXPECT_EQ(managed->dl_tensor.dtype.bits, bits) << dtype;
    EXPECT_EQ(managed->version.major, 1U);
    const Tensor back = from_dlpack(managed);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.shape(), (Shape{8}));
  }
}

TEST(DLPack, TheBytesLiveUntilBothSidesLetGo) {
  bool gone = false;
  dlpack::ManagedTensor* managed = nullptr;
  {
    const Tensor tensor = watched(gone, DType::f32, {4});
    managed = to_dlpack(tensor);
  }
  EXPECT_FALSE(gone);
  {
    Tensor view;
    {
      const Tensor tensor = from_dlpack(managed);
      view = tensor.narrow(0, 2, 1);
    }
    EXPECT_FALSE(gone);
    EXPECT_EQ(view.item(), 0);
  }
  EXPECT_TRUE(gone);
}

TEST(DLPack, AnExportNobodyTakesIsReleasedByItsDeleter) {
  for (const bool read_only : {false, true}) {
    bool gone = false;
    dlpack::ManagedTensorVersioned* managed = to_dlpack_versioned(watched(gone, DType::u8, {4}, read_only));
    EXPECT_EQ(managed->flags, read_only ? 1U : 0U);
    EXPECT_FALSE(gone);
    managed->deleter(managed);
    EXPECT_TRUE(gone);
  }
}

TEST(DLPack, ReadOnlyMemoryStaysReadOnly) {
  bool gone = false;
  const Tensor tensor = watched(gone, DType::f32, {4}, true);
  EXPECT_THAT(error_text([&] { static_cast<void>(to_dlpack(tensor)); }),
              HasSubstr("not-representable: tensor F32 [4]: is read-only"));
  Tensor back = from_dlpack(to_dlpack_versioned(tensor));
  EXPECT_THAT(error_text([&] { static_cast<void>(back.mutable_data()); }), HasSubstr("read-only"));
  Tensor writable = from_dlpack(to_dlpack_versioned(Tensor::zeros(DType::f32, {4})));
  EXPECT_NO_THROW(writable.mutable_span<float>()[0] = 1);
}

TEST(DLPack, ViewsInEveryDirectionComeBackAsTheyWere) {
  Tensor base = Tensor::zeros(DType::i32, {4, 6});
  for (std::size_t i = 0; i < 24; ++i) base.mutable_span<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  for (const Tensor& view : {base.t(), base.index({Slice{{}, {}, -1}, Slice{1, {}, 2}}), base.index({2}),
                             base.index({1, 2}), base.narrow(0, 0, 0), base.unsqueeze(0).expand({3, 4, 6})}) {
    const Tensor back = from_dlpack(to_dlpack(view));
    EXPECT_EQ(back.shape(), view.shape());
    const Tensor expected = view.clone();
    const Tensor got = back.clone();
    EXPECT_TRUE(std::ranges::equal(got.span<std::int32_t>(), expected.span<std::int32_t>())) << view;
  }
}

TEST(DLPack, WhatItCannotSayIsRefused) {
  EXPECT_THAT(error_text([] { static_cast<void>(to_dlpack(Tensor::zeros(DType::qu8, {2}))); }),
              HasSubstr("not-representable: tensor QU8 [2]"));
  EXPECT_THAT(error_text([] { static_cast<void>(to_dlpack(Tensor::zeros(DType::bits8, {2}))); }),
              HasSubstr("no code for"));
  EXPECT_THAT(error_text([] { static_cast<void>(to_dlpack(Tensor(DType::f32, {2}))); }),
              HasSubstr("no data"));
  EXPECT_THAT(error_text([] { static_cast<void>(to_dlpack(Tensor())); }), HasSubstr("no data"));
  EXPECT_THAT(error_text([] {
                static_cast<void>(to_dlpack(Tensor::zeros(DType::f4, {4, 4}).t()));
              }),
              HasSubstr("use contiguous() first"));
  EXPECT_THAT(error_text([] {
                static_cast<void>(to_dlpack(Tensor::zeros(DType::f4, {4, 3}).index({1})));
              }),
              HasSubstr("use contiguous() first"));
}

TEST(DLPack, AForeignTensorThatIsRefusedStillBelongsToTheCaller) {
  static int deleted;
  deleted = 0;
  float values[6] = {0, 1, 2, 3, 4, 5};
  std::int64_t shape[2] = {2, 3};
  std::int64_t strides[2] = {3, 1};
  const dlpack::ManagedTensorVersioned good = {{1, 0},
                                               nullptr,
                                               [](dlpack::ManagedTensorVersioned*) { ++deleted; },
                                               0,
                                               {values, {1, 0}, 2, {2, 32, 1}, shape, strides, 0}};
  const auto refused = [&](const std::function<void(dlpack::ManagedTensorVersioned&)>& change) {
    dlpack::ManagedTensorVersioned managed = good;
    change(managed);
    const std::string text = error_text([&] { static_cast<void>(from_dlpack(&managed)); });
    EXPECT_EQ(deleted, 0) << text;
    return text;
  };
  EXPECT_THAT(refused([](auto& m) { m.version.major = 2; }),
              HasSubstr("unsupported: DLPack tensor: is of version 2.0"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.device.device_type = 4; }), HasSubstr("device of type 4"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.dtype.lanes = 4; }), HasSubstr("bad-dtype"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.dtype.code = 99; }), HasSubstr("bad-dtype"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.dtype.bits = 24; }), HasSubstr("bad-dtype"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.data = nullptr; }), HasSubstr("no address"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.ndim = -1; }), HasSubstr("-1 dimensions"));
  EXPECT_THAT(refused([](auto& m) { m.dl_tensor.shape = nullptr; }), HasSubstr("no shape"));
  EXPECT_THAT(refused([](auto& m) { m.flags = dlpack::kSubByteTypePadded; }), HasSubstr("padded"));
  std::int64_t huge[2] = {INT64_MAX, 3};
  EXPECT_THAT(refused([&](auto& m) { m.dl_tensor.shape = huge; }), HasSubstr("size-overflow"));
  std::int64_t wide[2] = {INT64_MAX, INT64_MIN};
  EXPECT_THAT(refused([&](auto& m) { m.dl_tensor.strides = wide; }), HasSubstr("size-overflow"));
  EXPECT_THAT(
      error_text([] { static_cast<void>(from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr))); }),
      HasSubstr("is null"));

  dlpack::ManagedTensorVersioned managed = good;
  managed.dl_tensor.strides = nullptr;  // row-major
  managed.dl_tensor.byte_offset = 4;
  shape[1] = 2;
  EXPECT_THAT(from_dlpack(&managed).span<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(deleted, 1);
}

}  // namespace
}  // namespace ballast
