// SPDX-License-Identifier: Apache-2.0
// The meaning of tensors and modules in pickles, case by case. Files are written by hand here; numbers of
// strided views are computed from their definition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/scan.h"
#include "ballast/torch.h"
#include "formats/pickle_asm.h"

namespace ballast {
namespace {

using namespace testing::pickle;

std::string floats(std::int64_t offset, const std::string& sizes, const std::string& strides) {
  return legacy(dict({{"w", tensor(storage("0", "Float", 100), offset, sizes, strides)}}), kFloats);
}

// Row-major elements of a view over 0, 1, 2, … are the numbers of the elements it shows.
template <class T>
void expect_view(const Checkpoint& checkpoint, std::int64_t offset, std::vector<std::int64_t> sizes,
                 std::vector<std::int64_t> strides) {
  const Tensor tensor = checkpoint.tensor("w");
  EXPECT_EQ(tensor.shape(), Shape(sizes));
  std::vector<T> expected;
  std::vector<std::int64_t> at(sizes.size(), 0);
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t element = offset;
    for (std::size_t d = 0; d < at.size(); ++d) element += at[d] * strides[d];
    expected.push_back(static_cast<T>(element));
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
  std::vector<T> got(expected.size());
  tensor.read(0, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, expected);
}

std::string numbers(const std::vector<std::int64_t>& values) {
  std::string code = "(";
  for (const std::int64_t value : values) code += integer(value);
  return code + "t";
}

void check_view(std::int64_t offset, const std::vector<std::int64_t>& sizes,
                const std::vector<std::int64_t>& strides) {
  expect_view<float>(read(floats(offset, numbers(sizes), numbers(strides))), offset, sizes, strides);
}

// Tensors

TEST(TorchTensor, StridedViewsShowTheElementsTheyName) {
  check_view(0, {2, 3, 2, 2}, {12, 1, 6, 3});  // channels_last
  check_view(2, {3, 4}, {1, 3});               // transposed, with an offset
  check_view(1, {5}, {7});                     // every seventh
  check_view(0, {4, 3}, {1, 1});               // overlapping windows
  check_view(3, {1, 4, 1}, {999, 2, 12345});   // size-1 dims with odd strides
  check_view(5, {2, 3, 2}, {2, 0, 1});         // expanded in the middle
  check_view(100, {0}, {1});                   // nothing, at the very end
  check_view(42, {}, {});                      // one number
}

TEST(TorchTensor, StridedViewsOfOtherTypes) {
  const auto check = []<class T>(const char* type, T) {
    const std::string file =
        legacy(dict({{"w", tensor(storage("0", type, 100), 3, tuple({4, 5}), tuple({1, 4}))}}),
               {counted<T>("0", 100)});
    expect_view<T>(read(file), 3, {4, 5}, {1, 4});
  };
  check("Short", std::int16_t{});
  check("Byte", std::uint8_t{});
  check("Double", double{});
}

TEST(TorchTensor, NegativeStridesSizesAndOffsetsAreRefused) {
  EXPECT_EQ(refusal(floats(3, tuple({4}), tuple({-1}))), Errc::offset_out_of_range);
  EXPECT_EQ(refusal(floats(-1, tuple({4}), tuple({1}))), Errc::offset_out_of_range);
  EXPECT_EQ(refusal(floats(0, tuple({-4}), tuple({1}))), Errc::shape_mismatch);
}

TEST(TorchTensor, AsManyStridesAsSizes) {
  EXPECT_EQ(refusal(floats(0, tuple({2, 2}), tuple({1}))), Errc::size_mismatch);
}

TEST(TorchTensor, OverflowingSizesAreRefused) {
  EXPECT_EQ(refusal(floats(0, tuple({INT64_C(1) << 32, INT64_C(1) << 32}), tuple({0, 0}))),
            Errc::size_overflow);
  EXPECT_EQ(refusal(floats(0, tuple({INT64_C(1) << 62}), tuple({0}))), Errc::size_overflow);
}

TEST(TorchTensor, AViewBeyondItsStorageIsRefusedWithItsKey) {
  try {
    static_cast<void>(read(floats(91, tuple({10}), tuple({1}))));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::offset_out_of_range);
    EXPECT_NE(std::string(error.what()).find("near \"w\""), std::string::npos) << error.what();
  }
  check_view(90, {10}, {1});
}

TEST(TorchTensor, AStorageBeyondTheFileIsATruncatedFile) {
  std::string file = floats(0, tuple({10}), tuple({1}));
  file.pop_back();
  EXPECT_EQ(refusal(file), Errc::truncated);
}

TEST(TorchTensor, ExpandedViewsOfTerabytesAreRefused) {
  EXPECT_EQ(refusal(floats(0, tuple({1 << 21, 1 << 21}), tuple({0, 0}))), Errc::expanded_view);
  check_view(0, {8, 4}, {0, 1});
}

TEST(TorchTensor, StorageViewsOfOldFilesAreWindows) {
  const std::string view = "(" + text("7") + integer(10) + integer(20) + "t";
  const std::string file =
      legacy(dict({{"w", tensor(storage("0", "Float", 100, view), 5, tuple({3}), tuple({2}))}}), kFloats);
  expect_view<float>(read(file), 15, {3}, {2});
  const std::string beyond =
      legacy(dict({{"w", tensor(storage("0", "Float", 100, view), 0, tuple({21}), tuple({1}))}}), kFloats);
  EXPECT_EQ(refusal(beyond), Errc::offset_out_of_range);
}

TEST(TorchTensor, UntypedStoragesAreSeenThroughTheTensorsType) {
  const std::string store = "(" + text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
                            text("cpu") + integer(200) + "NtQ";
  const std::string code = global("torch._utils", "_rebuild_tensor_v3") + "(" + store + integer(3) +
                           tuple({5}) + tuple({2}) + "\x89" + kHooks + global("torch", "uint16") + "tR";
  Blob blob = counted<std::uint16_t>("0", 100);
  blob.numel = 200;
  const Checkpoint checkpoint = read(legacy(dict({{"w", code}}), {blob}));
  EXPECT_EQ(checkpoint[0].dtype, DType::u16);
  expect_view<std::uint16_t>(checkpoint, 3, {5}, {2});
}

// Two numbers are one element there, also where there is none, or one without a dimension.
TEST(TorchTensor, PairsOfFloat4AreCountedOneByOneWhateverTheirShape) {
  struct Case {
    std::vector<std::int64_t> sizes, strides;
    Shape shape;
  };
  const std::string untyped = "(" + text("storage") + global("torch.storage", "UntypedStorage") + text("0") +
                              text("cpu") + integer(6) + "NtQ";
  const auto pairs = [&](const Case& given) {
    return global("torch._utils", "_rebuild_tensor_v3") + "(" + untyped + integer(0) + numbers(given.sizes) +
           numbers(given.strides) + "\x89" + kHooks + global("torch", "float4_e2m1fn_x2") + "tR";
  };
  const auto meta = [&](const Case& given) {
    return global("torch._utils", "_rebuild_meta_tensor_no_storage") + "(" +
           global("torch", "float4_e2m1fn_x2") + numbers(given.sizes) + numbers(given.strides) + "\x89tR";
  };
  for (const Case& given :
       {Case{{}, {}, {2}}, Case{{2, 3}, {3, 1}, {2, 6}}, Case{{3, 0, 2}, {2, 2, 1}, {3, 0, 4}},
        Case{{3, 0, 2}, {0, 2, 1}, {3, 0, 4}}, Case{{2, 0}, {1, 1}, {2, 0}}}) {
    const Checkpoint read_back =
        read(legacy(dict({{"w", pairs(given)}, {"m", meta(given)}}), {{"0", 6, "abcdef"}}));
    EXPECT_EQ(read_back.tensor("w").shape(), given.shape);
    EXPECT_EQ(read_back.tensor("m").shape(), given.shape);
    const std::string path = ::testing::TempDir() + "/float4.pt";
    for (const char* name : {"w", "m"}) {
      Checkpoint one;
      one.add(name, read_back.tensor(name));
      torch::save(one, path, {.overwrite = true});
      EXPECT_EQ(open(path)[0].tensor().shape(), given.shape) << name;
      EXPECT_TRUE(scan(path).clean()) << name;
    }
  }
}

// As PyTorch's to_dense(), which multiplies by one.
TEST(TorchTensor, AnInfinitePartOfASparseComplexNumberLeavesNoOther) {
  const std::string layout =
      global("torch.serialization", "_get_layout") + text("torch.sparse_coo") + "\x85R";
  const std::string indices = tensor(storage("0", "Long", 1), 0, tuple({1, 1}), tuple({1, 1}));
  const std::string values = tensor(storage("1", "ComplexFloat", 1), 0, tuple({1}), tuple({1}));
  const std::string made = global("torch._utils", "_rebuild_sparse_tensor") + "(" + layout + "(" + indices +
                           values + tuple({2}) + "ttR";
  const float value[] = {std::numeric_limits<float>::infinity(), 1};
  const std::string bytes(reinterpret_cast<const char*>(value), sizeof value);
  float got[4] = {};
  read(legacy(dict({{"w", made}}), {{"0", 1, le(1, 8)}, {"1", 1, bytes}}))
      .tensor("w")
      .read(0, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got[2], value[0]);
  EXPECT_TRUE(std::isnan(got[3]));
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 0);
}

TEST(TorchTensor, OfAMetaTensorItIsKeptWhetherItWantsGradients) {
  for (const bool wants : {false, true}) {
    const std::string made = global("torch._utils", "_rebuild_meta_tensor_no_storage") + "(" +
                             global("torch", "float32") + tuple({2}) + tuple({1}) +
                             (wants ? "\x88" : "\x89") + "tR";
    const Checkpoint checkpoint = read(legacy(dict({{"m", made}}), {}));
    EXPECT_EQ(checkpoint.value("m").tensor_value().requires_grad, wants);
  }
}

TEST(TorchTensor, BoolBytesStayAsTheyAre) {
  const std::string file = legacy(dict({{"w", tensor(storage("0", "Bool", 3), 0, tuple({3}), tuple({1}))}}),
                                  {{"0", 3, "\x00\x01\x02"s}});
  std::vector<std::byte> bytes(3);
  read(file).tensor("w").read(0, bytes);
  EXPECT_EQ(bytes[2], std::byte{2});
}

TEST(TorchTensor, ACountThatDisagreesWithThePickleSaysBothNumbers) {
  const std::string file =
      legacy(dict({{"w", tensor(storage("0", "Float", 10), 0, tuple({10}), tuple({1}))}}),
             {counted<float>("0", 11)});
  try {
    static_cast<void>(read(file));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::size_mismatch);
    EXPECT_NE(std::string(error.what()).find("holds 11 elements but the pickle declares 10"),
              std::string::npos)
        << error.what();
  }
}

TEST(TorchTensor, AStorageThatIsNotThereIsAnErrorAndNeverZeros) {
  EXPECT_EQ(refusal(legacy(dict({{"w", tensor(storage("1", "Float", 4), 0, tuple({4}), tuple({1}))}}), {})),
            Errc::missing_storage);
}

TEST(TorchTensor, QuantizedTensorsCarryTheirParameters) {
  const std::string code = global("torch._utils", "_rebuild_qtensor") + "(" + storage("0", "QInt8", 4) +
                           integer(0) + tuple({4}) + tuple({1}) + "(" + global("torch", "per_tensor_affine") +
                           "G\x3f\xe0\x00\x00\x00\x00\x00\x00"s + integer(-3) + "t\x89" + kHooks + "tR";
  const Checkpoint checkpoint = read(legacy(dict({{"w", code}}), {counted<std::int8_t>("0", 4)}));
  const auto quantization = checkpoint.value("w").tensor_value().quantization;
  ASSERT_TRUE(quantization.has_value());
  EXPECT_EQ(quantization->scale, 0.5);
  EXPECT_EQ(quantization->zero_point, -3);
  EXPECT_EQ(checkpoint[0].dtype, DType::qi8);
}

// Modules and objects

std::string weight() {
  return tensor(storage("0", "Float", 100), 0, tuple({2}), tuple({1}));
}

std::string module(std::string_view name, const std::string& parameters, const std::string& modules) {
  return global("net", name) + ")\x81" +
         dict({{"training", "\x88"}, {"_parameters", parameters}, {"_buffers", "}"}, {"_modules", modules}}) +
         "b";
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const Entry& entry : checkpoint) names.emplace_back(entry.name);
  return names;
}

TEST(TorchModule, IsReadAsItsStateDictInEveryProtocol) {
  const std::string root =
      module("Net", dict({{"scale", weight()}, {"none", "N"}}),
             dict({{"fc", module("Linear", dict({{"weight", weight()}}), "}")}, {"gone", "N"}}));
  for (const int protocol : {2, 4}) {
    const Checkpoint checkpoint = read(legacy(root, kFloats, protocol));
    EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"scale", "fc.weight"}));
    EXPECT_EQ(checkpoint.value("fc.weight").kind(), Kind::tensor);
    ASSERT_FALSE(checkpoint.notes.empty());
  }
}

TEST(TorchModule, SharedUnderTwoNamesHasBoth) {
  const std::string shared = module("Linear", dict({{"weight", weight()}}), "}") + "q\x20";
  const Checkpoint checkpoint =
      read(legacy(module("Net", "}", "}(" + text("a") + shared + text("b") + "h\x20u"), kFloats));
  EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"a.weight", "b.weight"}));
  EXPECT_TRUE(checkpoint.tensor("a.weight").same_view(checkpoint.tensor("b.weight")));
}

TEST(TorchModule, ObjectsWithTensorAttributesGiveThem) {
  const std::string bag = global("net", "Bag") + ")\x81" + dict({{"w", weight()}, {"n", "K\x03"}}) + "b";
  EXPECT_EQ(names_of(read(legacy(dict({{"bag", bag}}), kFloats))), (std::vector<std::string>{"bag.w"}));
}

TEST(TorchModule, TwoTensorsOfOneNameAreRefused) {
  const std::string other = tensor(storage("0", "Float", 100), 50, tuple({2}), tuple({1}));
  EXPECT_EQ(refusal(legacy(dict({{"a.b", weight()}, {"a", dict({{"b", other}})}}), kFloats)),
            Errc::duplicate_key);
  // The same tensor under the same name is only itself.
  EXPECT_EQ(read(legacy(dict({{"a.b", weight()}, {"a", dict({{"b", weight()}})}}), kFloats)).size(), 1U);
}

// Damage

TEST(TorchDamage, EveryCutAndEveryChangedByteIsReadOrRefused) {
  const std::string file = legacy(module("Net", dict({{"scale", weight()}}),
                                         dict({{"fc", module("Linear", dict({{"weight", weight()}}), "}")}})),
                                  {counted<float>("0", 100)});
  const auto survive = [](const std::string& bytes) {
    try {
      const Checkpoint checkpoint = read(bytes);
      for (const Entry& entry : checkpoint) {
        std::vector<std::byte> content(static_cast<std::size_t>(std::min<std::uint64_t>(entry.bytes, 4096)));
        const Tensor tensor = entry.tensor();
        if (tensor.has_data()) tensor.read(0, content);
      }
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(survive(file.substr(0, size))) << "cut at " << size;
  const std::size_t pickles = file.size() - 408;
  for (std::size_t at = 0; at < pickles; ++at) {
    for (int value = 0; value < 256; value += 5) {
      std::string changed = file;
      changed[at] = static_cast<char>(value);
      static_cast<void>(survive(changed));
    }
  }
}

}  // namespace
}  // namespace ballast
