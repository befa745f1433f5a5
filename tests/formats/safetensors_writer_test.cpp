// SPDX-License-Identifier: Apache-2.0
// Bytes written: literals worked out by hand from the format's rules, and an independent writer in Python.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "formats/safetensors_testing.h"

namespace ballast::safetensors {
namespace {

using namespace std::string_view_literals;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Tensor raw(DType dtype, const Shape& shape, std::string_view bytes) {
  Tensor tensor = Tensor::empty(dtype, shape);
  EXPECT_EQ(tensor.size_bytes(), bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

TEST(SafetensorsWriter, WritesAnEmptyCheckpointAsAnEmptyObject) {
  EXPECT_EQ(text_of(serialize(Checkpoint())), "\x08\0\0\0\0\0\0\0{}      "sv);
}

TEST(SafetensorsWriter, KeepsEmptyAndAbsentMetadataApart) {
  Checkpoint checkpoint;
  checkpoint.metadata = Metadata();
  EXPECT_EQ(text_of(serialize(checkpoint)), "\x18\0\0\0\0\0\0\0{\"__metadata__\":{}}     "sv);
}

TEST(SafetensorsWriter, WritesTheReferencesOwnExample) {
  // The reference's README and its first test: I32 [2, 2].
  Checkpoint checkpoint;
  checkpoint.add("test", Tensor::from<std::int32_t>({1, 2, 3, 4}, {2, 2}));
  EXPECT_EQ(text_of(serialize(checkpoint)),
            "\x40\0\0\0\0\0\0\0{\"test\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}    "
            "\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0"sv);
}

TEST(SafetensorsWriter, OrdersByDescendingDtypeThenByNameBytes) {
  Checkpoint checkpoint;
  checkpoint.add("b", raw(DType::u8, {1}, "\x01"));
  checkpoint.add("a", raw(DType::u8, {2}, "\x02\x03"));
  checkpoint.add("Z", raw(DType::f32, {1}, "\x04\x05\x06\x07"));
  checkpoint.add("é", raw(DType::u8, {1}, "\x08"));
  checkpoint.add("z", raw(DType::u8, {1}, "\x09"));
  EXPECT_EQ(text_of(serialize(checkpoint)),
            file_of("{\"Z\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                    "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]},"
                    "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[6,7]},"
                    "\"z\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[7,8]},"
                    "\"é\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}} ",
                    "\x04\x05\x06\x07\x02\x03\x01\x09\x08"));
}

TEST(SafetensorsWriter, OrdersAll22DtypesAsTheReferenceDoes) {
  const std::vector<std::string_view> order = {
      "U64", "I64", "F64",     "C64",         "F32",         "U32",     "I32",     "BF16",
      "F16", "U16", "I16",     "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2",
      "I8",  "U8",  "F6_E3M2", "F6_E2M3",     "F4",          "BOOL"};
  Checkpoint checkpoint;
  for (std::size_t i = order.size(); i-- > 0;) {
    const DType dtype = *dtype_from_code(order[i]);
    checkpoint.add(order[i], raw(dtype, {4}, numbers(info(dtype).bits / 2)));
  }
  const auto bytes = serialize(checkpoint);
  const Checkpoint back = parse(in_memory(text_of(bytes)));
  ASSERT_EQ(back.size(), 22U);
  for (std::size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(back[i].name, order[i]);
    EXPECT_EQ(info(back[i].dtype).code, order[i]);
    std::vector<std::byte> content(back[i].bytes);
    back[i].tensor().read(0, content);
    EXPECT_EQ(text_of(content), numbers(content.size()));
  }
}

TEST(SafetensorsWriter, EscapesAsTheReferenceDoes) {
  std::string out;
  append_json_string(out, "\"\\\b\f\n\r\t\x01\x1f\x7f/é\xF0\x9F\x98\x80"sv);
  EXPECT_EQ(out, "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/é\xF0\x9F\x98\x80\"");
}

TEST(SafetensorsWriter, SortsMetadataAndPutsItFirst) {
  Checkpoint checkpoint;
  checkpoint.add("a", raw(DType::u8, {0}, ""));
  checkpoint.metadata = Metadata{{"z", "1"}, {"a\"", "2\n"}};
  EXPECT_EQ(text_of(serialize(checkpoint)),
            file_of("{\"__metadata__\":{\"a\\\"\":\"2\\n\",\"z\":\"1\"},\"a\":{\"dtype\":\"U8\",\"shape\":[0]"
                    ",\"data_offsets\":[0,0]}}      "));
}

TEST(SafetensorsWriter, WritesScalarsEmptiesAndStridedTensorsRowMajor) {
  Checkpoint checkpoint;
  const Tensor matrix = Tensor::from<std::uint8_t>({1, 2, 3, 4, 5, 6}, {2, 3});
  checkpoint.add("t", matrix.t());
  checkpoint.add("s", raw(DType::u8, {}, "\x2a"));
  checkpoint.add("e", raw(DType::u8, {3, 0}, ""));
  EXPECT_EQ(text_of(serialize(checkpoint)),
            file_of("{\"e\":{\"dtype\":\"U8\",\"shape\":[3,0],\"data_offsets\":[0,0]},\"s\":{\"dtype\":"
                    "\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                    "\"t\":{\"dtype\":\"U8\",\"shape\":[3,2],\"data_offsets\":[1,7]}}",
                    "\x2a\x01\x04\x02\x05\x03\x06"));
}

// Random checkpoints, described in JSON for the Python writer.
struct Described {
  Checkpoint checkpoint;
  std::string json;
};

std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> kParts = {"a",  "B",  ".",  "0",    "weight", "\"",
                                                  "\\", "\n", "\t", "\x01", "\x1f",   "\x7f",
                                                  "/",  "é",  "😀",  " ",    "<",      "\u2028"};
  std::string text;
  for (std::size_t i = random() % 6 + 1; i > 0; --i) text += kParts[random() % kParts.size()];
  return text;
}

Described random_checkpoint(std::mt19937& random) {
  Described described;
  JsonWriter json;
  json.begin_object().key("tensors").begin_array();
  for (std::size_t i = random() % 8; i > 0; --i) {
    const std::string name = random_text(random) + std::to_string(i);
    const auto dtype = static_cast<DType>(random() % 22);
    Shape shape{4};  // sub-byte dtypes end on a byte
    for (std::size_t rank = random() % 3; rank > 0; --rank)
      shape.push_back(static_cast<std::int64_t>(random() % 4));
    std::string data = numbers(Tensor(dtype, shape).size_bytes());
    described.checkpoint.add(name, raw(dtype, shape, data));
    json.begin_array().value(name).value(info(dtype).code).begin_array();
    for (const std::int64_t dim : shape) json.value(dim);
    std::string hex;
    for (const char c : data) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    json.end_array().value(hex).end_array();
  }
  json.end_array().key("metadata");
  if (random() % 3 == 0) {
    json.null();
  } else {
    json.begin_object();
    described.checkpoint.metadata = Metadata();
    for (std::size_t i = random() % 4; i > 0; --i)
      (*described.checkpoint.metadata)[random_text(random)] = random_text(random);
    for (const auto& [key, value] : *described.checkpoint.metadata) json.member(key, value);
    json.end_object();
  }
  described.json = json.end_object().text();
  return described;
}

TEST(SafetensorsWriter, AgreesByteForByteWithAnIndependentWriter) {
  constexpr int kCases = 300;
  std::mt19937 random(20230503);
  std::vector<Described> all;
  std::string descriptions;
  for (int i = 0; i < kCases; ++i) {
    all.push_back(random_checkpoint(random));
    descriptions += all.back().json + '\n';
  }
  const TemporaryFile cases(descriptions);
  const TemporaryFile out("");
  const std::string command = fmt::format("'{}' '{}/formats/safetensors/reference_writer.py' '{}' '{}'",
                                          BALLAST_PYTHON, BALLAST_TEST_DATA, cases.path(), out.path());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  const std::string expected = contents(out.path());
  std::size_t at = 0;
  for (const Described& described : all) {
    std::uint64_t size = 0;
    ASSERT_LE(at + 8, expected.size());
    std::memcpy(&size, expected.data() + at, 8);
    const std::string written = text_of(serialize(described.checkpoint));
    EXPECT_EQ(written, expected.substr(at + 8, size)) << described.json;
    at += 8 + size;
  }
  EXPECT_EQ(at, expected.size());
}

TEST(SafetensorsWriter, SavesTheBytesItSerializes) {
  std::mt19937 random(7);
  const TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) {
    const Described described = random_checkpoint(random);
    save(described.checkpoint, folder.file("a"), {.overwrite = true});
    EXPECT_EQ(contents(folder.file("a")), text_of(serialize(described.checkpoint)));
  }
  EXPECT_EQ(folder.count(), 1U);
}

TEST(SafetensorsWriter, RefusesWhatNobodyCouldRead) {
  const Tensor byte = raw(DType::u8, {1}, "\x01");
  const auto refusal = [&](std::string_view name, const Tensor& tensor) {
    Checkpoint checkpoint;
    checkpoint.add(name, tensor);
    return error_of([&] { static_cast<void>(serialize(checkpoint)); });
  };
  EXPECT_EQ(refusal("__metadata__", byte).code(), Errc::bad_name);
  EXPECT_EQ(refusal("a\0b"sv, byte).code(), Errc::bad_name);
  EXPECT_EQ(refusal("\xff", byte).code(), Errc::bad_utf8);
  EXPECT_EQ(refusal("a", Tensor(DType::f32, {2})).code(), Errc::not_representable);
  EXPECT_EQ(refusal("half a byte", Tensor::zeros(DType::f4, {3})).code(), Errc::misaligned);
  // The reference multiplies from the left, so it would call this an overflow.
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(refusal("a", Tensor(DType::u8, {huge, huge, 0}, {1, 1, 1}, Storage::heap(0))).code(),
            Errc::size_overflow);
  const Error complex = refusal("wave", Tensor::zeros(DType::c128, {1}));
  EXPECT_EQ(complex.code(), Errc::not_representable);
  EXPECT_NE(std::string(complex.what()).find("tensor \"wave\" is C128"), std::string::npos) << complex.what();

  Checkpoint checkpoint;
  checkpoint.metadata = Metadata{{"k", "\xc0\x80"}};
  EXPECT_EQ(code_of([&] { static_cast<void>(serialize(checkpoint)); }), Errc::bad_utf8);
}

TEST(SafetensorsWriter, RefusesAHeaderBeyondTheLimitAndWritesOneAtIt) {
  Checkpoint checkpoint;
  const std::string frame = "{\"__metadata__\":{\"k\":\"\"}}";
  checkpoint.metadata = Metadata{{"k", std::string(kMaxHeaderBytes - frame.size() + 1, 'x')}};
  EXPECT_EQ(code_of([&] { static_cast<void>(serialize(checkpoint)); }), Errc::header_too_large);
  checkpoint.metadata->at("k").pop_back();
  EXPECT_EQ(parse(in_memory(text_of(serialize(checkpoint)))).metadata->at("k").size(),
            kMaxHeaderBytes - frame.size());
}

}  // namespace
}  // namespace ballast::safetensors
