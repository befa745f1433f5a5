// SPDX-License-Identifier: Apache-2.0
// Where bytes lie does not change what is read: every fixture from a file, from memory, from a part of a
// larger file at every kind of offset, and from a source that somebody else wrote.
#include "ballast/byte_source.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>

#include "ballast/io.h"
#include "ballast/onnx_file.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/scratch.h"
#include "formats/found_in.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

std::string slurp_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A user's own: it can be read, and nothing else.
class TextSource final : public ByteSource {
 public:
  TextSource(std::string name, std::string text)
      : ByteSource(std::move(name), text.size()), text_(std::move(text)) {}

  mutable std::atomic<int> reads{0};

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    std::copy_n(as_bytes(text_).begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

  std::string text_;
};

std::vector<std::string> fixtures() {
  std::vector<std::string> paths;
  for (const char* folder : {"torch", "torch_current", "burn", "onnx", "import"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(BALLAST_TEST_DATA) + "/fixtures/" + folder)) {
      const std::string extension = entry.path().extension().string();
      const bool is_text = extension == ".py" || extension == ".md" || extension == ".json";
      if (entry.is_regular_file() && !is_text && entry.file_size() < 300'000)
        paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool needs_neighbours(const std::string& path) {
  return path.ends_with(".onnx") && !onnx_file::read_info(path).external_files.empty();
}

template <class T>
Tensor filled(DType dtype, std::int64_t count, T value) {
  Tensor tensor = Tensor::zeros(dtype, {count});
  for (T& element : tensor.mutable_span<T>()) element = value;
  return tensor;
}

using ByteSources = Scratch;

TEST_F(ByteSources, EveryFixtureIsTheSameWhereverItLies) {
  int opened = 0;
  std::size_t padding = 0;
  for (const std::string& path : fixtures()) {
    const std::string want = found_in([&] { return open(path); });
    const std::string text = slurp_file(path);
    EXPECT_EQ(found_in([&] { return open(path, {.io = Io::read}); }), want) << path;
    if (want.starts_with("refused") || needs_neighbours(path)) continue;
    ++opened;
    const auto memory = Storage::heap(text.size());
    std::copy_n(as_bytes(text).begin(), text.size(), memory->mutable_data());
    EXPECT_EQ(found_in([&] { return open(memory_source(memory, path)); }), want) << path;
    EXPECT_EQ(found_in([&] { return open(std::make_shared<TextSource>(path, text)); }), want) << path;
    padding = (padding + 1) % 64;
    const std::string larger = this->path("larger." + fs::path(path).filename().string());
    write(larger, std::string(padding, 'x') + text + "behind it");
    for (const Io io : {Io::map, Io::read}) {
      const auto part = window(file_source(larger, io), padding, text.size());
      EXPECT_EQ(found_in([&] { return open(window(part, 0, part->size())); }), want)
          << path << ' ' << padding;
    }
    fs::remove(larger);
  }
  EXPECT_GT(opened, 200);
}

TEST_F(ByteSources, OneTensorReadsItsOwnBytesAlone) {
  Checkpoint made;
  for (int i = 0; i < 100; ++i) made.add("t" + std::to_string(i), Tensor::zeros(DType::u8, {10'000}));
  safetensors::save(made, path("a.safetensors"));
  const auto source = std::make_shared<TextSource>("a.safetensors", content(path("a.safetensors")));
  const Checkpoint checkpoint = open(source);
  const int before = source->reads;
  EXPECT_LT(before, 10);
  static_cast<void>(checkpoint.tensor("t7").span<std::uint8_t>());
  EXPECT_EQ(source->reads, before + 1);
}

class Descriptors : public Scratch {
 protected:
  Descriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{.rlim_cur = 400, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }

  ~Descriptors() override { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(Descriptors, MoreFilesThanAProcessMayHaveOpenStayOpenAndCanBeRead) {
  Checkpoint made;
  made.add("w", filled(DType::f32, 5, 1.F));
  for (const char* file : {"a.safetensors", "a.pt", "a.npz", "a.bpk"}) {
    save(made, path(file));
    for (const Io io : {Io::automatic, Io::read}) {
      std::vector<Checkpoint> all;
      for (int i = 0; i < 500; ++i) all.push_back(open(path(file), {.io = io}));
      for (const Checkpoint& one : all) EXPECT_EQ(one.tensor("w").span<float>()[4], 1) << file;
    }
  }
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

// Tensors are read one by one: a mapped file is opened for them once, not for each, and only while few are
// held.
TEST_F(Descriptors, AMappedFileThatIsReadIsOpenedOnceMore) {
  write(path("a"), "0123456789");
  std::vector<std::shared_ptr<const File>> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(File::open(path("a"), {.io = Io::map}));
    all.back()->settle();
  }
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(as_text(all[0]->read(3, 2)), "34");
  EXPECT_EQ(open_descriptors(), before + 1);
  for (const auto& file : all) EXPECT_EQ(as_text(file->read(9, 1)), "9");
  EXPECT_LT(open_descriptors(), before + 300);
  all.clear();
  EXPECT_EQ(open_descriptors(), before);
}

// The kernel gives a new file the number of one that is gone: it is another file all the same.
TEST_F(Descriptors, WhatHasTheNumberOfAFileThatIsGoneIsNotReadForIt) {
  std::vector<std::shared_ptr<const File>> all;
  for (int i = 0; i < 300; ++i) {
    write(path("a" + std::to_string(i)), "old " + std::to_string(i));
    all.push_back(File::open(path("a" + std::to_string(i)), {.io = Io::read}));
    all.back()->settle();
  }
  for (int i = 0; i < 300; ++i) fs::remove(path("a" + std::to_string(i)));
  int given_back = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string file = path("a" + std::to_string(i));
    write(file, "new " + std::to_string(i));
    try {
      EXPECT_EQ(as_text(all[static_cast<std::size_t>(i)]->read(0, 3)), "old") << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::file_changed);
      ++given_back;
    }
  }
  EXPECT_GT(given_back, 0);
}

TEST_F(Descriptors, AFolderOfMoreShardsThanThatIsOneCheckpoint) {
  Checkpoint made;
  for (int i = 0; i < 450; ++i) made.add("t" + std::to_string(i), filled(DType::i32, 4, i));
  const SavedShards saved = save_shards(made, path("model.safetensors"), {.shard_bytes = 16});
  ASSERT_EQ(saved.files.size(), 450U);
  const Checkpoint whole = open(saved.index);
  save(whole, path("one.pt"));
  const Checkpoint one = open(path("one.pt"));
  for (int i = 0; i < 450; ++i) EXPECT_EQ(one.tensor("t" + std::to_string(i)).span<std::int32_t>()[3], i);
}

TEST_F(ByteSources, ManyRangesAtOnceAreEachOfThemAndNoneWhenOneLiesOutside) {
  std::string text(1000, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
  write(path("a"), "before" + text + "behind");
  const auto memory = Storage::borrow(static_cast<const void*>(text.data()), text.size());
  const std::shared_ptr<const ByteSource> sources[] = {
      window(File::open(path("a")), 6, 1000), window(File::open(path("a"), {.io = Io::read}), 6, 1000),
      memory_source(memory, "m"), std::make_shared<TextSource>("t", text)};
  for (const auto& source : sources) {
    std::array<std::string, 4> out = {std::string(1, '?'), std::string(), std::string(499, '?'),
                                      std::string(1000, '?')};
    const std::uint64_t offsets[] = {999, 1000, 3, 0};
    std::vector<ByteSource::Range> ranges;
    for (std::size_t i = 0; i < out.size(); ++i)
      ranges.push_back({offsets[i], std::as_writable_bytes(std::span(out[i]))});
    source->read(ranges);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], text.substr(offsets[i], out[i].size()));
    ranges.front().offset = 1000;
    out[3].assign(1000, '?');
    EXPECT_EQ(error_of([&] { source->read(ranges); }).code(), Errc::truncated);
    EXPECT_EQ(out[3], std::string(1000, '?'));
  }
}

TEST_F(ByteSources, TheIdentityIsOfTheContentAndOfThePart) {
  write(path("a"), "0123456789");
  const std::string first = File::open(path("a"))->identity();
  EXPECT_EQ(File::open(path("a"), {.io = Io::read})->identity(), first);
  EXPECT_NE(window(File::open(path("a")), 0, 5)->identity(), window(File::open(path("a")), 5, 5)->identity());
  fs::last_write_time(path("a"), fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_NE(File::open(path("a"))->identity(), first);
}

TEST_F(ByteSources, AFileThatWasReplacedIsStillTheOldOneAndOneThatWasWrittenToIsNoticed) {
  Checkpoint made;
  made.add("w", filled(DType::f32, 100'000, 1.F));
  const std::string file = path("a.safetensors");
  safetensors::save(made, file);
  const Checkpoint old = open(file);
  made = {};
  made.add("w", filled(DType::f32, 100'000, 2.F));
  safetensors::save(made, file, {.overwrite = true});
  save(old, path("copy.pt"));
  EXPECT_EQ(open(path("copy.pt")).tensor("w").span<float>()[99'999], 1);

  const Checkpoint changed = open(file);
  std::ofstream(file, std::ios::binary | std::ios::in | std::ios::out) << content(file).substr(0, 8);
  fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_EQ(error_of([&] { save(changed, path("never.safetensors")); }).code(), Errc::file_changed);
  EXPECT_FALSE(fs::exists(path("never.safetensors")));
}

}  // namespace
}  // namespace ballast
