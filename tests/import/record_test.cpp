// SPDX-License-Identifier: Apache-2.0
#include "ballast/record.h"

#include <gmock/gmock.h>

#include "ballast/load_file.h"
#include "ballast/safetensors.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "base/hash_xxh3.h"
#include "base/scratch.h"
#include "checkpoint/value_json.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct NetConfig {
  int width;
  std::string name;
  std::vector<double> rates;
  friend bool operator==(const NetConfig&, const NetConfig&) = default;
};

struct Net {
  nn::Linear fc{16, 8};
  nn::BatchNorm1d norm{8};
  nn::Conv2d conv{3, 5, 3};
  Tensor ids;
};

Net made() {
  Net net;
  float first = 0.1F;
  for_each_tensor(net, [&](std::string_view path, Tensor& tensor, LayerKind) {
    if (path == "ids" || path == "norm.num_batches_tracked") return;
    tensor = counting(tensor.shape(), first);
    first += 1000;
  });
  net.norm.num_batches_tracked = Tensor::from<std::int64_t>({7}, {});
  net.ids = Tensor::from<std::int64_t>({1LL << 40, -3, 5}, {3});
  return net;
}

class RecordTest : public Scratch {
 protected:
  /// The header's JSON and where the data begins, read by hand.
  std::pair<Value, std::size_t> header(const std::string& file) const {
    const std::string bytes = content(path(file));
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), 8);
    return {parse_json(bytes.substr(8, size), "header"), 8 + size};
  }

  /// Another character at `offset`.
  void damage(const std::string& file, std::size_t offset) const {
    std::string bytes = content(path(file));
    bytes[offset] = static_cast<char>(bytes[offset] ^ 1);
    write(path(file), bytes);
  }

  /// The first occurrence of `from` in the file becomes `to`, of the same length.
  void patch(const std::string& file, const std::string& from, const std::string& to) const {
    std::string bytes = content(path(file));
    ASSERT_EQ(from.size(), to.size());
    ASSERT_NE(bytes.find(from), std::string::npos);
    bytes.replace(bytes.find(from), from.size(), to);
    write(path(file), bytes);
  }
};

TEST_F(RecordTest, ComesBackAsItWas) {
  const Net net = made();
  save_record(net, path("net.record"));
  Net read;
  const LoadReport report = load_record(read, path("net.record"), {.unused = OnUnused::error});
  EXPECT_EQ(report.applied.size(), 10U);
  EXPECT_THAT(report.adapted, IsEmpty());
  EXPECT_THAT(report.cast, IsEmpty());
  EXPECT_TRUE(same_values(read.fc.weight, net.fc.weight));
  EXPECT_TRUE(same_values(read.norm.gamma, net.norm.gamma));
  EXPECT_TRUE(same_values(read.conv.weight, net.conv.weight));
  EXPECT_TRUE(same_values(read.ids, net.ids));
}

TEST_F(RecordTest, LoadingCopiesAndTransposesNothing) {
  save_record(made(), path("net.record"));
  Net read;
  load_record(read, path("net.record"));
  const Storage* map = read.fc.weight.storage().get();
  for_each_tensor(read, [&](std::string_view name, const Tensor& tensor, LayerKind) {
    EXPECT_EQ(tensor.storage().get(), map) << name;
    EXPECT_TRUE(tensor.storage()->source_span().has_value()) << name;
    EXPECT_TRUE(tensor.is_contiguous()) << name;
  });
}

TEST_F(RecordTest, DataAndTensorsBeginOn64BytesWhereSizesAllow) {
  Checkpoint in;
  for (std::int64_t size = 0; size < 70; ++size) in.add("f" + std::to_string(size), counting({size}));
  for (std::int64_t size = 0; size < 9; ++size)
    in.add("b" + std::to_string(size), Tensor::zeros(DType::u8, {size * 13}));
  in.add("d", Tensor::zeros(DType::f64, {3}));
  save_record(in, path("a.record"));
  const auto [head, begin] = header("a.record");
  EXPECT_EQ(begin % 64, 0U);
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head.key(i).as_string() == "__metadata__") continue;
    const auto offsets = *head.value(i).find("data_offsets");
    const std::int64_t from = offsets.element(0).as_int();
    const std::int64_t to = offsets.element(1).as_int();
    const std::int64_t wanted = (to - from) % 64 == 0                                ? 64
                                : in.at(head.key(i).as_string()).dtype == DType::f64 ? 8
                                : head.key(i).as_string()[0] == 'f'                  ? 4
                                                                                     : 1;
    EXPECT_EQ(from % wanted, 0) << head.key(i).as_string();
  }
}

TEST_F(RecordTest, ChecksumsAreXxh3OfEachTensorsBytes) {
  const Tensor a = counting({3, 50000}, 0.5F);
  Checkpoint in;
  in.add("a", a.t());  // written row-major, whatever the strides
  in.add("empty", Tensor::zeros(DType::f32, {0}));
  save_record(in, path("a.record"));
  const auto head = header("a.record").first;
  const Value sums = parse_json(head.find("__metadata__")->find("ballast.xxh3")->as_string(), "sums");
  const Tensor row_major = a.t().contiguous();
  EXPECT_EQ(sums.find("a")->as_string(),
            hex(XXH3_64bits(row_major.data(), static_cast<std::size_t>(row_major.size_bytes()))));
  EXPECT_EQ(sums.find("empty")->as_string(), "2d06800538d394c2");  // of nothing: xxHash's own test vector
}

TEST_F(RecordTest, ADamagedTensorIsNamed) {
  save_record(made(), path("net.record"));
  EXPECT_THAT(check_record(open_record(path("net.record"))), IsEmpty());
  const auto [head, begin] = header("net.record");
  const auto at =
      static_cast<std::size_t>(head.find("conv.weight")->find("data_offsets")->element(0).as_int());
  damage("net.record", begin + at + 11);
  const auto faults = check_record(open_record(path("net.record")));
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].name, "conv.weight");
  const Error error = error_of([&] {
    Net net;
    load_record(net, path("net.record"), {}, {.verify = true});
  });
  EXPECT_EQ(error.code(), Errc::bad_crc);
  EXPECT_THAT(error.what(), HasSubstr("\"conv.weight\""));
}

TEST_F(RecordTest, EveryByteOfTheDataIsCovered) {
  save_record(made(), path("net.record"));
  const std::string bytes = content(path("net.record"));
  const std::size_t begin = header("net.record").second;
  for (std::size_t i = begin; i < bytes.size(); i += 37) {
    damage("net.record", i);
    EXPECT_THAT(check_record(open_record(path("net.record"))), SizeIs(1)) << i;
    write(path("net.record"), bytes);
  }
}

TEST_F(RecordTest, ATensorWithoutAChecksumIsAFault) {
  save_record(made(), path("net.record"));
  patch("net.record", "\\\"ids\\\"", "\\\"idz\\\"");
  const auto faults = check_record(open_record(path("net.record")));
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].name, "ids");
  EXPECT_FALSE(faults[0].has_checksum);
  EXPECT_EQ(error_of([&] { (void)open_record(path("net.record"), {.verify = true}); }).code(), Errc::bad_crc);
}

TEST_F(RecordTest, ANewerVersionIsRefusedAndNamesItsMaker) {
  save_record(made(), path("net.record"));
  patch("net.record", "\"ballast.record\":\"1\"", "\"ballast.record\":\"2\"");
  const Error error = error_of([&] { (void)open_record(path("net.record")); });
  EXPECT_EQ(error.code(), Errc::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("\"2\""));
  EXPECT_THAT(error.what(), HasSubstr("ballast 0.1.0"));
  Net net;
  const Checkpoint listed = safetensors::open(path("net.record"));  // what is in it can still be seen
  EXPECT_EQ(listed.size(), 10U);
  EXPECT_EQ(error_of([&] { load(net, listed); }).code(), Errc::unsupported);
}

TEST_F(RecordTest, APlainSafetensorsFileIsNoRecord) {
  safetensors::save(to_checkpoint(made()), path("a.safetensors"));
  EXPECT_EQ(error_of([&] { (void)open_record(path("a.safetensors")); }).code(), Errc::unknown_format);
}

TEST_F(RecordTest, ATypedConfigurationTravelsInside) {
  const NetConfig config{8, "tiny \"one\"", {0.5, 1e-3}};
  save_record(made(), path("net.record"), {.config = config});
  EXPECT_EQ(record_config<NetConfig>(path("net.record")), config);
  EXPECT_EQ(safetensors::open(path("net.record")).metadata->at("ballast.config_type"), "NetConfig");
  save_record(made(), path("bare.record"));
  EXPECT_EQ(error_of([&] { (void)record_config<NetConfig>(path("bare.record")); }).code(), Errc::not_found);
}

TEST_F(RecordTest, TiedTensorsAreThereOnceAndStayTied) {
  struct Tied {
    nn::Embedding wte{10, 4};
    Tensor head{DType::f32, {10, 4}};
  } model;

  model.wte.weight = counting({10, 4});
  model.head = model.wte.weight;
  save_record(model, path("t.record"));
  EXPECT_EQ(safetensors::open(path("t.record")).size(), 1U);
  EXPECT_EQ(open_record(path("t.record")).size(), 2U);
  Tied read;
  load_record(read, path("t.record"));
  EXPECT_TRUE(read.head.same_view(read.wte.weight));
  EXPECT_TRUE(same_values(read.head, model.head));
}

TEST_F(RecordTest, HalfKeepsBatchNormsAndIntegersAndCountsWhatWasLost) {
  Net net = made();
  net.fc.bias = Tensor::from<float>({1e6F, 0.1F, 0.5F, -70000.0F, 1, 2, 3, 4}, {8});
  const RecordReport report = save_record(net, path("h.record"), {.dtype = Precision::half});
  EXPECT_EQ(report.overflowed, 2U);
  EXPECT_GT(report.rounded, 0U);
  const Checkpoint file = open_record(path("h.record"));
  EXPECT_EQ(file.at("fc.weight").dtype, DType::f16);
  EXPECT_EQ(file.at("norm.running_var").dtype, DType::f32);
  EXPECT_EQ(file.at("norm.gamma").dtype, DType::f32);
  EXPECT_EQ(file.at("ids").dtype, DType::i64);
  EXPECT_EQ(file.metadata->at("ballast.precision"), "half");
  save_record(net, path("all.record"), {.dtype = Precision::half, .keep_statistics = false});
  EXPECT_EQ(open_record(path("all.record")).at("norm.running_var").dtype, DType::f16);

  Net full;
  const LoadReport loaded = load_record(full, path("h.record"), {.dtype = Precision::full});
  EXPECT_EQ(full.fc.weight.dtype(), DType::f32);
  EXPECT_EQ(loaded.rounded, 0U);  // f32 holds every f16
  EXPECT_THAT(floats(full.fc.bias), ElementsAre(std::numeric_limits<float>::infinity(), 0.0999755859375F,
                                                0.5F, -std::numeric_limits<float>::infinity(), 1, 2, 3, 4));
}

TEST_F(RecordTest, HalfOnLoadKeepsBatchNormsToo) {
  save_record(made(), path("f.record"));
  Net net;
  const LoadReport report = load_record(net, path("f.record"), {.dtype = Precision::half});
  EXPECT_EQ(net.fc.weight.dtype(), DType::f16);
  EXPECT_EQ(net.norm.running_mean.dtype(), DType::f32);
  EXPECT_GT(report.rounded, 0U);
  EXPECT_EQ(report.overflowed, 0U);
}

TEST_F(RecordTest, IntegersAreNotNarrowedToTheModels) {
  save_record(made(), path("f.record"));
  Net net;
  net.ids = Tensor(DType::i32, {3});
  load_record(net, path("f.record"), {.dtype = Precision::as_model});
  EXPECT_EQ(net.ids.dtype(), DType::i64);
}

TEST_F(RecordTest, DoubleAndBf16) {
  save_record(made(), path("d.record"), {.dtype = Precision::f64});
  EXPECT_EQ(open_record(path("d.record")).at("norm.running_var").dtype, DType::f64);
  save_record(made(), path("b.record"), {.dtype = Precision::bf16});
  EXPECT_EQ(open_record(path("b.record")).at("conv.weight").dtype, DType::bf16);
}

TEST_F(RecordTest, Int8IsDequantizedAtLoadOrKept) {
  const Net net = made();
  const RecordReport report = save_record(net, path("q.record"), {.quantize = Quantize::int8});
  ASSERT_THAT(report.quantized, SizeIs(2));  // the two weights; biases and norms stay
  const Checkpoint file = open_record(path("q.record"));
  EXPECT_EQ(file.at("fc.weight").dtype, DType::i8);
  EXPECT_EQ(file.tensor("fc.weight_scale").shape(), (Shape{8}));  // [in, out]: by output
  EXPECT_EQ(file.tensor("conv.weight_scale").shape(), (Shape{5}));
  EXPECT_THAT(check_record(file), IsEmpty());

  Net read;
  load_record(read, path("q.record"), {.unused = OnUnused::error});
  const auto before = floats(net.conv.weight);
  const auto after = floats(read.conv.weight);
  double worst = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(before[i]) - static_cast<double>(after[i])));
  EXPECT_NEAR(worst,
              report.quantized[1].name == "conv.weight" ? report.quantized[1].max_error
                                                        : report.quantized[0].max_error,
              1e-9);

  struct Kept {
    struct Layer {
      Tensor weight;
      Tensor weight_scale;
    } fc;
  } kept;

  load_record(kept, path("q.record"), {.quantized = OnQuantized::keep});
  EXPECT_EQ(kept.fc.weight.dtype(), DType::i8);
  EXPECT_EQ(kept.fc.weight_scale.dtype(), DType::f32);
}

TEST_F(RecordTest, ModelsAreSavedWithOneKindOfOptionsAndRefuseWhatIsNotTheirs) {
  const Net net = made();
  EXPECT_EQ(code_of([&] { save_record(net, path("a.record"), {.adapter = Adapter::pytorch}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { save_record(net, path("a.record"), {.format = formats::safetensors}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              save(net, path("a.safetensors"), {.config = NetConfig{1, "a", {}}});
            }),
            Errc::invalid_argument);
  EXPECT_THAT(names(), IsEmpty());

  save(net, path("q.safetensors"), {.quantize = Quantize::int8});
  const Checkpoint file = open(path("q.safetensors"));
  EXPECT_EQ(file.at("fc.weight").dtype, DType::i8);
  EXPECT_EQ(file.tensor("fc.weight_scale").shape(), (Shape{8}));  // PyTorch's [out, in]: by output
  EXPECT_EQ(file.at("fc.bias").dtype, DType::f32);
}

TEST_F(RecordTest, AnExistingRecordIsKeptUnlessAskedAndNothingIsLeftOver) {
  write(path("a.record"), "old");
  EXPECT_EQ(error_of([&] { save_record(made(), path("a.record")); }).code(), Errc::already_exists);
  EXPECT_EQ(content(path("a.record")), "old");
  EXPECT_EQ(error_of([&] { save_record(Net{}, path("a.record"), {.overwrite = true}); }).code(),
            Errc::invalid_argument);
  EXPECT_EQ(content(path("a.record")), "old");
  save_record(made(), path("a.record"), {.overwrite = true});
  EXPECT_THAT(names(), ElementsAre("a.record"));
}

TEST_F(RecordTest, TheSameModelGivesTheSameBytes) {
  save_record(made(), path("a.record"));
  save_record(made(), path("b.record"));
  EXPECT_EQ(content(path("a.record")), content(path("b.record")));
}

TEST_F(RecordTest, AHundredThousandTensors) {
  Checkpoint in;
  for (int i = 0; i < 100'000; ++i) in.add("layer." + std::to_string(i), Tensor::from<std::int32_t>({i}, {}));
  save_record(in, path("many.record"));
  const Checkpoint file = open_record(path("many.record"), {.verify = true});
  EXPECT_EQ(file.size(), 100'000U);
  EXPECT_EQ(file.tensor("layer.99999").span<std::int32_t>()[0], 99999);
}

}  // namespace
}  // namespace ballast
