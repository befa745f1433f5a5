// SPDX-License-Identifier: Apache-2.0
// Every format into every other: what both can hold comes through bit by bit.
#include <gtest/gtest.h>

#include "ballast/io.h"
#include "base/scratch.h"
#include "formats/safetensors_testing.h"

namespace ballast {
namespace {

struct Format {
  std::string name;
  std::string extension;
};

const std::vector<Format> kFormats = {
    {"safetensors", ".safetensors"},
    {"torch-zip", ".pt"},
    {"torch-legacy", ".pth"},
    {"mpk", ".mpk"},
    {"mpk-gz", ".mpk.gz"},
    {"bpk", ".bpk"},
    {"npz", ".npz"},
    {"sharded", ".index.json"},
};

class Matrix : public Scratch {
 protected:
  // Writes and opens again.
  Checkpoint pass(const Checkpoint& checkpoint, const Format& format) {
    const std::string file = path("m" + std::to_string(count_++) + "/model");
    std::filesystem::create_directory(std::filesystem::path(file).parent_path());
    if (format.name == "sharded") {
      const std::uint64_t bytes = std::max<std::uint64_t>(checkpoint.total_bytes() / 3, 1);
      return open(save_shards(checkpoint, file + ".safetensors", {.shard_bytes = bytes}).index);
    }
    save(checkpoint, file + format.extension, {.format = format.name});
    return open(file + format.extension);
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
    for (const Format& first : kFormats) {
      const Checkpoint once = pass(checkpoint, first);
      expect_same(once, checkpoint, first.name);
      for (const Format& second : kFormats)
        expect_same(pass(once, second), checkpoint, first.name + " → " + second.name);
    }
  }

  // Can this format hold the dtype? The formats' own tables, said once more; PyTorch's is a test of its own.
  bool holds(const std::string& format, DType dtype) {
    const bool is_plain = info(dtype).kind != DTypeKind::complex && info(dtype).bits >= 8 &&
                          (info(dtype).kind != DTypeKind::floating || info(dtype).bits > 8) &&
                          info(dtype).kind != DTypeKind::quantized && info(dtype).kind != DTypeKind::opaque;
    if (format == "npz")
      return (is_plain && dtype != DType::bf16) || dtype == DType::c64 || dtype == DType::c128;
    if (format == "bpk" || format.starts_with("mpk")) return is_plain;
    if (format.starts_with("torch")) {
      Checkpoint one;
      one.add("w", Tensor::zeros(dtype, {2, 4}));
      try {
        save(one, path(format + ".probe"), {.format = format, .overwrite = true});
        return true;
      } catch (const Error&) {
        return false;
      }
    }
    return info(dtype).in_safetensors;
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

TEST_F(Matrix, EveryDtypeThroughEveryPair) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (info(dtype).kind == DTypeKind::quantized) continue;  // a PyTorch matter: they come with scales
    Checkpoint checkpoint;
    checkpoint.add("w", filled(dtype, {2, 4}));
    for (const Format& first : kFormats) {
      if (!holds(first.name, dtype)) {
        EXPECT_EQ(error_of([&] { pass(checkpoint, first); }).code(), Errc::not_representable)
            << first.name << ' ' << info(dtype).code;
        continue;
      }
      const Checkpoint once = pass(checkpoint, first);
      expect_same(once, checkpoint, first.name);
      for (const Format& second : kFormats) {
        if (!holds(second.name, dtype)) continue;
        expect_same(pass(once, second), checkpoint, first.name + " → " + second.name);
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

TEST_F(Matrix, AHundredThousandTensors) {
  Checkpoint checkpoint;
  for (std::int32_t i = 0; i < 100'000; ++i)
    checkpoint.add("layers." + std::to_string(i) + ".weight", Tensor::from<std::int32_t>({i, -i}, {2}));
  // Each once, in one chain: every pair would only say the same again, slowly.
  Checkpoint passed = checkpoint;
  for (const Format& format : kFormats) passed = pass(passed, format);
  ASSERT_EQ(passed.size(), checkpoint.size());
  for (const std::int32_t i : {0, 1, 9, 10, 4711, 99'998, 99'999}) {
    const Tensor tensor = passed.tensor("layers." + std::to_string(i) + ".weight");
    EXPECT_EQ(tensor.span<std::int32_t>()[1], -i);
  }
}

}  // namespace
}  // namespace ballast
