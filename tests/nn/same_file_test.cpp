// SPDX-License-Identifier: Apache-2.0
// A layer that is given one tensor of a file after another, or whose tensor is written through another view
// of it: what it prepared from the first bytes must not answer for the second. In every format, since each
// makes storages in its own way.
#include <gtest/gtest.h>

#include "ballast/format.h"
#include "ballast/io.h"
#include "ballast/nn.h"
#include "ballast/ops.h"
#include "base/scratch.h"

namespace ballast {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && all(a == b).item<bool>();
}

class SameFile : public Scratch {
 protected:
  // Large enough to be worth packing, small enough to be read at once.
  SameFile() {
    Generator generator(1);
    checkpoint_.add("a", randn({160, 150}, generator));
    checkpoint_.add("b", randn({160, 150}, generator));
    x_ = randn({8, 160}, generator);
  }

  // work(file, name of the case) for every format and way to read it.
  template <class Work>
  void in_every_format(const Work& work) {
    std::size_t formats = 0;
    for (const Format& format : writable_formats()) {
      const std::string file = path(std::string(format.name()) + ".file");
      try {
        save(checkpoint_, file, {.format = format});
      } catch (const Error& error) {
        if (error.code() == Errc::unsupported || error.code() == Errc::not_representable) continue;
        throw;
      }
      ++formats;
      for (const Io io : {Io::map, Io::read}) {
        for (const bool writable : {false, true}) {
          SCOPED_TRACE(std::string(format.name()) + (io == Io::map ? " mapped" : " read") +
                       (writable ? ", writable" : ""));
          work(open(file, {.io = io, .writable = writable}), writable);
        }
      }
    }
    EXPECT_GE(formats, 5U);
  }

  Checkpoint checkpoint_;
  Tensor x_;
};

TEST_F(SameFile, ALayerGivenAnotherTensorOfTheFileUsesThat) {
  in_every_format([&](const Checkpoint& file, bool /*writable*/) {
    nn::Linear layer(160, 150, {.bias = false});
    for (const char* name : {"a", "b", "a"}) {
      layer.weight = file.tensor(name);
      nn::Linear fresh(160, 150, {.bias = false});
      fresh.weight = checkpoint_.tensor(name);
      EXPECT_TRUE(same(layer(x_), fresh(x_))) << name;
    }
  });
}

TEST_F(SameFile, ALayerNoticesWritesThroughTheFilesOwnTensor) {
  int written = 0;
  in_every_format([&](const Checkpoint& file, bool writable) {
    if (!writable) return;
    nn::Linear layer(160, 150, {.bias = false});
    layer.weight = file.tensor("a");
    static_cast<void>(layer(x_));
    Tensor other = file.tensor("a");
    try {
      other *= 2;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);  // not as the file has it: made when it is read
      return;
    }
    ++written;
    nn::Linear fresh(160, 150, {.bias = false});
    fresh.weight = checkpoint_.tensor("a") * 2;
    EXPECT_TRUE(same(layer(x_), fresh(x_)));
  });
  EXPECT_GE(written, 8);
}

}  // namespace
}  // namespace ballast
