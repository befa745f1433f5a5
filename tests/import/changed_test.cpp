// SPDX-License-Identifier: Apache-2.0
// Files that somebody writes to after they were opened: whatever reads all of their numbers says so, and
// nothing is made of two states of one file.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "ballast/diff.h"
#include "ballast/error.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/stats.h"
#include "ballast/verify.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

Errc outcome(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc{};
}

class ChangedTest : public Scratch {
 protected:
  // Of every format, read in both ways, and then written to.
  void for_each_changed(const std::function<void(const Checkpoint&, const std::string& what)>& look) {
    Checkpoint in;
    in.add("a.weight", counting({3, 4}));
    in.add("b.weight", counting({300, 70}));
    for (const char* const extension : {".safetensors", ".pt", ".npz", ".bpk", ".mpk"}) {
      for (const Io io : {Io::map, Io::read}) {
        const std::string file = path(std::string("in") + extension);
        save(in, file, {.overwrite = true});
        const Checkpoint opened = open(file, {.io = io});
        const auto before = fs::last_write_time(file);
        write(file, content(file));  // its checksums stay right: the time alone tells
        fs::last_write_time(file, before + 2s);
        look(opened, std::string(extension) + (io == Io::map ? ", mapped" : ", read"));
      }
    }
  }
};

TEST_F(ChangedTest, EveryReaderOfAllNumbersSaysSo) {
  for_each_changed([&](const Checkpoint& changed, const std::string& what) {
    Checkpoint other;
    other.add("a.weight", counting({3, 4}));
    other.add("b.weight", counting({300, 70}));
    EXPECT_EQ(outcome([&] { static_cast<void>(hash(changed)); }), Errc::file_changed) << what;
    EXPECT_EQ(outcome([&] { static_cast<void>(diff(changed, other)); }), Errc::file_changed) << what;
    EXPECT_EQ(outcome([&] { static_cast<void>(diff(other, changed)); }), Errc::file_changed) << what;
    std::vector<Tensor> tensors;
    for (const Entry& entry : changed) tensors.push_back(entry.tensor());
    EXPECT_EQ(outcome([&] { static_cast<void>(stats(tensors)); }), Errc::file_changed) << what;
    EXPECT_EQ(outcome([&] { static_cast<void>(summary(tensors[1])); }), Errc::file_changed) << what;
  });
}

TEST_F(ChangedTest, NoFormatIsWrittenOfIt) {
  for_each_changed([&](const Checkpoint& changed, const std::string& what) {
    for (const char* const name :
         {"out.safetensors", "out.pt", "out.npz", "out.bpk", "out.mpk", "out.mpk.gz"}) {
      EXPECT_EQ(outcome([&] { save(changed, path(name)); }), Errc::file_changed) << what << " -> " << name;
      EXPECT_FALSE(fs::exists(path(name))) << what << " -> " << name;
    }
    EXPECT_EQ(outcome([&] { save(changed, path("out.pth"), {.format = formats::torch_legacy}); }),
              Errc::file_changed)
        << what;
  });
}

TEST_F(ChangedTest, WhatIsComputedOfAModelIsNotComputedOfTwo) {
  for (const char* const name : {"raw", "sparse", "typed", "constants", "unpacked"}) {
    const std::string file = path(std::string(name) + ".onnx");
    fs::copy_file(std::string(BALLAST_TEST_DATA) + "/fixtures/onnx/files/" + name + ".onnx", file);
    const Checkpoint opened = open(file);
    fs::last_write_time(file, fs::last_write_time(file) + 2s);
    EXPECT_EQ(outcome([&] { static_cast<void>(hash(opened)); }), Errc::file_changed) << name;
  }
}

TEST_F(ChangedTest, WhatIsAsItWasIsRead) {
  Checkpoint in;
  in.add("a.weight", counting({3, 4}));
  save(in, path("in.pt"));
  const Checkpoint opened = open(path("in.pt"));
  fs::rename(path("in.pt"), path("moved.pt"));
  write(path("in.pt"), "another file");
  EXPECT_EQ(hash(opened).root, hash(in).root);
}

}  // namespace
}  // namespace ballast
