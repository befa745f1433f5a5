// SPDX-License-Identifier: Apache-2.0
// Damage that a checksum in the file can tell: what is loaded with `verify` and what is saved.
#include "ballast/load_file.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;

struct Net {
  nn::Linear fc{2, 2, {.bias = false}};
};

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

TEST_F(SoundTest, AVerifiedLoadRefusesDamageAndLeavesTheModelAsItWas) {
  for (const char* name : {"d.pt", "d.record", "d.npz"}) {
    for (const Io io : {Io::map, Io::read}) {
      const Checkpoint file = open(damaged(name), {.io = io});
      Net net;
      EXPECT_EQ(code_of([&] { load(net, file, {.verify = true}); }), Errc::bad_crc) << name;
      EXPECT_FALSE(net.fc.weight.has_data());
      EXPECT_TRUE(load(net, file).complete());
    }
  }
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
