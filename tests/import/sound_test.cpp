// SPDX-License-Identifier: Apache-2.0
// Damage that a checksum in the file can tell: what is loaded with `verify` and what is saved.
#include <gmock/gmock.h>

#include "ballast/error.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;

// Where the bytes of each tensor begin in the file, for those that lie there as they are.
std::vector<std::pair<std::string, std::uint64_t>> places(const std::string& file) {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  const Checkpoint checkpoint = open(file);
  for (const Entry& entry : checkpoint) {
    const Tensor tensor = entry.tensor();
    if (const auto span = tensor.storage()->source_span())
      found.emplace_back(entry.name, span->offset + tensor.bit_offset() / 8);
  }
  return found;
}

std::vector<std::vector<std::byte>> bytes_of(const auto& model) {
  std::vector<std::vector<std::byte>> all;
  for_each_tensor(model, [&](std::string_view, const Tensor& tensor, LayerKind) {
    all.emplace_back(tensor.contiguous().data(), tensor.contiguous().data() + tensor.size_bytes());
  });
  return all;
}

class SoundTest : public Scratch {
 protected:
  // The weight in a file of this kind, the lowest bit of its first number turned over.
  std::string damaged(const std::string& name) {
    Checkpoint in;
    in.add("fc.weight", Tensor::from<float>({1.25F, 2.5F, 3.75F, 5.0F}, {2, 2}));
    in.add("other", Tensor::from<float>({8.0F}, {1}));
    save(in, path(name), {.overwrite = true});
    std::string bytes = content(path(name));
    const std::string weight("\x00\x00\xA0\x3F\x00\x00\x20\x40", 8);  // 1.25, 2.5
    bytes[bytes.rfind(weight)] ^= 1;
    write(path(name), bytes);
    return path(name);
  }
};

// Every tensor of every format is damaged in turn, where it lies in the file.
TEST_F(SoundTest, AVerifiedLoadNamesTheDamagedTensorAndLeavesTheModelAsItWas) {
  struct Layers {
    nn::Linear fc{3, 2};
    nn::Embedding words{5, 3};
    nn::MultiheadAttention attention{4, 2};
    nn::BatchNorm1d norm{3};
  };

  Layers source;
  init(source, 1);
  std::size_t refused = 0;
  for (const Format format : writable_formats()) {
    if (format == formats::npy || format == formats::mpk_gz) continue;  // one tensor only; packed as a whole
    const bool proves = format == formats::torch_zip || format == formats::record || format == formats::npz;
    const std::string file = path("layers." + std::string(format.name()));
    save(to_checkpoint(source), file, {.format = format});
    const std::string whole = content(file);
    for (const auto& [key, offset] : places(file)) {
      SCOPED_TRACE(fmt::format("{} {}", format.name(), key));
      std::string bytes = whole;
      bytes[offset] ^= 1;
      write(file, bytes);
      for (const Io io : {Io::map, Io::read}) {
        const Checkpoint damaged = open(file, {.io = io});
        Layers model;
        init(model, 2);
        const auto before = bytes_of(model);
        for (const Precision dtype : {Precision::keep, Precision::half}) {
          const auto verified = [&] { load(model, damaged, {.dtype = dtype, .verify = true}); };
          if (!proves) continue;
          const Error error = error_of(verified);
          EXPECT_EQ(error.code(), Errc::bad_crc);
          EXPECT_THAT(error.what(), testing::HasSubstr(quoted(key)));
          EXPECT_EQ(bytes_of(model), before);
          ++refused;
        }
        // What is not taken is not asked for.
        EXPECT_NO_THROW(
            load(model, damaged, {.exclude = {"^" + key + "$"}, .missing = OnMissing::keep, .verify = true}));
        EXPECT_TRUE(load(model, damaged, {.verify = !proves}).complete());
      }
    }
  }
  EXPECT_EQ(refused, 3U * 12 * 2 * 2);
}

// A model whose weights lie in another file may have that file's SHA-1.
TEST_F(SoundTest, ExternalDataOfAnOnnxModelIsHeldAgainstItsChecksum) {
  const std::string files = std::string(BALLAST_TEST_DATA) + "/fixtures/onnx/files";
  std::filesystem::copy(files + "/shared.onnx", path("shared.onnx"));
  std::filesystem::copy(files + "/data", path("data"));
  save(open(path("shared.onnx")), path("sound.safetensors"));
  std::string bytes = content(path("data/w.safetensors"));
  bytes.back() ^= 1;
  write(path("data/w.safetensors"), bytes);
  const Checkpoint damaged = open(path("shared.onnx"));
  const Error error = error_of([&] { save(damaged, path("o.safetensors")); });
  EXPECT_EQ(error.code(), Errc::bad_crc);
  EXPECT_THAT(error.what(), testing::HasSubstr("SHA-1"));
  EXPECT_FALSE(std::filesystem::exists(path("o.safetensors")));
  save(damaged, path("rescued.safetensors"), {.check = false});
}

TEST_F(SoundTest, SaveRefusesDamageUnlessToldOtherwiseAlsoThroughCasts) {
  for (const char* name : {"d.pt", "d.record", "d.npz"}) {
    const Checkpoint file = open(damaged(name));
    for (const Checkpoint& each : {file, cast(file, DType::f64), filter(file, {"fc"})}) {
      EXPECT_EQ(code_of([&] { save(each, path("o.safetensors")); }), Errc::bad_crc) << name;
      EXPECT_EQ(code_of([&] { save_shards(each, path("o.safetensors")); }), Errc::bad_crc) << name;
      EXPECT_FALSE(std::filesystem::exists(path("o.safetensors")));
    }
    save(filter(file, {"other"}), path("sound.safetensors"), {.overwrite = true});
    save(file, path("rescued.safetensors"), {.check = false, .overwrite = true});
  }
}

}  // namespace
}  // namespace ballast
