// SPDX-License-Identifier: Apache-2.0
// Burn's files. What Burn writes is made by tests/fixtures/burn/make.py, an encoder of its own; what we write
// is decoded and checked field by field by tests/fixtures/burn/check.py.
#include "formats/burn/burn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/scratch.h"
#include "checkpoint/value_json.h"
#include "containers/gzip.h"
#include "formats/burn/parts.h"
#include "formats/mutations.h"

namespace ballast {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::string fixture(const std::string& name) {
  return std::string(BALLAST_TEST_DATA) + "/fixtures/burn/files/" + name;
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hex_of(const Entry& entry) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  entry.tensor().read(0, bytes);
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

void expect_net(const Checkpoint& checkpoint, bool with_ids = true) {
  const Value expect = read_json(std::string(BALLAST_TEST_DATA) + "/fixtures/burn/expect.json").at("tensors");
  ASSERT_EQ(checkpoint.size(), expect.size());
  Metadata metadata = checkpoint.metadata.value_or(Metadata());
  const burn::Extras extras = burn::Extras::take(metadata, "test");
  for (std::size_t i = 0; i < expect.size(); ++i) {
    const Value want = expect.at(std::to_string(i));
    const std::string name(want.at("name").as_string());
    ASSERT_TRUE(checkpoint.contains(name)) << name;
    const Entry entry = checkpoint.at(name);
    EXPECT_EQ(info(entry.dtype).code, want.at("dtype").as_string()) << name;
    ASSERT_EQ(entry.shape.size(), want.at("shape").size()) << name;
    for (std::size_t d = 0; d < entry.shape.size(); ++d)
      EXPECT_EQ(entry.shape[d], want.at("shape").at(std::to_string(d)).as_int()) << name;
    EXPECT_EQ(hex_of(entry), want.at("hex").as_string()) << name;
    if (!with_ids) continue;
    ASSERT_TRUE(extras.ids.contains(name)) << name;
    EXPECT_EQ(std::to_string(std::get<std::uint64_t>(extras.ids.at(name))), want.at("id").as_string());
  }
}

using BurnFiles = Scratch;

TEST(BurnMpk, ReadsARecordAsBurnWritesIt) {
  for (const Io io : {Io::map, Io::read}) {
    const Checkpoint checkpoint = open(fixture("net.mpk"), {.io = io});
    EXPECT_EQ(checkpoint.format.name(), "mpk");
    expect_net(checkpoint);
    EXPECT_EQ(checkpoint.metadata->at("burn.version"), "0.18.0");
    EXPECT_EQ(checkpoint.metadata->at("producer"), "burn");
    EXPECT_TRUE(checkpoint.notes.empty());
    // Bytes lie anywhere in a record; they can be used all the same.
    EXPECT_EQ(checkpoint.tensor("conv1.bias").span<float>()[1], 11.0F);
  }
}

TEST(BurnMpk, ReadsACompressedRecord) {
  expect_net(open(fixture("net.mpk.gz")));
}

TEST(BurnMpk, ReadsTensorsWithoutIdsAndNumbers) {
  const Checkpoint checkpoint = open(fixture("bare.mpk"));
  ASSERT_EQ(checkpoint.size(), 1U);
  EXPECT_EQ(checkpoint[0].name, "state.moment");
  EXPECT_EQ(checkpoint.metadata->at("burn.scalars"),
            R"({"state.rate":{"Float":"0.25"},"state.time":{"UInt":"12"}})");
  EXPECT_THAT(checkpoint.notes, ElementsAre(HasSubstr("1 values that are no tensors")));
}

TEST(BurnMpk, SaysWhatItCannotRead) {
  const auto code = [](const char* file) {
    return safetensors::code_of([&] { static_cast<void>(open(fixture(file))); });
  };
  EXPECT_EQ(code("before_0_14.mpk"), Errc::unsupported);
}

TEST(BurnPack, ReadsAPackAsBurnWritesIt) {
  for (const Io io : {Io::map, Io::read}) {
    const Checkpoint checkpoint = open(fixture("net.bpk"), {.io = io});
    EXPECT_EQ(checkpoint.format.name(), "bpk");
    expect_net(checkpoint);
    EXPECT_EQ(checkpoint.metadata->at("version"), "0.21.0");
    EXPECT_EQ(checkpoint.metadata->at("burn.scalars"),
              R"({"delta":{"Int":"-3"},"done":{"Bool":"1"},"half":{"Float":"0.5"},"lr":{"Float":"0.1"},)"
              R"("step":{"UInt":"7"}})");
    const auto span = checkpoint.tensor("conv1.weight").storage()->source_span();
    ASSERT_TRUE(span);
    EXPECT_EQ(span->offset % 256, 0U);
  }
  expect_net(open(fixture("native_bool.bpk")));
}

TEST(BurnPack, ReadsThePacksOfBurn019WhoseDataIsNotAligned) {
  const Checkpoint checkpoint = open(fixture("close.bpk"));
  expect_net(checkpoint, false);
  EXPECT_THAT(checkpoint.notes, Contains(HasSubstr("0.19")));
  EXPECT_EQ(checkpoint.tensor("kind.Linear.weight").span<std::int64_t>()[0], -7);
}

TEST_F(BurnFiles, WhatIsWrittenIsWhatBurnAsksFor) {
  const Checkpoint net = open(fixture("net.bpk"));
  std::string files;
  for (const std::string name : {"net.mpk", "net.mpk.gz", "net.bpk"}) {
    save(net, path(name));
    expect_net(open(path(name)));
    files += " '" + path(name) + "'";
    // Samples to point a Burn program at; they stay what the writer writes.
    if (!name.ends_with(".gz")) {
      const std::string kept = std::string(BALLAST_TEST_DATA) + "/fixtures/burn/written/" + name;
      EXPECT_TRUE(content(path(name)) == slurp(kept))
          << name << ": the writer changed; look at it, then copy it to tests/fixtures/burn/written";
    }
  }
  const std::string command =
      std::string(BALLAST_PYTHON) + " " + BALLAST_TEST_DATA + "/fixtures/burn/check.py" + files;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;  // NOLINT(cert-env33-c): a test's own command
}

TEST_F(BurnFiles, IdsAndScalarsSurviveOtherFormats) {
  save(open(fixture("net.bpk")), path("a.safetensors"));
  save(open(path("a.safetensors")), path("b.mpk"));
  save(open(path("b.mpk")), path("c.bpk"));
  const Checkpoint before = open(fixture("net.bpk"));
  const Checkpoint after = open(path("c.bpk"));
  expect_net(after);
  EXPECT_EQ(before.metadata->at("burn.param_ids"), after.metadata->at("burn.param_ids"));
  EXPECT_EQ(before.metadata->at("burn.scalars"), after.metadata->at("burn.scalars"));
}

TEST_F(BurnFiles, ALayoutThatIsNotBurnsIsSaid) {
  Checkpoint torch;
  torch.add("fc.weight", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  for (const std::string name : {"t.bpk", "t.mpk"}) {
    save(torch, path(name));
    EXPECT_EQ(open(path(name)).metadata->at("ballast.layout"), "pytorch");
    EXPECT_FALSE(open(path(name)).metadata->contains("producer"));
  }
}

TEST_F(BurnFiles, WhatARecordCannotHoldIsRefused) {
  const Tensor x = Tensor::from<float>({1}, {1});
  Checkpoint both;
  both.add("a", x);
  both.add("a.b", x);
  EXPECT_EQ(error_of([&] { save(both, path("x.mpk")); }).code(), Errc::not_representable);
  Checkpoint complex;
  complex.add("c", Tensor::zeros(DType::c64, {1}));
  EXPECT_EQ(error_of([&] { save(complex, path("x.mpk")); }).code(), Errc::not_representable);
  EXPECT_EQ(error_of([&] { save(complex, path("x.bpk")); }).code(), Errc::not_representable);
  Checkpoint odd;
  odd.add("a", x);
  odd.metadata = Metadata{{"burn.scalars", "{\"x\": {\"Float\": 1}}"}};
  EXPECT_EQ(error_of([&] { save(odd, path("x.bpk")); }).code(), Errc::bad_json);
  EXPECT_TRUE(names().empty());
}

TEST(BurnPack, AtMostAHundredThousandTensors) {
  Checkpoint many;
  const Tensor x = Tensor::zeros(DType::u8, {0});
  for (std::uint64_t i = 0; i <= burn::kMaxTensors; ++i) many.add("t" + std::to_string(i), x);
  EXPECT_EQ(safetensors::code_of([&] { save(many, safetensors::new_path(".bpk")); }),
            Errc::not_representable);
}

TEST(BurnIds, AreBase32OfTheirBytes) {
  // By hand: 1 is the bytes 01 00 …; 00000 001.. is "0", "4", then zeros.
  EXPECT_EQ(burn::encode_id(1), "0400000000000");
  EXPECT_EQ(burn::encode_id(~std::uint64_t{0}), "vvvvvvvvvvvvu");
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x0123456789ABCDEF}})
    EXPECT_EQ(std::get<std::uint64_t>(burn::decode_id(burn::encode_id(id))), id);
  EXPECT_EQ(std::get<std::string>(burn::decode_id("6b2a8f0e-0000-4000-8000-000000000000")),
            "6b2a8f0e-0000-4000-8000-000000000000");
}

// A record with this item, its bytes written out.
std::string record_of(const std::string& item) {
  return "\x82\xA8metadata\x80\xA4item" + item;
}

TEST(BurnMpk, LengthsAndNestingHaveBounds) {
  using namespace std::string_literals;
  EXPECT_EQ(verdict_of(record_of("\xDF\xFF\xFF\xFF\xFF"s)), "truncated");  // a map of 4 billion pairs
  EXPECT_EQ(verdict_of(record_of("\xDD\xFF\xFF\xFF\xFF"s)), "truncated");
  EXPECT_EQ(verdict_of(record_of("\xDB\xFF\xFF\xFF\xFF"s)), "truncated");  // text
  EXPECT_EQ(verdict_of(record_of("\x81\xA5"
                                 "bytes\xC6\xFF\xFF\xFF\xFF"s)),
            "truncated");
  EXPECT_EQ(verdict_of(record_of(std::string(100'000, '\x91') + "\xC0")), "too-deep");
  std::string maps;
  for (int i = 0; i < 200; ++i) maps += "\x81\xA1x";
  EXPECT_EQ(verdict_of(record_of(maps + "\xC0")), "too-deep");
  EXPECT_EQ(verdict_of("\x83\xA8metadata\x80\xA4item\x80\xA2_b" + std::string(1000, '\x91') + "\xC0"),
            "too-deep");
  EXPECT_EQ(verdict_of(record_of("\xC1"s)), "bad-burn");
  EXPECT_EQ(verdict_of(record_of("\xD4\x01\x02"s)), "bad-burn");  // an extension
  EXPECT_EQ(verdict_of(record_of("\xC0\xC0"s)), "trailing-data");
  const std::string long_key = "\xDA\x10\x01" + std::string(0x1001, 'k');
  EXPECT_EQ(verdict_of(record_of("\x81" + long_key + "\xC0")), "bad-name");
  EXPECT_EQ(verdict_of(record_of("\x81\xA2\xC3\x28\xC0"s)), "bad-utf8");
}

TEST(BurnMpk, NamesCannotGrowBeyondReason) {
  // Four kilobytes of path, then a million tiny numbers below it: gigabytes of names.
  std::string item = std::string("\x81\xDA\x0F\x00", 4) + std::string(0xF00, 'k');
  item += "\xDD" + std::string("\x00\x01\x86\x9F", 4) + std::string(99'999, '\x01');
  EXPECT_EQ(verdict_of(record_of(item)), "expansion-limit");
}

TEST(BurnMpk, TensorsMustBeWhole) {
  using namespace std::string_literals;
  const auto tensor = [](const std::string& shape, const std::string& dtype) {
    return record_of(
        "\x81\xA1w\x83\xA5"
        "bytes\xC4\x04\1\2\3\4\xA5shape"s +
        shape +
        "\xA5"
        "dtype"s +
        dtype);
  };
  EXPECT_EQ(verdict_of(tensor("\x91\x01",
                              "\xA3"
                              "F32")),
            "ok");
  EXPECT_EQ(verdict_of(tensor("\x91\x02",
                              "\xA3"
                              "F32")),
            "size-mismatch");
  EXPECT_EQ(verdict_of(tensor("\x91\xFF",
                              "\xA3"
                              "F32")),
            "bad-burn");  // -1
  EXPECT_EQ(verdict_of(tensor("\x91\x01",
                              "\xA3"
                              "F33")),
            "bad-dtype");
  EXPECT_EQ(verdict_of(tensor("\x92\xCF\x80\0\0\0\0\0\0\0\x02"s,
                              "\xA3"
                              "F32")),
            "size-overflow");
  EXPECT_EQ(verdict_of(record_of("\x81\xA1w\x81\xA5"
                                 "bytes\xC4\x04\1\2\3\4"s)),
            "bad-burn");
  EXPECT_EQ(verdict_of(record_of("\x82\xA1w\x83\xA5"
                                 "bytes\xC4\0\xA5shape\x91\0\xA5"
                                 "dtype\xA2U8\xA1w\x83\xA5"
                                 "bytes\xC4\0\xA5shape\x91\0\xA5"
                                 "dtype\xA2U8"s)),
            "duplicate-key");
}

TEST(BurnFilesBroken, EveryCutIsRefusedAndEveryChangeSurvived) {
  for (const char* file : {"net.mpk", "net.mpk.gz"}) {
    const std::string whole = slurp(fixture(file));
    for_each_cut(whole, [&](std::size_t size, const std::string& verdict) {
      EXPECT_NE(verdict, "ok") << file << " cut to " << size;
    });
    EXPECT_GT(try_changed_bytes(whole), 4000U);
  }
  // The last tensors of the pack are empty: it may lose the padding before them, and nothing else.
  const std::string pack = slurp(fixture("net.bpk"));
  for_each_cut(pack, [&](std::size_t size, const std::string& verdict) {
    if (size < pack.size() - 512) {
      EXPECT_NE(verdict, "ok") << size;
    }
  });
  EXPECT_GT(try_changed_bytes(std::string_view(pack).substr(0, 1400)), 4000U);
}

std::string pack_of(const std::string& metadata, std::uint32_t announced, std::size_t data = 512) {
  std::string file("NRUB\1\0", 6);
  file.append(reinterpret_cast<const char*>(&announced), 4);
  file += metadata;
  file.resize((file.size() + 255) / 256 * 256 + data, '\0');
  return file;
}

std::string pack_of(const std::string& metadata) {
  return pack_of(metadata, static_cast<std::uint32_t>(metadata.size()));
}

TEST(BurnPack, MetadataHasBounds) {
  using namespace std::string_literals;
  const std::string tensors = "\xA1\x67tensors"s;
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xA0")), "ok");
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xA0", 0xFFFFFFFF)), "header-too-large");
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xA0", 90'000'000)), "truncated");
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xBB\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s)), "truncated");
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xBF\xFF"s)), "bad-burn");  // a map of unknown length
  EXPECT_EQ(verdict_of(pack_of("\xA2\x61x" + std::string(5000, '\x81') + "\x00\x67tensors\xA0"s)),
            "too-deep");
  EXPECT_EQ(verdict_of(pack_of("\xA2\x61x" + std::string(5000, '\xC6') + "\x00\x67tensors\xA0"s)),
            "too-deep");
  EXPECT_EQ(verdict_of(pack_of("\xA0")), "bad-burn");
  EXPECT_EQ(verdict_of(pack_of(tensors + "\xA0\x00"s)), "trailing-data");
  EXPECT_EQ(verdict_of("NRUB\2\0\0\0\0\0"s), "unsupported");
  EXPECT_EQ(verdict_of("NRUB\1\0"s), "truncated");
}

TEST(BurnPack, TensorsStayInTheirPlaces) {
  using namespace std::string_literals;
  const auto tensor = [](const std::string& name, const std::string& begin, const std::string& end) {
    return "\x61" + name +
           "\xA3\x65"
           "dtype\x62U8\x65shape\x81\x04\x6C"
           "data_offsets\x82" +
           begin + end;
  };
  const auto file = [](const std::string& one, const std::string& two) {
    return pack_of("\xA1\x67tensors\xA2" + one + two);
  };
  const std::string at256 = "\x19\x01\x00"s;
  const std::string at260 = "\x19\x01\x04"s;
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x04"), tensor("b", at256, at260))), "ok");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x04"), tensor("a", at256, at260))), "duplicate-key");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x04"), tensor("b", "\x03", "\x07"))), "overlap");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x04"), tensor("b", "\x00"s, "\x04"))), "overlap");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x05"), tensor("b", at256, at260))), "size-mismatch");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x04", "\x00"s), tensor("b", at256, at260))), "offset-out-of-range");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x19\x02\x00"s, "\x19\x02\x04"), tensor("b", at256, at260))),
            "truncated");
  EXPECT_EQ(verdict_of(file(tensor("a", "\x00"s, "\x1B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
                            tensor("b", at256, at260))),
            "too-many");
}

TEST_F(BurnFiles, AGzipBombIsRefusedBeforeItTakesMemory) {
  // 100 MB of zeros after the beginning of a record: 1000 to 1.
  const std::string bomb = path("bomb.mpk.gz");
  {
    AtomicFile file(bomb, false);
    containers::GzipWriter gzip(file);
    gzip.append(as_bytes(record_of("\x81\xA1w\xC6\x7F\xFF\xFF\xFF")));
    const std::vector<std::byte> zeros(1U << 20U);
    for (int i = 0; i < 100; ++i) gzip.append(zeros);
    gzip.finish();
    file.commit();
  }
  EXPECT_LT(std::filesystem::file_size(bomb), 600'000U);
  EXPECT_EQ(error_of([&] { static_cast<void>(open(bomb)); }).code(), Errc::expansion_limit);
  const std::string good = slurp(fixture("net.mpk.gz"));
  write(path("two.gz"), good + good);
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("two.gz"))); }).code(), Errc::trailing_data);
  write(path("other.gz"), [&] {
    AtomicFile file(path("t.gz"), false);
    containers::GzipWriter gzip(file);
    gzip.append(as_bytes("hello, this is plain text"));
    gzip.finish();
    file.commit();
    return content(path("t.gz"));
  }());
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("other.gz"))); }).code(), Errc::unknown_format);
  std::string damaged = good;
  damaged[damaged.size() / 2] ^= 0x55;
  write(path("damaged.gz"), damaged);
  EXPECT_EQ(error_of([&] { static_cast<void>(open(path("damaged.gz"))); }).code(), Errc::bad_gzip);
}

}  // namespace
}  // namespace ballast
