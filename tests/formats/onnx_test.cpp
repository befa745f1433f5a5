// SPDX-License-Identifier: Apache-2.0
// ONNX models as sources of weights. The files are made by python3-onnx and torch
// (tests/fixtures/onnx/make.py), what is in them is said by onnx.numpy_helper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "ballast/scan.h"
#include "base/scratch.h"
#include "checkpoint/value_json.h"
#include "formats/mutations.h"
#include "formats/onnx_wire.h"
#include "formats/sha256.h"

namespace ballast {
namespace {

using namespace onnx_wire;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using OnnxFile = Scratch;

const std::string kFour = "abcdefghijklmnop";  // four floats

std::string fixture(const std::string& name) {
  return std::string(BALLAST_TEST_DATA) + "/fixtures/onnx/" + name;
}

std::string bytes_of(const Entry& entry) {
  std::string bytes(static_cast<std::size_t>(entry.bytes), '\0');
  entry.tensor().read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void expect_tensors(const Checkpoint& checkpoint, const Value& want, const std::string& file) {
  EXPECT_EQ(checkpoint.format.name(), "onnx") << file;
  ASSERT_EQ(checkpoint.size(), want.size()) << file;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Value tensor = want.at(std::to_string(i));
    const std::string name(tensor.at("name").as_string());
    ASSERT_TRUE(checkpoint.contains(name)) << file << ' ' << name;
    const Entry entry = checkpoint.at(name);
    EXPECT_EQ(info(entry.dtype).code, tensor.at("dtype").as_string()) << file << ' ' << name;
    ASSERT_EQ(entry.shape.size(), tensor.at("shape").size()) << file << ' ' << name;
    for (std::size_t d = 0; d < entry.shape.size(); ++d)
      EXPECT_EQ(entry.shape[d], tensor.at("shape").at(std::to_string(d)).as_int()) << file << ' ' << name;
    const std::string bytes = bytes_of(entry);
    EXPECT_EQ(::ballast::testing::sha256(std::as_bytes(std::span(bytes))), tensor.at("sha256").as_string())
        << file << ' ' << name;
  }
}

TEST_F(OnnxFile, ReadsWhatOnnxAndTorchWrite) {
  const Value expect = read_json(fixture("expect.json"));
  std::size_t files = 0;
  for (const auto& at : std::filesystem::directory_iterator(fixture("files"))) {
    const std::string file = at.path().filename().string();
    if (!file.ends_with(".onnx")) continue;
    ++files;
    for (const Io io : {Io::map, Io::read})
      expect_tensors(open(at.path().string(), {.io = io}), expect.at(file), file);
    if (file == "external.onnx" || file == "shared.onnx") continue;
    expect_tensors(open_bytes(safetensors::in_memory(content(at.path().string()))), expect.at(file), file);
  }
  EXPECT_EQ(files, 12U);
}

TEST_F(OnnxFile, MetadataPropsAreTheMetadata) {
  EXPECT_EQ(open(fixture("files/torch.onnx")).metadata,
            (Metadata{{"author", "somebody"}, {"classes", "[\"a\"]"}}));
  EXPECT_FALSE(open(fixture("files/raw.onnx")).metadata);
}

TEST_F(OnnxFile, WhatBallastHasNoDtypeForIsNamedInNotes) {
  EXPECT_THAT(open(fixture("files/small_types.onnx")).notes,
              ElementsAre(HasSubstr("STRING: \"texts\""), HasSubstr("INT4: \"fours\""),
                          HasSubstr("UINT4: \"unsigned.fours\""), HasSubstr("INT2: \"twos\""),
                          HasSubstr("FLOAT4E2M1 that end inside a byte: \"odd.F4\"")));
}

TEST_F(OnnxFile, ConstantsAndSparseTensorsAreNoted) {
  EXPECT_THAT(
      open(fixture("files/constants.onnx")).notes,
      ElementsAre("2 of the tensors are values of Constant nodes", "1 sparse tensor is read as dense"));
}

TEST_F(OnnxFile, RawDataIsAViewOfTheFile) {
  const Checkpoint checkpoint = open(fixture("files/raw.onnx"));
  const auto span = checkpoint.tensor("uint8").storage()->source_span();
  ASSERT_TRUE(span);
  EXPECT_EQ(content(fixture("files/raw.onnx")).substr(span->offset, 6), bytes_of(checkpoint.at("uint8")));
  EXPECT_TRUE(checkpoint.tensor("uint8").storage()->ready());
  // Wherever they lie, elements can be used.
  EXPECT_EQ(checkpoint.tensor("int64").span<std::int64_t>()[5], 77);
}

TEST_F(OnnxFile, PackedFloatsAreAViewOfTheFileToo) {
  EXPECT_TRUE(open(fixture("files/typed.onnx")).tensor("float64").storage()->source_span());
}

TEST_F(OnnxFile, OneExternalRangeUnderTwoNamesIsATiedTensor) {
  const Checkpoint checkpoint = open(fixture("files/shared.onnx"));
  EXPECT_TRUE(checkpoint.tensor("w").same_view(checkpoint.tensor("tied")));
}

TEST_F(OnnxFile, AFileOfMoreThanTwoGigabytesIsListedWithoutReadingIt) {
  constexpr std::uint64_t kBytes = std::uint64_t{3} << 30U;
  const std::string head =
      number(1, kBytes / 4) + number(2, 1) + block(8, "big") + varint(9U << 3U | 2U) + varint(kBytes);
  const std::string tensor_tag = varint(5U << 3U | 2U) + varint(head.size() + kBytes);
  const std::string behind = block(5, tensor("small", 1, {1}, raw("abcd")));
  const std::string graph_tag =
      varint(7U << 3U | 2U) + varint(tensor_tag.size() + head.size() + kBytes + behind.size());
  const std::string front = number(1, 8) + graph_tag + tensor_tag + head;
  write(path("big.onnx"), front);
  std::filesystem::resize_file(path("big.onnx"), front.size() + kBytes);
  std::ofstream(path("big.onnx"), std::ios::binary | std::ios::app) << behind;
  const Checkpoint checkpoint = open(path("big.onnx"));
  ASSERT_EQ(checkpoint.size(), 2U);
  EXPECT_EQ(checkpoint.at("big").bytes, kBytes);
  std::array<std::byte, 4> last{};
  checkpoint.tensor("big").read(kBytes - 4, last);
  EXPECT_EQ(last[3], std::byte{0});
  EXPECT_EQ(bytes_of(checkpoint.at("small")), "abcd");
}

TEST_F(OnnxFile, DataStaysInTheModelsFolder) {
  std::filesystem::create_directories(path("models/deep"));
  write(path("models/deep/w.bin"), kFour);
  write(path("outside.bin"), kFour);
  std::filesystem::create_symlink("../outside.bin", path("models/link.bin"));
  std::filesystem::create_directory_symlink("..", path("models/up"));
  std::filesystem::create_symlink("deep/w.bin", path("models/inner.bin"));
  const std::string model_path = path("models/m.onnx");
  const auto open_at = [&](const std::string& location) {
    write(model_path, model_of({tensor("w", 1, {4}, external(location))}));
    return open(model_path);
  };
  for (const std::string fine : {"deep/w.bin", "./deep/w.bin", "inner.bin", "deep//w.bin"})
    EXPECT_EQ(bytes_of(open_at(fine).at("w")), kFour) << fine;
  for (const std::string& bad :
       {std::string("../outside.bin"), path("outside.bin"), std::string("deep/../../outside.bin"),
        std::string("link.bin"), std::string("up/outside.bin"), std::string(".."), std::string("deep\\w.bin"),
        std::string("deep/w.bin\0x", 12)})
    EXPECT_EQ(error_of([&] { open_at(bad); }).code(), Errc::path_escape) << bad;
  EXPECT_EQ(error_of([&] { open_at("absent.bin"); }).code(), Errc::missing_storage);
  EXPECT_EQ(error_of([&] { open_at("deep"); }).code(), Errc::not_regular_file);
}

TEST_F(OnnxFile, MoreFilesThanAProcessMayOpenAreReadOneByOne) {
  constexpr int kFiles = 1500;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit usual{std::min<rlim_t>(limit.rlim_max, 1024), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  std::vector<std::string> tensors;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = "w" + std::to_string(i);
    write(path(name), fmt::format("{:08}", i));
    tensors.push_back(tensor(name, 2, {8}, external(name)));
  }
  write(path("m.onnx"), model_of(tensors));
  const Checkpoint checkpoint = open(path("m.onnx"));
  ASSERT_EQ(checkpoint.size(), static_cast<std::size_t>(kFiles));
  for (const int i : {0, 255, 256, 1023, 1499}) {
    EXPECT_EQ(bytes_of(checkpoint.at("w" + std::to_string(i))), fmt::format("{:08}", i));
    EXPECT_EQ(checkpoint.tensor("w" + std::to_string(i)).span<std::uint8_t>()[0], '0');
  }
  write(path("w1499"), "short");
  EXPECT_EQ(error_of([&] { bytes_of(open(path("m.onnx")).at("w1499")); }).code(), Errc::offset_out_of_range);
  write(path("w1400"), "longer than it was");
  EXPECT_EQ(error_of([&] { checkpoint.tensor("w1400").storage()->check_unchanged(); }).code(),
            Errc::file_changed);
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_F(OnnxFile, TheHubsCacheLeadsToItsBlobs) {
  std::filesystem::create_directories(path("repo/blobs"));
  std::filesystem::create_directories(path("repo/snapshots/abc/onnx"));
  write(path("repo/blobs/1"), model_of({tensor("w", 1, {4}, external("model.onnx_data"))}));
  write(path("repo/blobs/2"), kFour);
  std::filesystem::create_symlink("../../../blobs/1", path("repo/snapshots/abc/onnx/model.onnx"));
  std::filesystem::create_symlink("../../../blobs/2", path("repo/snapshots/abc/onnx/model.onnx_data"));
  EXPECT_EQ(bytes_of(open(path("repo/snapshots/abc/onnx/model.onnx")).at("w")), kFour);
}

TEST_F(OnnxFile, ExternalRangesAreCheckedAgainstTheFileAndTheShape) {
  write(path("w.bin"), kFour + kFour);
  const auto code_of = [&](const std::vector<std::string>& tensors) {
    write(path("m.onnx"), model_of(tensors));
    return error_of([&] { static_cast<void>(open(path("m.onnx"))); }).code();
  };
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "17"))}), Errc::offset_out_of_range);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "18446744073709551615"))}),
            Errc::offset_out_of_range);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "18446744073709551616"))}), Errc::size_overflow);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "-1"))}), Errc::bad_onnx);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "0x10"))}), Errc::bad_onnx);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, external("w.bin", "0", "15"))}), Errc::size_mismatch);
  EXPECT_EQ(
      code_of({tensor("a", 1, {4}, external("w.bin", "0")), tensor("b", 1, {4}, external("w.bin", "8"))}),
      Errc::overlap);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, raw(kFour) + external("w.bin"))}), Errc::bad_onnx);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, number(14, 1))}), Errc::bad_onnx);
  EXPECT_EQ(code_of({tensor("w", 1, {4}, number(14, 2))}), Errc::bad_onnx);
}

TEST_F(OnnxFile, BytesInMemoryHaveNoFolderForExternalData) {
  const std::string file = model_of({tensor("w", 1, {4}, external("w.bin"))});
  EXPECT_EQ(error_of([&] { static_cast<void>(open_bytes(safetensors::in_memory(file))); }).code(),
            Errc::unsupported);
}

TEST_F(OnnxFile, IntegrityIsThatOfExternalChecksums) {
  const Checksums sums = check_integrity(fixture("files/shared.onnx"));
  EXPECT_EQ(sums.checked, 16U);
  EXPECT_EQ(sums.without, 16U + 8);
  write(path("w.bin"), kFour);
  // sha1sum says so of these 16 bytes
  const std::string right = "14f3995288acd189e6e50a7af47ee7099aa682b9";
  const auto with = [&](const std::string& sum) {
    write(path("m.onnx"),
          model_of({tensor("w", 1, {4}, external("w.bin") + block(13, entry("checksum", sum)))}));
    return check_integrity(path("m.onnx"));
  };
  EXPECT_EQ(with(right).checked, 16U);
  EXPECT_EQ(error_of([&] { with("0" + right.substr(1)); }).code(), Errc::bad_crc);
}

TEST_F(OnnxFile, NumbersThatDoNotFitTheirDtypeAreRefused) {
  const auto code_of = [](std::uint64_t type, std::uint64_t field, std::uint64_t value) {
    return verdict_of(model_of({tensor("w", type, {1}, number(field, value))}));
  };
  const auto minus = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  EXPECT_EQ(code_of(2, 5, 255), "ok");
  EXPECT_EQ(code_of(2, 5, 256), "bad-onnx");
  EXPECT_EQ(code_of(2, 5, minus(-1)), "bad-onnx");
  EXPECT_EQ(code_of(3, 5, minus(-128)), "ok");
  EXPECT_EQ(code_of(3, 5, minus(-129)), "bad-onnx");
  EXPECT_EQ(code_of(9, 5, 2), "bad-onnx");
  EXPECT_EQ(code_of(10, 5, 65535), "ok");
  EXPECT_EQ(code_of(10, 5, 65536), "bad-onnx");
  EXPECT_EQ(code_of(12, 11, 4294967295), "ok");
  EXPECT_EQ(code_of(12, 11, 4294967296), "bad-onnx");
  EXPECT_EQ(code_of(6, 7, 1), "bad-onnx") << "INT32 does not lie in int64_data";
}

TEST_F(OnnxFile, SparseIndicesAreCheckedAndTheirExpansionIsLimited) {
  const auto sparse = [](std::string_view index, std::uint64_t dim) {
    return model(block(15, block(1, tensor("w", 2, {1}, raw("x"))) +
                               block(2, tensor("", 7, {1}, number(7, std::stoull(std::string(index))))) +
                               number(3, dim)));
  };
  EXPECT_EQ(verdict_of(sparse("3", 4)), "ok");
  EXPECT_EQ(verdict_of(sparse("4", 4)), "offset-out-of-range");
  EXPECT_EQ(verdict_of(sparse("18446744073709551615", 4)), "offset-out-of-range");
  EXPECT_EQ(verdict_of(sparse("0", std::uint64_t{1} << 40U)), "expansion-limit");
}

TEST_F(OnnxFile, OpensWhatIsNamedOnnxAndBeginsOddly) {
  // A model without ir_version: not to be told from other bytes, but the name says what it is.
  const std::string odd = block(7, block(5, tensor("w", 1, {4}, raw(kFour))));
  EXPECT_EQ(verdict_of(odd), "unknown-format");
  write(path("odd.onnx"), odd);
  EXPECT_EQ(open(path("odd.onnx")).size(), 1U);
  write(path("junk.onnx"), std::string("\xFF\xFE\0\1", 4));
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("junk.onnx"))); }).code(), Errc::bad_onnx);
  write(path("page.onnx"), "<!DOCTYPE html><html>404</html>");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("page.onnx"))); }).code(), Errc::unknown_format);
}

TEST_F(OnnxFile, SafetensorsFilesThatBeginLikeAModelStaySafetensors) {
  // 08 01 3A 00 …: ir_version 1 and an empty graph, or a header of 3,801,352 bytes.
  const std::string head = std::string("\x08\x01\x3A\0\0\0\0\0", 8) + "{}";
  std::string file = head;
  file.resize(8 + 0x3A0108, ' ');
  write(path("a.onnx"), file);
  EXPECT_EQ(open(path("a.onnx")).format.name(), "safetensors");
}

TEST_F(OnnxFile, AFolderIsItsModelWhenThereIsNoOtherFile) {
  std::filesystem::copy(fixture("files/raw.onnx"), path("model.onnx"));
  EXPECT_EQ(open(path("")).format.name(), "onnx");
  Checkpoint other;
  other.add("w", Tensor::zeros(DType::f32, {1}));
  save(other, path("model.safetensors"));
  EXPECT_EQ(open(path("")).format.name(), "safetensors");
}

TEST_F(OnnxFile, EveryTensorsNameAndShapeSurvivesAConversion) {
  const Checkpoint checkpoint = open(fixture("files/torch.onnx"));
  save(checkpoint, path("t.safetensors"));
  const Checkpoint copy = open(path("t.safetensors"));
  ASSERT_EQ(copy.size(), checkpoint.size());
  for (const Entry& entry : checkpoint)
    EXPECT_EQ(bytes_of(copy.at(entry.name)), bytes_of(entry)) << entry.name;
  EXPECT_EQ(copy.metadata->at("author"), "somebody");
}

TEST_F(OnnxFile, EveryCutIsRefused) {
  for (const std::string name : {"torch.onnx", "subgraphs.onnx", "typed.onnx", "sparse.onnx"}) {
    const std::string file = content(fixture("files/" + name));
    for_each_cut(file, [&](std::size_t size, const std::string& verdict) {
      // Behind the graph a model may end after any field: what is missing then is not a tensor.
      if (verdict == "ok") {
        const Checkpoint whole = open_bytes(safetensors::in_memory(file));
        EXPECT_EQ(open_bytes(safetensors::in_memory(file.substr(0, size))).size(), whole.size()) << size;
      } else {
        EXPECT_THAT(verdict, ::testing::AnyOf("truncated", "unknown-format", "bad-onnx"))
            << name << ' ' << size;
        if (size > 64) {
          EXPECT_EQ(verdict, "truncated") << name << ' ' << size;
        }
      }
    });
  }
}

TEST_F(OnnxFile, EveryChangedByteEndsInAnErrorOrInTensors) {
  std::size_t tried = 0;
  for (const std::string name : {"torch.onnx", "subgraphs.onnx", "typed.onnx", "sparse.onnx", "unpacked.onnx",
                                 "small_types.onnx", "functions.onnx", "constants.onnx"})
    tried += try_changed_bytes(content(fixture("files/" + name)));
  EXPECT_GT(tried, 30'000U);
}

}  // namespace
}  // namespace ballast
