// SPDX-License-Identifier: Apache-2.0
// Files on the disk: saved, streamed, edited; sources that change; outputs that must not appear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>

#include "ballast/io.h"
#include "formats/safetensors_properties.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

using testing::HasSubstr;

// Sizes on both sides of what is copied inside the kernel and of what one thread takes at a time.
Checkpoint many_sizes() {
  Checkpoint checkpoint;
  int number = 0;
  for (const std::int64_t size :
       {0, 1, 7, 1000, 65'535, 65'536, 65'537, 262'144, 300'001, 4'194'304, 5'000'000, 3, 9'000'011}) {
    Tensor tensor = Tensor::empty(number % 2 == 0 ? DType::u8 : DType::i8, {size});
    const std::string data =
        numbers(static_cast<std::size_t>(size) + 16).substr(static_cast<std::size_t>(number));
    if (size > 0) std::memcpy(tensor.mutable_data(), data.data(), static_cast<std::size_t>(size));
    checkpoint.add(fmt::format("t{:02}", number++), tensor);
  }
  checkpoint.metadata = Metadata{{"made by", "a test"}};
  return checkpoint;
}

std::string serialized(const Checkpoint& checkpoint) {
  const auto bytes = serialize(checkpoint);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SafetensorsSave, WritesTheSameBytesFromMemoryFromAMapAndFromAFile) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = many_sizes();
  const std::string expected = serialized(checkpoint);
  safetensors::save(checkpoint, folder.file("a"));
  EXPECT_EQ(contents(folder.file("a")), expected);
  safetensors::save(open(folder.file("a")), folder.file("b"));
  EXPECT_EQ(contents(folder.file("b")), expected);
  safetensors::save(open(folder.file("a"), {.io = Io::read}), folder.file("c"));
  EXPECT_EQ(contents(folder.file("c")), expected);
  EXPECT_EQ(folder.count(), 3U);
}

TEST(SafetensorsSave, WritesTensorsFromFilesInAnotherOrderAndFromSeveralFiles) {
  const TemporaryFolder folder;
  safetensors::save(many_sizes(), folder.file("a"));
  safetensors::save(many_sizes(), folder.file("b"));
  const Checkpoint a = open(folder.file("a"));
  const Checkpoint b = open(folder.file("b"));
  Checkpoint mixed;
  for (std::size_t i = 0; i < a.size(); ++i)
    mixed.add(fmt::format("{}", 99 - i), (i % 3 == 0 ? a : b)[i].tensor());
  mixed.add("in memory", Tensor::from<std::uint8_t>({1, 2, 3}, {3}));
  mixed.add("strided", Tensor::from<std::uint8_t>({1, 2, 3, 4, 5, 6}, {2, 3}).t());
  safetensors::save(mixed, folder.file("c"));
  EXPECT_EQ(contents(folder.file("c")), serialized(mixed));
  EXPECT_TRUE(properties::same_content(open(folder.file("c")), mixed));
}

TEST(SafetensorsSave, WritesLazyCasts) {
  const TemporaryFolder folder;
  Tensor source = Tensor::empty(DType::f32, {1'000'003});
  std::iota(source.mutable_span<float>().begin(), source.mutable_span<float>().end(), -1000.0F);
  Checkpoint checkpoint;
  checkpoint.add("x", source);
  safetensors::save(checkpoint, folder.file("a"));
  Checkpoint half;
  half.add("x", open(folder.file("a")).tensor("x").to_lazy(DType::bf16));
  safetensors::save(half, folder.file("b"));
  const auto expected = source.to(DType::bf16);
  EXPECT_TRUE(
      std::ranges::equal(open(folder.file("b")).tensor("x").span<BFloat16>(), expected.span<BFloat16>()));
}

TEST(SafetensorsSave, MayWriteOverItsOwnSource) {
  const TemporaryFolder folder;
  safetensors::save(many_sizes(), folder.file("a"));
  const std::string before = contents(folder.file("a"));
  Checkpoint checkpoint = open(folder.file("a"));
  EXPECT_EQ(code_of([&] { safetensors::save(checkpoint, folder.file("a")); }), Errc::already_exists);
  checkpoint.metadata = Metadata{{"changed", "yes"}};
  safetensors::save(checkpoint, folder.file("a"), {.overwrite = true});
  EXPECT_EQ(contents(folder.file("a")), serialized(checkpoint));  // whose tensors still look at the old file
  Checkpoint after = open(folder.file("a"));
  EXPECT_EQ(after.metadata->at("changed"), "yes");
  after.metadata = Metadata{{"made by", "a test"}};
  EXPECT_EQ(serialized(after), before);
  EXPECT_EQ(folder.count(), 1U);
}

TEST(SafetensorsSave, PublishesNothingWhenTheSourceIsTruncatedOrRewritten) {
  for (const bool truncated : {true, false}) {
    const TemporaryFolder folder;
    safetensors::save(many_sizes(), folder.file("a"));
    for (const Io io : {Io::map, Io::read}) {
      const Checkpoint checkpoint = open(folder.file("a"), {.io = io});
      const std::string bytes = contents(folder.file("a"));
      // The change comes while the copy is under way: after its first piece.
      bool changed = false;
      const auto change = [&](std::uint64_t, std::uint64_t) {
        if (std::exchange(changed, true)) return;
        if (truncated)
          ASSERT_EQ(truncate(folder.file("a").c_str(), 1000), 0);
        else
          std::ofstream(folder.file("a"), std::ios::binary | std::ios::in).seekp(-1, std::ios::end).put('!');
      };
      EXPECT_EQ(code_of([&] { safetensors::save(checkpoint, folder.file("b"), {.progress = change}); }),
                Errc::file_changed);
      EXPECT_EQ(folder.count(), 1U);
      std::ofstream(folder.file("a"), std::ios::binary) << bytes;
    }
  }
}

TEST(SafetensorsSave, NoticesAChangedSourceBehindACast) {
  const TemporaryFolder folder;
  Checkpoint floats;
  floats.add("x", Tensor::zeros(DType::f32, {100}));
  safetensors::save(floats, folder.file("a"));
  Checkpoint half;
  half.add("x", open(folder.file("a")).tensor("x").to_lazy(DType::f16));
  std::ofstream(folder.file("a"), std::ios::binary | std::ios::in).seekp(-1, std::ios::end).put('!');
  EXPECT_EQ(code_of([&] { safetensors::save(half, folder.file("b")); }), Errc::file_changed);
  EXPECT_EQ(folder.count(), 1U);
}

TEST(SafetensorsSave, LeavesTheOldFileWhenProgressThrows) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("a")) << "old";
  const auto stop = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("enough"); };
  EXPECT_THROW(safetensors::save(many_sizes(), folder.file("a"), {.overwrite = true, .progress = stop}),
               std::runtime_error);
  EXPECT_EQ(contents(folder.file("a")), "old");
  EXPECT_EQ(folder.count(), 1U);
}

TEST(SafetensorsSave, ReportsProgressUpToTheLastByte) {
  const TemporaryFolder folder;
  std::uint64_t last = 0;
  std::uint64_t all = 0;
  const auto watch = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  };
  const Checkpoint checkpoint = many_sizes();
  safetensors::save(checkpoint, folder.file("a"), {.progress = watch});
  EXPECT_EQ(last, checkpoint.total_bytes());
  EXPECT_EQ(all, checkpoint.total_bytes());
}

std::vector<StreamWriter::Declaration> declarations(const Checkpoint& checkpoint) {
  std::vector<StreamWriter::Declaration> all;
  for (const Entry& entry : checkpoint) all.push_back({std::string(entry.name), entry.dtype, entry.shape});
  return all;
}

TEST(SafetensorsStream, WritesPiecesInAnyOrderFromSeveralThreads) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = many_sizes();

  struct Job {
    std::size_t tensor;
    std::uint64_t begin;
    std::uint64_t end;
  };

  std::vector<Job> jobs;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    for (std::uint64_t at = 0; at < checkpoint[i].bytes; at += 700'001)
      jobs.push_back({i, at, std::min(at + 700'001, checkpoint[i].bytes)});
  }
  std::shuffle(jobs.begin(), jobs.end(), std::mt19937(1));
  StreamWriter writer(folder.file("a"), declarations(checkpoint), checkpoint.metadata);
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < jobs.size(); i = next++) {
        const Job& job = jobs[i];
        const Entry entry = checkpoint[job.tensor];
        const Tensor tensor = entry.tensor();
        if (job.begin == 0 && job.end == entry.bytes)
          writer.write(entry.name, tensor);
        else
          writer.write(entry.name, job.begin, {tensor.data() + job.begin, job.end - job.begin});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.finish();
  EXPECT_EQ(contents(folder.file("a")), serialized(checkpoint));
}

TEST(SafetensorsStream, OfSeveralThreadsWithTheSameBytesOneGoesOn) {
  const TemporaryFolder folder;
  StreamWriter writer(folder.file("a"), {{"x", DType::u8, {1000}}});
  std::atomic<int> succeeded{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::vector<std::byte> bytes(1000, std::byte{1});
      if (code_of([&] { writer.write("x", 0, bytes); }) == Errc::overlap)
        ++refused;
      else
        ++succeeded;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 1);
  EXPECT_EQ(refused, 3);
  writer.finish();
}

TEST(SafetensorsStream, RefusesBytesThatCameBeforeOrLieOutside) {
  const TemporaryFolder folder;
  StreamWriter writer(folder.file("a"), {{"x", DType::u8, {10}}});
  const std::vector<std::byte> bytes(10);
  const auto write = [&](std::uint64_t offset, std::size_t size) {
    return code_of([&] { writer.write("x", offset, std::span(bytes).first(size)); });
  };
  constexpr Errc kFine = Errc::load_failed;  // what code_of() says when nothing was thrown
  EXPECT_EQ(write(4, 2), kFine);
  EXPECT_EQ(write(4, 1), Errc::overlap);
  EXPECT_EQ(write(5, 2), Errc::overlap);
  EXPECT_EQ(write(3, 2), Errc::overlap);
  EXPECT_EQ(write(0, 10), Errc::overlap);
  EXPECT_EQ(write(9, 2), Errc::offset_out_of_range);
  EXPECT_EQ(write(UINT64_MAX, 2), Errc::offset_out_of_range);
  EXPECT_EQ(write(6, 4), kFine);
  EXPECT_EQ(write(4, 0), kFine);
  EXPECT_EQ(write(0, 4), kFine);
  EXPECT_EQ(write(0, 1), Errc::overlap);
  writer.finish();
  EXPECT_EQ(open(folder.file("a")).total_bytes(), 10U);
}

TEST(SafetensorsStream, NamesTheBytesThatNeverCame) {
  const TemporaryFolder folder;
  {
    StreamWriter writer(folder.file("a"), {{"x", DType::u8, {10}}, {"y", DType::u8, {0}}});
    const std::vector<std::byte> bytes(3);
    writer.write("x", 2, bytes);
    const Error error = error_of([&] { writer.finish(); });
    EXPECT_EQ(error.code(), Errc::gap);
    EXPECT_THAT(error.what(), HasSubstr("tensor \"x\": bytes 0-1, 5-9 of 10 never came"));
  }
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsStream, RefusesWhatWasNotDeclaredAndWhatCannotBe) {
  const TemporaryFolder folder;
  {
    StreamWriter writer(folder.file("a"), {{"weight", DType::f32, {2}}});
    EXPECT_THAT(error_of([&] { writer.write("wieght", Tensor::zeros(DType::f32, {2})); }).what(),
                HasSubstr("\"weight\""));
    EXPECT_EQ(code_of([&] { writer.write("weight", Tensor::zeros(DType::f16, {4})); }), Errc::bad_dtype);
    EXPECT_EQ(code_of([&] {
                writer.write("weight", Tensor::zeros(DType::f32, {1, 2}));
              }),
              Errc::shape_mismatch);
    EXPECT_EQ(code_of([&] { writer.write("weight", Tensor(DType::f32, {2})); }), Errc::invalid_argument);
  }
  EXPECT_EQ(code_of([&] {
              StreamWriter(folder.file("a"), {{"x", DType::u8, {1}}, {"x", DType::f32, {1}}});
            }),
            Errc::duplicate_key);
  EXPECT_EQ(code_of([&] {
              StreamWriter(folder.file("a"), {{"x", DType::u8, {-1}}});
            }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              StreamWriter(folder.file("a"), {{"__metadata__", DType::u8, {1}}});
            }),
            Errc::bad_name);
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsStream, IsOverWhenFinished) {
  const TemporaryFolder folder;
  StreamWriter writer(folder.file("a"), {});
  writer.finish();
  EXPECT_EQ(code_of([&] { writer.finish(); }), Errc::invalid_argument);
  EXPECT_EQ(contents(folder.file("a")), file_of("{}      "));
}

const std::string kTwo = file_of(
    R"({"__metadata__":{"k":"v"},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
    "abcdef");

TEST(SafetensorsEdit, ChangesMetadataAndKeepsDataAndOrder) {
  const TemporaryFile in(kTwo);
  const TemporaryFolder folder;
  edit(in.path(), folder.file("a"), {.metadata = Metadata{{"new", "\""}}});
  EXPECT_EQ(
      contents(folder.file("a")),
      file_of(
          R"({"__metadata__":{"new":"\""},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}  )",
          "abcdef"));
  edit(in.path(), folder.file("b"), {.remove_metadata = true});
  EXPECT_FALSE(open(folder.file("b")).metadata);
  EXPECT_EQ(code_of([&] { edit(in.path(), folder.file("b"), {}); }), Errc::already_exists);
}

TEST(SafetensorsEdit, RenamesAllAtOnceAlsoInPlace) {
  const TemporaryFile file(kTwo);
  edit(file.path(), file.path(), {.rename = {{"a", "b"}, {"b", "a"}}}, {.overwrite = true});
  const Checkpoint checkpoint = open(file.path());
  EXPECT_EQ(checkpoint.metadata, (Metadata{{"k", "v"}}));
  EXPECT_EQ(checkpoint[0].name, "a");
  EXPECT_THAT(checkpoint.tensor("a").span<std::uint8_t>(), testing::ElementsAre('a', 'b'));
  EXPECT_EQ(checkpoint.at("b").dtype, DType::f32);
}

// Three names for two tensors, c being a's other name, in Ballast's form and in that of save_model(): each
// name has the same value under its new name, or nothing is written.
TEST(SafetensorsEdit, EveryRenameKeepsTheTies) {
  const std::map<std::string, std::uint8_t> before = {{"a.w", 'x'}, {"b.w", 'y'}, {"c.w", 'x'}};
  for (const char* form : {R"("ballast.ties":"{\"c.w\":\"a.w\"}")", R"("c.w":"a.w")"}) {
    const TemporaryFile in(file_of(std::string("{\"__metadata__\":{") + form +
                                       R"(},"a.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                       R"("b.w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                   "xy"));
    for (int code = 0; code < 64; ++code) {
      HeaderEdit change;
      std::map<std::string, std::uint8_t> after;
      for (int i = 0; i < 3; ++i) {
        const std::string from = std::string(1, "abc"[i]) + ".w";
        const std::string to = std::string(1, "abcz"[(code >> (2 * i)) & 3]) + ".w";
        if (from != to) change.rename.emplace_back(from, to);
        after.emplace(to, before.at(from));
      }
      SCOPED_TRACE(fmt::format("{} {}", form, code));
      const TemporaryFolder folder;
      if (after.size() < 3) {
        EXPECT_EQ(code_of([&] { edit(in.path(), folder.file("o"), change); }), Errc::duplicate_key);
        continue;
      }
      edit(in.path(), folder.file("o"), change);
      std::map<std::string, std::uint8_t> seen;
      for (const Entry& entry : ballast::open(folder.file("o")))
        seen.emplace(entry.name, entry.tensor().item<std::uint8_t>());
      EXPECT_EQ(seen, after);
    }
  }
}

TEST(SafetensorsEdit, RefusesRenamesThatCollideOrFindNothing) {
  const TemporaryFile in(kTwo);
  const TemporaryFolder folder;
  const auto refusal = [&](std::vector<std::pair<std::string, std::string>> rename) {
    return code_of([&] { edit(in.path(), folder.file("a"), {.rename = std::move(rename)}); });
  };
  EXPECT_EQ(refusal({{"a", "b"}}), Errc::duplicate_key);
  EXPECT_EQ(refusal({{"a", "c"}, {"b", "c"}}), Errc::duplicate_key);
  EXPECT_EQ(refusal({{"a", "c"}, {"a", "d"}}), Errc::duplicate_key);
  EXPECT_EQ(refusal({{"z", "y"}}), Errc::not_found);
  EXPECT_EQ(refusal({{"a", "__metadata__"}}), Errc::bad_name);
  EXPECT_EQ(refusal({{"a", "\xff"}}), Errc::bad_utf8);
  EXPECT_EQ(
      code_of([&] { edit(in.path(), folder.file("a"), {.metadata = Metadata{}, .remove_metadata = true}); }),
      Errc::invalid_argument);
  EXPECT_EQ(folder.count(), 0U);
}

TEST(SafetensorsEdit, PublishesNothingWhenTheSourceChanges) {
  const TemporaryFile in(kTwo);
  const TemporaryFolder folder;
  const auto change = [&](std::uint64_t, std::uint64_t) { ASSERT_EQ(truncate(in.path().c_str(), 12), 0); };
  EXPECT_EQ(code_of([&] { edit(in.path(), folder.file("a"), {}, {.progress = change}); }),
            Errc::file_changed);
  EXPECT_EQ(folder.count(), 0U);
}

}  // namespace
}  // namespace ballast::safetensors
