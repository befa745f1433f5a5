// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files, read and written.
#include "formats/shards/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ballast/io.h"
#include "ballast/scan.h"
#include "ballast/torch.h"
#include "base/error_of.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
namespace fs = std::filesystem;

class Shards : public Scratch {
 protected:
  // Ten tensors of 100 bytes each.
  static Checkpoint ten(float first = 0) {
    Checkpoint checkpoint;
    for (int i = 0; i < 10; ++i) {
      Tensor tensor = Tensor::zeros(DType::f32, {25});
      tensor.mutable_span<float>()[0] = first + static_cast<float>(i);
      checkpoint.add("layer." + std::to_string(i), tensor);
    }
    checkpoint.metadata = Metadata{{"format", "pt"}};
    return checkpoint;
  }

  static float first_of(const Checkpoint& checkpoint, const std::string& name) {
    return checkpoint.tensor(name).clone().span<float>()[0];  // a legacy .bin aligns nothing
  }

  void index(const std::string& map, const std::string& name = "model.safetensors.index.json") const {
    write(path(name), R"({"metadata": {"total_size": 8}, "weight_map": {)" + map + "}}");
  }

  void one(const std::string& file, const std::string& tensor) const {
    Checkpoint checkpoint;
    checkpoint.add(tensor, Tensor::from<float>({1, 2}, {2}));
    save(checkpoint, path(file));
  }
};

TEST_F(Shards, AreWrittenWithAnIndexAndReadAsOne) {
  std::uint64_t last = 0;
  const SavedShards saved =
      save_shards(ten(), path("model.safetensors"),
                  {.shard_bytes = 350, .progress = [&](std::uint64_t done, std::uint64_t total) {
                     EXPECT_EQ(total, 1000U);
                     EXPECT_GT(done, last);
                     last = done;
                   }});
  EXPECT_EQ(last, 1000U);
  EXPECT_THAT(names(), ElementsAre("model-00001-of-00004.safetensors", "model-00002-of-00004.safetensors",
                                   "model-00003-of-00004.safetensors", "model-00004-of-00004.safetensors",
                                   "model.safetensors.index.json"));
  EXPECT_EQ(saved.files.size(), 4U);
  EXPECT_EQ(saved.index, path("model.safetensors.index.json"));
  for (const std::string& source : {saved.index, path("")}) {  // the index, and the folder it lies in
    const Checkpoint read = open(source);
    EXPECT_EQ(read.format.name(), "sharded");
    ASSERT_EQ(read.size(), 10U);
    for (int i = 0; i < 10; ++i)
      EXPECT_EQ(first_of(read, "layer." + std::to_string(i)), static_cast<float>(i));
    EXPECT_EQ(read.metadata, (Metadata{{"format", "pt"}}));
    EXPECT_TRUE(read.notes.empty());
    EXPECT_EQ(read[0].name, "layer.0");
  }
  // As Hugging Face's libraries lay it out.
  EXPECT_THAT(
      content(saved.index),
      HasSubstr("{\n  \"metadata\": {\n    \"total_size\": 1000\n  },\n  \"weight_map\": {\n    \"layer.0\": "
                "\"model-00001-of-00004.safetensors\",\n"));
}

TEST_F(Shards, SaveWritesThemWhenASizeIsSaid) {
  save(ten(), path("model.safetensors"), {.shard_bytes = 350});
  EXPECT_THAT(names(), SizeIs(5));  // four and the index, as above
  EXPECT_EQ(open(path("")).size(), 10U);
  EXPECT_EQ(code_of([&] {
              save(ten(), path("other.safetensors"), {.format = formats::torch_zip, .shard_bytes = 350});
            }),
            Errc::unsupported);
}

TEST_F(Shards, ALargeTensorGetsAFileOfItsOwnAndAnEmptyCheckpointOne) {
  Checkpoint checkpoint;
  checkpoint.add("small", Tensor::zeros(DType::u8, {10}));
  checkpoint.add("large", Tensor::zeros(DType::u8, {1000}));
  checkpoint.add("last", Tensor::zeros(DType::u8, {10}));
  EXPECT_EQ(save_shards(checkpoint, path("m.safetensors"), {.shard_bytes = 100}).files.size(), 3U);
  EXPECT_EQ(open(path("m.safetensors.index.json")).size(), 3U);
  EXPECT_EQ(save_shards(Checkpoint(), path("e.safetensors"), {.shard_bytes = 100}).files.size(), 1U);
  EXPECT_TRUE(open(path("e.safetensors.index.json")).empty());
  EXPECT_EQ(error_of([&] { save_shards(checkpoint, path("m.pt"), {}); }).code(), Errc::invalid_argument);
}

TEST_F(Shards, AnExistingSetIsKeptUntilTheNewOneIsComplete) {
  save_shards(ten(), path("model.safetensors"), {.shard_bytes = 500});
  EXPECT_EQ(error_of([&] { save_shards(ten(), path("model.safetensors"), {.shard_bytes = 500}); }).code(),
            Errc::already_exists);
  // A source read while it is replaced by itself.
  const Checkpoint old = open(path(""));
  save_shards(old, path("model.safetensors"), {.shard_bytes = 500, .overwrite = true});
  EXPECT_THAT(names(), ElementsAre("model-v2-00001-of-00002.safetensors",
                                   "model-v2-00002-of-00002.safetensors", "model.safetensors.index.json"));
  EXPECT_EQ(first_of(open(path("")), "layer.9"), 9.0F);
  save_shards(ten(100), path("model.safetensors"), {.shard_bytes = 500, .overwrite = true});
  EXPECT_THAT(names(), ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                   "model.safetensors.index.json"));
  EXPECT_EQ(first_of(open(path("")), "layer.9"), 109.0F);
}

TEST_F(Shards, AFailureInTheMiddleLeavesTheOldFilesAndNothingElse) {
  save_shards(ten(), path("model.safetensors"), {.shard_bytes = 100});
  const std::vector<std::string> before = names();
  Checkpoint failing = ten(100);
  failing.add("layer.6b",
              Tensor::contiguous_view(DType::u8, {100}, Storage::deferred(100, [](std::span<std::byte>) {
                                        throw Error(Errc::no_space, "disk", "full");
                                      })));
  EXPECT_EQ(error_of([&] {
              save_shards(failing, path("model.safetensors"), {.shard_bytes = 100, .overwrite = true});
            }).code(),
            Errc::no_space);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(first_of(open(path("")), "layer.9"), 9.0F);
  EXPECT_EQ(error_of([&] { save_shards(failing, path("new.safetensors"), {.shard_bytes = 100}); }).code(),
            Errc::no_space);
  EXPECT_EQ(names(), before);
}

TEST_F(Shards, AFolderWithASlashIsMadeAndGoesAgainWithAFailure) {
  const SavedShards saved = save_shards(ten(), path("new/"), {.shard_bytes = 350});
  EXPECT_EQ(saved.index, path("new/model.safetensors.index.json"));
  EXPECT_EQ(open(path("new/")).size(), 10U);
  save_shards(ten(), path("new/"), {.shard_bytes = 350, .overwrite = true});  // which is no new one now

  const auto stop = [](std::uint64_t, std::uint64_t) { throw Error(Errc::io_error, "", "stop"); };
  EXPECT_EQ(code_of([&] { save_shards(ten(), path("other/"), {.progress = stop}); }), Errc::io_error);
  EXPECT_FALSE(fs::exists(path("other")));
  EXPECT_EQ(code_of([&] { save_shards(ten(), path("new/"), {.overwrite = true, .progress = stop}); }),
            Errc::io_error);
  EXPECT_EQ(open(path("new/")).size(), 10U);

  // As a signal handler would.
  const auto discard = [](std::uint64_t, std::uint64_t) { discard_unfinished_files(); };
  EXPECT_EQ(code_of([&] { save_shards(ten(), path("other/"), {.progress = discard}); }),
            Errc::file_not_found);
  EXPECT_FALSE(fs::exists(path("other")));

  EXPECT_EQ(code_of([&] { save_shards(ten(), path("no/such/")); }), Errc::file_not_found);
  EXPECT_FALSE(fs::exists(path("no")));
}

TEST_F(Shards, AFailedNameTakesBackTheOthers) {
  // The index cannot get its name: a folder is in the way by then.
  Checkpoint checkpoint = ten();
  checkpoint.add("late",
                 Tensor::contiguous_view(DType::u8, {1}, Storage::deferred(1, [&](std::span<std::byte> out) {
                                           out[0] = std::byte{1};
                                           fs::create_directory(path("model.safetensors.index.json"));
                                         })));
  EXPECT_THROW(save_shards(checkpoint, path("model.safetensors"), {.shard_bytes = 300}), Error);
  EXPECT_THAT(names(), ElementsAre("model.safetensors.index.json"));
}

TEST_F(Shards, OfPyTorchFilesAreReadToo) {
  Checkpoint a, b;
  a.add("x", Tensor::from<float>({1}, {1}));
  b.add("y", Tensor::from<float>({2}, {1}));
  torch::save(a, path("pytorch_model-00001-of-00002.bin"));
  torch::save(b, path("pytorch_model-00002-of-00002.bin"), {.format = formats::torch_legacy});
  index(R"("y": "pytorch_model-00002-of-00002.bin", "x": "pytorch_model-00001-of-00002.bin")",
        "pytorch_model.bin.index.json");
  const Checkpoint read = open(path(""));
  EXPECT_EQ(first_of(read, "x"), 1.0F);
  EXPECT_EQ(first_of(read, "y"), 2.0F);
  EXPECT_TRUE(scan(path("")).clean());
}

TEST_F(Shards, MissingOnesAreNamed) {
  one("a.safetensors", "x");
  index(R"("x": "a.safetensors", "y": "b.safetensors", "z": "c.safetensors")");
  const Error error = error_of([&] { static_cast<void>(open(path(""))); });
  EXPECT_EQ(error.code(), Errc::missing_shard);
  EXPECT_THAT(error.what(), HasSubstr("2 of 3 shards are not there: \"b.safetensors\", \"c.safetensors\""));
}

TEST_F(Shards, DisagreementWithTheIndexIsReported) {
  one("a.safetensors", "x");
  one("b.safetensors", "y");
  index(R"("x": "a.safetensors", "nobody": "b.safetensors")");
  Error error = error_of([&] { static_cast<void>(open(path(""))); });
  EXPECT_EQ(error.code(), Errc::index_mismatch);
  EXPECT_THAT(error.what(), HasSubstr("\"nobody\""));
  index(R"("x": "b.safetensors", "y": "a.safetensors")");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path(""))); }).code(), Errc::index_mismatch);
  one("c.safetensors", "x");
  index(R"("x": "a.safetensors", "y": "b.safetensors", "q": "c.safetensors")");
  error = error_of([&] { static_cast<void>(open(path(""))); });
  EXPECT_EQ(error.code(), Errc::duplicate_key);
  EXPECT_THAT(error.what(), HasSubstr("\"a.safetensors\" and \"c.safetensors\""));
}

TEST_F(Shards, TensorsTheIndexDoesNotKnowAreLeftOutAndNamed) {
  Checkpoint both;
  both.add("x", Tensor::from<float>({1, 2}, {2}));
  both.add("extra", Tensor::from<float>({1, 2}, {2}));
  save(both, path("a.safetensors"));
  index(R"("x": "a.safetensors")");
  const Checkpoint read = open(path("model.safetensors.index.json"));
  EXPECT_EQ(read.size(), 1U);
  EXPECT_THAT(read.notes, Contains(HasSubstr("\"extra\"")));
}

TEST_F(Shards, NeverLeaveTheirFolder) {
  fs::create_directory(path("in"));
  one("outside.safetensors", "x");
  const std::string index_path = path("in/model.safetensors.index.json");
  for (const std::string& name :
       std::vector<std::string>{"../outside.safetensors", path("outside.safetensors"),
                                "./../outside.safetensors", "a/../../outside.safetensors", "", ".", "..",
                                "a//b", "a\\\\b", "a/./b", "sub/inside.safetensors", "a\\u0000b"}) {
    write(index_path, R"({"weight_map": {"x": ")" + name + "\"}}");
    EXPECT_EQ(error_of([&] { static_cast<void>(open(index_path)); }).code(), Errc::path_escape) << name;
  }
  fs::create_symlink("../outside.safetensors", path("in/link.safetensors"));
  write(index_path, R"({"weight_map": {"x": "link.safetensors"}})");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(index_path)); }).code(), Errc::path_escape);
  fs::create_directory(path("in/sub"));
  fs::copy(path("outside.safetensors"), path("in/sub/inside.safetensors"));
  fs::create_symlink("sub/inside.safetensors", path("in/fine.safetensors"));
  write(index_path, R"({"weight_map": {"x": "fine.safetensors"}})");
  EXPECT_EQ(open(index_path).size(), 1U);
}

// The shard is swapped for a link out of the folder and back, all the time. Whatever is opened was inside.
TEST_F(Shards, ALinkPutThereBetweenLookingAndOpeningLeadsNowhere) {
  fs::create_directory(path("in"));
  one("outside.safetensors", "y");
  one("in/real.safetensors", "x");
  const std::string shard = path("in/a.safetensors");
  write(path("in/model.safetensors.index.json"), R"({"weight_map": {"x": "a.safetensors"}})");
  fs::copy(path("in/real.safetensors"), shard);
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    while (!done) {
      fs::create_symlink("../outside.safetensors", path("in/link"));
      fs::rename(path("in/link"), shard);
      fs::copy(path("in/real.safetensors"), path("in/copy"));
      fs::rename(path("in/copy"), shard);
    }
  });
  for (int i = 0; i < 500; ++i) {
    try {
      EXPECT_TRUE(open(path("in/model.safetensors.index.json")).contains("x"));
    } catch (const Error& error) {
      // Of the file outside, index_mismatch would have been said: its tensor has another name.
      EXPECT_TRUE(error.code() == Errc::path_escape || error.code() == Errc::missing_shard) << error.what();
    }
  }
  done = true;
  swapper.join();
  EXPECT_TRUE(open(path("in/model.safetensors.index.json")).contains("x"));  // the copy is there now
}

TEST_F(Shards, TheHubsCacheIsReadThroughItsLinks) {
  const std::string repository = path("models--org--name");
  fs::create_directories(repository + "/blobs");
  fs::create_directories(repository + "/snapshots/0123abc");
  one("models--org--name/blobs/aaaa.safetensors", "x");
  fs::rename(repository + "/blobs/aaaa.safetensors", repository + "/blobs/aaaa");
  write(repository + "/blobs/bbbb", R"({"weight_map": {"x": "model-1.safetensors"}})");
  const std::string snapshot = repository + "/snapshots/0123abc";
  fs::create_symlink("../../blobs/aaaa", snapshot + "/model-1.safetensors");
  fs::create_symlink("../../blobs/bbbb", snapshot + "/model.safetensors.index.json");
  EXPECT_EQ(first_of(open(snapshot), "x"), 1.0F);
  EXPECT_EQ(first_of(open(snapshot + "/model.safetensors.index.json"), "x"), 1.0F);
  // Only to its own blobs.
  one("elsewhere.safetensors", "x");
  fs::remove(snapshot + "/model-1.safetensors");
  fs::create_symlink("../../../elsewhere.safetensors", snapshot + "/model-1.safetensors");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(snapshot)); }).code(), Errc::path_escape);
}

TEST_F(Shards, AFolderIsItsOneModelFile) {
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path(""))); }).code(), Errc::file_not_found);
  one("model.safetensors", "x");
  write(path("config.json"), "{}");
  write(path("README.md"), "hello");
  EXPECT_EQ(open(path("")).size(), 1U);
  one("other.npz", "y");
  const Error error = error_of([&] { static_cast<void>(open(path(""))); });
  EXPECT_EQ(error.code(), Errc::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("\"model.safetensors\", \"other.npz\""));
  index(R"("x": "model.safetensors")", "a.index.json");
  EXPECT_EQ(open(path("")).format.name(), "sharded");
  index(R"("x": "model.safetensors")", "b.index.json");
  EXPECT_THAT(error_of([&] { static_cast<void>(open(path(""))); }).what(), HasSubstr("several indices"));
}

TEST_F(Shards, AnIndexIsNoShard) {
  index(R"("x": "model.safetensors.index.json")");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path(""))); }).code(), Errc::index_mismatch);
  EXPECT_FALSE(scan(path("")).clean());
}

// The hostile indexes of tests/attacks.
TEST(ShardAttacks, EveryIndexIsRefusedWithItsCode) {
  const std::string folder = BALLAST_TEST_OUTPUT "/attacks";
  std::ifstream table(folder + "/expect.tsv");
  std::size_t count = 0;
  for (std::string line; std::getline(table, line);) {
    const std::string file = line.substr(0, line.find('\t'));
    if (!file.ends_with(".index.json")) continue;
    const std::size_t at = file.size() + 1;
    const std::string want = line.substr(at, line.find('\t', at) - at);
    std::string got = "ok";
    try {
      static_cast<void>(open(folder + "/" + file));
    } catch (const Error& error) {
      got = name(error.code());
    }
    if (want == "refused-any") {
      EXPECT_NE(got, "ok") << file;
    } else {
      EXPECT_EQ(got, want) << file;
    }
    ++count;
  }
  EXPECT_GE(count, 10U);
}

}  // namespace
}  // namespace ballast
