// SPDX-License-Identifier: Apache-2.0
// Packed Safetensors files through the doors that users take. tests/cli/test_packed.py reads their bytes by
// an independent decoder.
#include <gmock/gmock.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <random>

#include "ballast/convert.h"
#include "ballast/format.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/record.h"
#include "ballast/safetensors.h"
#include "ballast/verify.h"
#include "base/bytes.h"
#include "base/scratch.h"

namespace ballast {
namespace {

Tensor weights(DType dtype, Shape shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape));
  for (float& value : tensor.mutable_span<float>()) value = normal(random);
  return tensor.to(dtype);
}

Checkpoint model() {
  Checkpoint made;
  made.add("a.weight", weights(DType::bf16, {300, 1000}, 1));
  made.add("b.weight", weights(DType::f32, {3, 100, 500}, 2));
  made.add("c.weight", weights(DType::f16, {70000}, 3));
  made.add("b.bias", weights(DType::f32, {10}, 4));
  made.add("steps", Tensor::zeros(DType::i64, {1}));
  made.metadata = Metadata{{"k", "v"}};
  return made;
}

std::string bytes_of(const Tensor& tensor) {
  std::string bytes(static_cast<std::size_t>(tensor.size_bytes()), '\0');
  tensor.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

void expect_same(const Checkpoint& found, const Checkpoint& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const Entry& entry : expected) {
    const Tensor tensor = found.tensor(entry.name);
    EXPECT_EQ(tensor.dtype(), entry.dtype) << entry.name;
    EXPECT_EQ(tensor.shape(), entry.tensor().shape()) << entry.name;
    EXPECT_EQ(bytes_of(tensor), bytes_of(entry.tensor())) << entry.name;
  }
}

// Counts what is read of it.
class Counted final : public ByteSource {
 public:
  explicit Counted(std::string text)
      : ByteSource("counted.safetensors", text.size()), text_(std::move(text)) {}

  mutable std::atomic<std::uint64_t> bytes{0};

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes += out.size();
    std::copy_n(as_bytes(text_).begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

  std::string text_;
};

class PackedFile : public Scratch {};

TEST_F(PackedFile, EveryWayOfReadingGivesTheTensorsThatWereSaved) {
  for (const Pack pack : {Pack::fast, Pack::small}) {
    const std::string file = path("m.safetensors");
    save(model(), file, {.pack = pack, .overwrite = true});
    for (const Io io : {Io::map, Io::read}) {
      expect_same(open(file, {.io = io}), model());
      expect_same(safetensors::open(file, {.io = io, .writable = io == Io::map}), model());
    }
    const std::string text = content(file);
    const Checkpoint parsed =
        safetensors::parse(Storage::borrow(static_cast<const void*>(text.data()), text.size()));
    expect_same(parsed, model());
    EXPECT_EQ(parsed.metadata, model().metadata) << "the keys of packing are no metadata of the checkpoint";
    EXPECT_EQ(hash(parsed).root, hash(model()).root);
    EXPECT_EQ(parsed.tensor("a.weight").storage()->packed_size().has_value(), true);
    EXPECT_EQ(parsed.tensor("c.weight").storage()->packed_size().has_value(), pack == Pack::small);
    EXPECT_EQ(parsed.tensor("steps").storage()->packed_size(), std::nullopt);
    EXPECT_TRUE(verify(file, {.allow_zeros = true}).findings.empty());
  }
}

TEST_F(PackedFile, ViewsAndSpansOfItAreThoseOfThePlainTensor) {
  save(model(), path("m.safetensors"), {.pack = Pack::fast});
  const Tensor plain = model().tensor("b.weight");
  for (const bool is_whole : {false, true}) {
    const Tensor packed = open(path("m.safetensors")).tensor("b.weight");
    if (is_whole) {
      EXPECT_EQ(std::memcmp(packed.span<float>().data(), plain.span<float>().data(), plain.size_bytes()), 0);
    }
    EXPECT_EQ(bytes_of(packed.permute({2, 0, 1})), bytes_of(plain.permute({2, 0, 1})));
    EXPECT_EQ(bytes_of(packed.narrow(2, 7, 393)), bytes_of(plain.narrow(2, 7, 393)));
    EXPECT_EQ(bytes_of(packed.to(DType::bf16)), bytes_of(plain.to(DType::bf16)));
  }
}

TEST_F(PackedFile, WritableTensorsAreWrittenInMemoryAlone) {
  save(model(), path("m.safetensors"), {.pack = Pack::fast});
  const std::string before = content(path("m.safetensors"));
  Checkpoint opened = open(path("m.safetensors"), {.writable = true});
  Tensor tensor = opened.tensor("b.weight");
  tensor.mutable_span<float>()[0] = 7;
  float first = 0;
  opened.tensor("b.weight").read(0, std::as_writable_bytes(std::span(&first, 1)));
  EXPECT_EQ(first, 7);
  save(opened, path("n.safetensors"));
  EXPECT_EQ(open(path("n.safetensors")).tensor("b.weight").span<float>()[0], 7);
  EXPECT_EQ(content(path("m.safetensors")), before);
  EXPECT_EQ(open(path("m.safetensors")).tensor("b.weight").storage()->version(), 0);
}

TEST_F(PackedFile, OpeningReadsTheHeaderAndASliceItsBlocks) {
  Checkpoint large;
  large.add("w", weights(DType::bf16, {2048, 1024}, 5));  // 16 blocks
  save(large, path("m.safetensors"), {.pack = Pack::fast});
  const auto source = std::make_shared<Counted>(content(path("m.safetensors")));
  const Checkpoint opened = open(std::static_pointer_cast<const ByteSource>(source));
  EXPECT_LT(source->bytes, 8192);
  source->bytes = 0;
  const Tensor rows = opened.tensor("w").narrow(0, 130, 4);  // of the second block
  EXPECT_EQ(bytes_of(rows), bytes_of(large.tensor("w").narrow(0, 130, 4)));
  EXPECT_LT(source->bytes, source->size() / 16 * 11 / 10);
  EXPECT_GT(source->bytes, source->size() / 16 * 9 / 10);
}

TEST_F(PackedFile, RenamedByEditItStaysPackedUnderTheNewNames) {
  save(model(), path("m.safetensors"), {.pack = Pack::small});
  safetensors::edit(path("m.safetensors"), path("e.safetensors"),
                    {.remove_metadata = true, .rename = {{"a.weight", "b.weight"}, {"b.weight", "z"}}});
  const Checkpoint edited = open(path("e.safetensors"));
  EXPECT_EQ(bytes_of(edited.tensor("b.weight")), bytes_of(model().tensor("a.weight")));
  EXPECT_EQ(bytes_of(edited.tensor("z")), bytes_of(model().tensor("b.weight")));
  EXPECT_TRUE(edited.tensor("z").storage()->packed_size());
}

TEST_F(PackedFile, TensorsThatAreTiedOrStridedAreWrittenOnceAndRowMajor) {
  Checkpoint made;
  const Tensor shared = weights(DType::f32, {400, 300}, 6);
  made.add("a.weight", shared);
  made.add("b.weight", shared);
  made.add("t", weights(DType::bf16, {300, 400}, 7).t());
  save(made, path("m.safetensors"), {.pack = Pack::fast});
  const Checkpoint opened = open(path("m.safetensors"));
  expect_same(opened, made);
  EXPECT_LT(std::filesystem::file_size(path("m.safetensors")), made.total_bytes());
  EXPECT_EQ(ties(opened).size(), 1);
}

TEST_F(PackedFile, ProgressEndsAtItsTotalAndMayStopTheWork) {
  std::uint64_t last = 0;
  std::uint64_t all = 0;
  save(model(), path("m.safetensors"),
       {.pack = Pack::small, .progress = [&](std::uint64_t done, std::uint64_t total) {
          EXPECT_GE(done, last);
          last = done;
          all = total;
        }});
  EXPECT_EQ(last, all);
  EXPECT_THROW(save(model(), path("n.safetensors"),
                    {.pack = Pack::small,
                     .progress = [](std::uint64_t, std::uint64_t) { throw std::runtime_error("stop"); }}),
               std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(path("n.safetensors")));
}

TEST_F(PackedFile, WhatGainsTooLittleOrTooMuchStaysPlain) {
  Checkpoint made;
  made.add("zeros", Tensor::zeros(DType::f32, {1 << 20}));
  Tensor random = Tensor::zeros(DType::u8, {1 << 18});
  std::mt19937 draw(8);
  for (std::uint8_t& value : random.mutable_span<std::uint8_t>()) value = static_cast<std::uint8_t>(draw());
  made.add("random", Tensor(DType::bf16, {1 << 17}, {1}, random.storage(), 0));
  for (const Pack pack : {Pack::fast, Pack::small}) {
    save(made, path("m.safetensors"), {.pack = pack, .overwrite = true});
    const Checkpoint opened = open(path("m.safetensors"));
    expect_same(opened, made);
    EXPECT_EQ(opened.tensor("random").storage()->packed_size(), std::nullopt);
    EXPECT_EQ(opened.tensor("zeros").storage()->packed_size().has_value(), pack == Pack::fast);
  }
}

TEST_F(PackedFile, AskedToVerifyOpeningComparesTheChecksums) {
  const std::string file = path("m.safetensors");
  save(model(), file, {.pack = Pack::fast});
  for (const bool writable : {false, true})
    EXPECT_EQ(safetensors::open(file, {.writable = writable, .verify = true}).size(), model().size());
  std::string text = content(file);
  text[text.size() - 5000] ^= 1;
  write(file, text);
  for (const bool writable : {false, true}) {
    EXPECT_EQ(safetensors::open(file, {.writable = writable}).size(), model().size());
    EXPECT_EQ(
        code_of([&] { static_cast<void>(safetensors::open(file, {.writable = writable, .verify = true})); }),
        Errc::bad_crc);
  }
  EXPECT_EQ(verify(file, {.allow_zeros = true}).findings.size(), 1);
  EXPECT_EQ(code_of([&] { convert(file, path("n.safetensors")); }), Errc::bad_crc);
  convert(file, path("n.safetensors"), {.check = false});
}

TEST_F(PackedFile, InReferenceModeItIsWhatTheReferenceSees) {
  save(model(), path("m.safetensors"), {.pack = Pack::fast});
  const Checkpoint seen = safetensors::open(path("m.safetensors"), {.mode = safetensors::Mode::reference});
  EXPECT_EQ(seen.tensor("a.weight").dtype(), DType::u8);
  EXPECT_TRUE(seen.metadata->contains("ballast.packed"));
}

TEST_F(PackedFile, ARecordMayBePackedAndIsARecordStill) {
  for (const Pack pack : {Pack::fast, Pack::small}) {
    const std::string file = path("m.record");
    Checkpoint said = model();
    said.metadata = Metadata{{"ballast.precision", "half"}, {"ballast.config", R"({"n": 3})"}};
    save_record(said, file, {.pack = pack, .overwrite = true});
    for (const Io io : {Io::map, Io::read}) {
      const Checkpoint opened = open_record(file, {.io = io, .verify = true});
      EXPECT_EQ(opened.format, formats::record);
      expect_same(opened, model());
      EXPECT_TRUE(opened.tensor("a.weight").storage()->packed_size());
      EXPECT_EQ(record_config_value(opened).find("n")->as_int(), 3);
      EXPECT_TRUE(check_record(opened).empty());
      EXPECT_EQ(opened.metadata->at("ballast.precision"), "half");
    }
    const std::string text = content(file);
    const auto bytes = as_bytes(text);
    expect_same(open_record(bytes, {.verify = true}), model());
    EXPECT_EQ(hash(open(file)).root, hash(model()).root);
    EXPECT_TRUE(verify(file, {.allow_zeros = true}).findings.empty());
    // From there to a plain record and back: the same bytes.
    convert(file, path("plain.record"), {.overwrite = true});
    EXPECT_FALSE(open(path("plain.record")).tensor("a.weight").storage()->packed_size());
    convert(path("plain.record"), path("again.record"), {.pack = pack, .overwrite = true});
    EXPECT_EQ(content(path("again.record")), text);
  }
}

TEST_F(PackedFile, ASavedModelMayBePacked) {
  struct Model {
    Tensor a = weights(DType::bf16, {300, 1000}, 1);
  } model;
  save(model, path("m.safetensors"), {.pack = Pack::small});
  save_record(model, path("m.record"), {.pack = Pack::small});
  for (const char* name : {"m.safetensors", "m.record"}) {
    Model loaded{.a = Tensor(DType::bf16, {300, 1000})};
    load(loaded, path(name));
    EXPECT_EQ(bytes_of(loaded.a), bytes_of(model.a)) << name;
    EXPECT_TRUE(open(path(name)).tensor("a").storage()->packed_size()) << name;
  }
}

TEST_F(PackedFile, EveryDamageOfAPackedRecordIsSeenWherePlainOrPackedTensorsLie) {
  const std::string file = path("m.record");
  save_record(model(), file, {.pack = Pack::fast});
  const std::string sound = content(file);
  const std::size_t data = 8 + static_cast<std::size_t>(load_le<std::uint64_t>(as_bytes(sound).data()));
  for (std::size_t at = data; at < sound.size(); at += 9973) {
    std::string text = sound;
    text[at] ^= 16;
    write(file, text);
    EXPECT_THROW(static_cast<void>(open_record(file, {.verify = true})), Error) << at;
    EXPECT_THROW(convert(file, path("n.safetensors"), {.overwrite = true}), Error) << at;
  }
  EXPECT_FALSE(std::filesystem::exists(path("n.safetensors")));
}

TEST_F(PackedFile, OtherFormatsAreNotPacked) {
  for (const char* name : {"m.pt", "m.npz", "m.bpk"})
    EXPECT_EQ(code_of([&] { save(model(), path(name), {.pack = Pack::fast}); }), Errc::unsupported) << name;
  EXPECT_EQ(pack_named("small"), Pack::small);
  EXPECT_EQ(code_of([] { static_cast<void>(pack_named("tiny")); }), Errc::invalid_argument);
}

}  // namespace
}  // namespace ballast
