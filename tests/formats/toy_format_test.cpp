// SPDX-License-Identifier: Apache-2.0
// A format from outside: public headers alone, and nothing of Ballast is touched. One line of text a tensor:
// "TOY name value value …".
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "ballast/convert.h"
#include "ballast/format.h"
#include "ballast/io.h"
#include "ballast/verify.h"
#include "base/scratch.h"

namespace ballast {
namespace {

constexpr std::string_view kMagic = "TOY ";

Likeness recognise_toy(const FileHead& head) {
  return head.text().starts_with(kMagic) ? Likeness::certain : Likeness::none;
}

Checkpoint open_toy(const ByteSource& source, const OpenOptions&) {
  const auto bytes = source.read(0, source.size());
  std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  Checkpoint checkpoint;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(kMagic.size()));
    std::string name;
    words >> name;
    std::vector<float> values;
    for (float value = 0; words >> value;) values.push_back(value);
    Tensor tensor = Tensor::zeros(DType::f32, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.mutable_span<float>().begin());
    checkpoint.add(name, tensor);
  }
  return checkpoint;
}

void save_toy(const Checkpoint& checkpoint, const std::string& path, const SaveOptions&) {
  std::ofstream out(path);
  for (const Entry& entry : checkpoint) {
    out << kMagic << entry.name;
    const Tensor tensor = entry.tensor();
    for (const float value : tensor.span<float>()) out << ' ' << value;
    out << '\n';
  }
}

constexpr FormatRow kToy = {.name = "toy",
                            .extensions = {".toy"},
                            .recognise = recognise_toy,
                            .open = open_toy,
                            .save = save_toy,
                            .holds = [](DType dtype) { return dtype == DType::f32; }};

// A larger one, as a format for many gigabytes would be: "BIG " and the count of numbers, then the numbers,
// which are never copied when the file is opened and never all in memory when it is written.
Likeness recognise_big(const FileHead& head) {
  return head.text().starts_with("BIG ") ? Likeness::certain : Likeness::none;
}

constexpr std::uint64_t kBigHeader = 8;

Checkpoint open_big(const ByteSource& source, const OpenOptions&) {
  std::uint32_t count = 0;
  source.read(4, std::as_writable_bytes(std::span(&count, 1)));
  auto numbers = Storage::of(source, kBigHeader, std::uint64_t{count} * sizeof(float), sizeof(float));
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor::contiguous_view(DType::f32, {count}, std::move(numbers)));
  return checkpoint;
}

void save_big(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  save_pieces(path, options.overwrite, [&](const AppendBytes& append) {
    const Tensor tensor = checkpoint.tensor("w");
    const auto count = static_cast<std::uint32_t>(tensor.numel());
    append(std::as_bytes(std::span("BIG ", 4)));
    append(std::as_bytes(std::span(&count, 1)));
    std::array<std::byte, 64> piece{};
    for (std::uint64_t at = 0; at < tensor.size_bytes(); at += piece.size()) {
      const auto part =
          std::span(piece).first(std::min<std::uint64_t>(piece.size(), tensor.size_bytes() - at));
      tensor.read(at, part);
      append(part);
    }
  });
}

constexpr FormatRow kBig = {
    .name = "big", .recognise = recognise_big, .open = open_big, .save = save_big, .holds = [](DType dtype) {
      return dtype == DType::f32;
    }};

using ToyFormat = Scratch;

TEST_F(ToyFormat, IsReadAndWrittenLikeThoseOfBallast) {
  write(path("a.bin"), "TOY w 1 2.5\nTOY b 3\n");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("a.bin"))); }).code(), Errc::unknown_format);
  const Checkpoint checkpoint = open(path("a.bin"), {.formats = {kToy}});
  EXPECT_EQ(checkpoint.format, kToy);
  EXPECT_EQ(checkpoint.path, path("a.bin"));
  EXPECT_EQ(checkpoint.tensor("w").span<float>()[1], 2.5F);

  save(checkpoint, path("a.pt"));
  save(open(path("a.pt"), {.formats = {kToy}}), path("b.toy"), {.format = kToy});
  EXPECT_EQ(content(path("b.toy")), content(path("a.bin")));
  convert(path("b.toy"), path("c.npz"), {.formats = {kToy}});
  EXPECT_EQ(open(path("c.npz")).tensor("w").span<float>()[1], 2.5F);
  EXPECT_TRUE(verify(path("b.toy"), {.formats = {kToy}}).clean());
}

TEST_F(ToyFormat, ShowsTheFileItselfAndIsWrittenInPieces) {
  std::vector<float> numbers(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  Checkpoint made;
  made.add("w", Tensor::from(numbers, {1000}));
  save(made, path("a"), {.format = kBig});
  EXPECT_EQ(content(path("a")).size(), 4008U);

  for (const Io io : {Io::map, Io::read}) {
    const Tensor w = open(path("a"), {.io = io, .formats = {kBig}}).tensor("w");
    ASSERT_TRUE(w.storage()->source_span().has_value());  // so that writers copy inside the kernel
    EXPECT_EQ(w.storage()->source_span()->offset, 8U);
    EXPECT_EQ(w.storage()->ready(), io == Io::map);
    EXPECT_EQ(w.span<float>()[999], 999);
  }
  write(path("part"), "x" + content(path("a")));  // where a float does not lie as the processor wants it
  const auto part = window(file_source(path("part"), Io::map), 1, 4008);
  EXPECT_EQ(open(part, {.formats = {kBig}}).tensor("w").span<float>()[999], 999);
  const auto memory = memory_source(made.tensor("w").storage(), "m");
  EXPECT_EQ(code_of([&] { static_cast<void>(Storage::of(*memory, 8, 3993)); }), Errc::truncated);
}

TEST_F(ToyFormat, WhoseWriterGivesUpLeavesTheOldFile) {
  write(path("a"), "old");
  EXPECT_EQ(code_of([&] { save_pieces(path("a"), false, [](const AppendBytes&) {}); }), Errc::already_exists);
  EXPECT_THROW(save_pieces(path("a"), true,
                           [](const AppendBytes& append) {
                             append(std::as_bytes(std::span("new", 3)));
                             throw Error(Errc::io_error, "disk", "gone");
                           }),
               Error);
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(ToyFormat, ThatCannotOpenWhatItRecognisesIsAMistakeOfTheCaller) {
  static constexpr FormatRow kMute = {.name = "mute", .recognise = recognise_toy};
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor::zeros(DType::f32, {8}));
  save(checkpoint, path("w.toy"), {.format = kToy});
  EXPECT_EQ(code_of([&] { static_cast<void>(open(path("w.toy"), {.formats = {kMute}})); }),
            Errc::invalid_argument);
}

TEST_F(ToyFormat, IsNotAskedToWriteADtypeItSaysItDoesNotHold) {
  for (int i = 0; i < static_cast<int>(kDTypeCount); ++i) {
    const auto dtype = static_cast<DType>(i);
    Checkpoint checkpoint;
    checkpoint.add("w", Tensor::zeros(dtype, {8}));
    if (dtype == DType::f32)
      save(checkpoint, path("w.toy"), {.format = kToy});
    else
      EXPECT_EQ(code_of([&] { save(checkpoint, path("x.toy"), {.format = kToy}); }), Errc::not_representable);
  }
  EXPECT_TRUE(std::filesystem::exists(path("w.toy")));
  EXPECT_FALSE(std::filesystem::exists(path("x.toy")));
}

}  // namespace
}  // namespace ballast
