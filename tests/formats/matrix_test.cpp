// SPDX-License-Identifier: Apache-2.0
// Every format into every other: what both can hold comes through bit by bit.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ballast/io.h"
#include "base/scratch.h"
#include "formats/safetensors_testing.h"

namespace ballast {
namespace {

// What each format holds, said here once more: a dtype that a table loses by accident is missed here.
const std::map<std::string_view, std::set<std::string_view>> kHeld = {
    {"safetensors", {"BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
                     "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
                     "U32",     "F32",         "C64",         "F64",     "I64", "U64"}},
    {"record", {"BOOL",    "F4",          "F6_E2M3",     "F6_E3M2", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
                "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16",     "U16", "F16", "BF16",    "I32",
                "U32",     "F32",         "C64",         "F64",     "I64", "U64"}},
    {"torch-zip", {"BF16",    "BITS16",      "BITS1X8", "BITS2X4",     "BITS4X2", "BITS8", "BOOL",
                   "C128",    "C32",         "C64",     "F16",         "F32",     "F4",    "F64",
                   "F8_E4M3", "F8_E4M3FNUZ", "F8_E5M2", "F8_E5M2FNUZ", "F8_E8M0", "I16",   "I32",
                   "I64",     "I8",          "U16",     "U32",         "U64",     "U8"}},
    {"torch-legacy", {"BF16", "BOOL", "C128", "C64", "F16", "F32", "F64", "I16", "I32", "I64", "I8", "U8"}},
    {"bpk", {"BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64"}},
    {"mpk", {"BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64"}},
    {"mpk-gz", {"BOOL", "U8", "I8", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64", "U64"}},
    {"npz",
     {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "C64", "F64", "I64", "U64", "C128"}},
    {"npy",
     {"BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "C64", "F64", "I64", "U64", "C128"}},
};

class Matrix : public Scratch {
 protected:
  // Writes and opens again.
  Checkpoint pass(const Checkpoint& checkpoint, Format format) {
    const std::string file = path("m" + std::to_string(count_++) + "/model");
    std::filesystem::create_directory(std::filesystem::path(file).parent_path());
    if (format == formats::sharded) {
      const std::uint64_t bytes = std::max<std::uint64_t>(checkpoint.total_bytes() / 3, 1);
      return open(save_shards(checkpoint, file + ".safetensors", {.shard_bytes = bytes}).index);
    }
    save(checkpoint, file, {.format = format});
    return open(file);
  }

  static std::string bytes_of(const Entry& entry) {
    std::string bytes(static_cast<std::size_t>(entry.bytes), '\0');
    entry.tensor().read(0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  static void expect_same(const Checkpoint& got, const Checkpoint& want, const std::string& what) {
    ASSERT_EQ(got.size(), want.size()) << what;
    for (const Entry& entry : want) {
      ASSERT_TRUE(got.contains(entry.name)) << what << ' ' << entry.name;
      const Entry other = got.at(entry.name);
      EXPECT_EQ(other.dtype, entry.dtype) << what << ' ' << entry.name;
      EXPECT_EQ(Shape(other.shape), Shape(entry.shape)) << what << ' ' << entry.name;
      EXPECT_EQ(bytes_of(other), bytes_of(entry)) << what << ' ' << entry.name;
    }
  }

  void check_all(const Checkpoint& checkpoint) {
    for (const Format first : all_of_them()) {
      const Checkpoint once = pass(checkpoint, first);
      expect_same(once, checkpoint, std::string(first.name()));
      for (const Format second : all_of_them())
        expect_same(pass(once, second), checkpoint,
                    std::string(first.name()) + " → " + std::string(second.name()));
    }
  }

  // All that hold more than one tensor.
  static std::vector<Format> all_of_them() {
    std::vector<Format> all = writable_formats();
    std::erase(all, Format(formats::npy));
    all.emplace_back(formats::sharded);
    return all;
  }

  static bool holds(Format format, DType dtype) {
    return format == formats::sharded ? formats::safetensors.holds(dtype) : format->holds(dtype);
  }

  int count_ = 0;
};

Tensor filled(DType dtype, Shape shape) {
  Tensor tensor = Tensor::zeros(dtype, std::move(shape));
  const std::uint64_t size = tensor.size_bytes();
  auto* bytes = const_cast<std::byte*>(tensor.storage()->data());
  for (std::uint64_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>(dtype == DType::boolean ? i % 2 : i * 37 + 11);
  return tensor;
}

TEST_F(Matrix, EachFormatHoldsTheDtypesItShould) {
  for (const Format format : writable_formats()) {
    std::set<std::string_view> held;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      if (format->holds(dtype)) held.insert(info(dtype).code);
    }
    EXPECT_EQ(held, kHeld.at(format.name())) << format;
  }
}

TEST_F(Matrix, EveryDtypeThroughEveryPair) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (info(dtype).kind == DTypeKind::quantized) continue;  // a PyTorch matter: they come with scales
    Checkpoint checkpoint;
    checkpoint.add("w", filled(dtype, {2, 4}));
    for (const Format first : all_of_them()) {
      if (!holds(first, dtype)) {
        EXPECT_EQ(error_of([&] { pass(checkpoint, first); }).code(), Errc::not_representable)
            << first << ' ' << info(dtype).code;
        continue;
      }
      const Checkpoint once = pass(checkpoint, first);
      expect_same(once, checkpoint, std::string(first.name()));
      for (const Format second : all_of_them()) {
        if (!holds(second, dtype)) continue;
        expect_same(pass(once, second), checkpoint,
                    std::string(first.name()) + " → " + std::string(second.name()));
        ++pairs;
      }
    }
  }
  EXPECT_GT(pairs, 800U);
}

TEST_F(Matrix, TiedEmptyScalarAndStridedTensors) {
  Checkpoint checkpoint;
  const Tensor shared = filled(DType::f32, {4, 3});
  checkpoint.add("embed.weight", shared);
  checkpoint.add("head.weight", shared);
  checkpoint.add("head.half", shared.narrow(0, 2, 2));
  checkpoint.add("transposed", shared.t());
  checkpoint.add("empty", Tensor::zeros(DType::f32, {0, 3}));
  checkpoint.add("scalar", filled(DType::i64, {}));
  checkpoint.add("layers.0.w", filled(DType::f16, {3}));
  checkpoint.add("layers.1.w", filled(DType::f16, {3}));
  checkpoint.add("gaps.7.w", filled(DType::u8, {5}));
  checkpoint.add("ünïcode", filled(DType::u8, {1}));
  checkpoint.add("conv.weight", filled(DType::f32, {2, 2, 3, 3}));
  check_all(checkpoint);
}

TEST_F(Matrix, AnEmptyCheckpoint) {
  check_all(Checkpoint());
}

#if defined(BALLAST_SANITIZED)  // a tenth: the sanitizers look at every step, and the steps are the same
constexpr std::int32_t kMany = 10'000;
#else
constexpr std::int32_t kMany = 100'000;
#endif

TEST_F(Matrix, AHundredThousandTensors) {
  Checkpoint checkpoint;
  for (std::int32_t i = 0; i < kMany; ++i)
    checkpoint.add("layers." + std::to_string(i) + ".weight", Tensor::from<std::int32_t>({i, -i}, {2}));
  // Each once, in one chain: every pair would only say the same again, slowly.
  Checkpoint passed = checkpoint;
  for (const Format format : all_of_them()) passed = pass(passed, format);
  ASSERT_EQ(passed.size(), checkpoint.size());
  for (const std::int32_t i : {0, 1, 9, 10, 4711, kMany - 2, kMany - 1}) {
    const Tensor tensor = passed.tensor("layers." + std::to_string(i) + ".weight");
    EXPECT_EQ(tensor.span<std::int32_t>()[1], -i);
  }
}

}  // namespace
}  // namespace ballast
