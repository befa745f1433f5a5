// SPDX-License-Identifier: Apache-2.0
// What Ballast writes, as PyTorch finds it. The many kinds of tensors and values are samples of
// write_torch_samples, read by scripts/check-torch; here stand the properties of the writer itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "ballast/torch.h"
#include "base/file.h"
#include "containers/zip.h"
#include "formats/python.h"
#include "formats/torch/pickle_writer.h"

namespace ballast {
namespace {

using containers::ZipArchive;
using containers::ZipEntry;

using testing::ElementsAre;
using testing::HasSubstr;

std::string output(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Tensor floats(Shape shape) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(shape));
  float next = 1;
  for (float& value : tensor.mutable_span<float>()) value = next++;
  return tensor;
}

std::vector<std::string> record_names(const std::string& path) {
  std::vector<std::string> names;
  const ZipArchive archive = ZipArchive::open(File::open(path));
  for (const ZipEntry& entry : archive.entries()) names.emplace_back(entry.name);
  return names;
}

std::uint64_t record_size(const std::string& path, std::string_view name) {
  const ZipArchive archive = ZipArchive::open(File::open(path));
  const ZipEntry* entry = archive.find(name);
  return entry == nullptr ? 0 : entry->size;
}

// Runs `script` with the loaded object as `x`.
void check_in_torch(const std::string& path, const std::string& script, bool weights_only = true) {
  run_python("in_torch",
             "import sys, torch\nx = torch.load(sys.argv[2], weights_only=" +
                 std::string(weights_only ? "True" : "False") + ")\n" + script,
             path);
}

#define NEEDS_TORCH() \
  if (!has_torch()) GTEST_SKIP() << "no torch in " << BALLAST_PYTHON

Errc code_of_saving(const Value& value, std::string* message = nullptr, const SaveOptions& options = {}) {
  const std::string path = output("refused.pt");
  try {
    torch::save(value, path, options);
  } catch (const Error& error) {
    EXPECT_FALSE(std::filesystem::exists(path));
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return Errc::load_failed;  // stands for "written"
}

TEST(TorchSave, WritesTheRecordsInTheOrderPyTorchComputesWith) {
  Checkpoint checkpoint;
  for (int i = 0; i < 12; ++i) checkpoint.add("w" + std::to_string(i), floats({i}));
  const std::string path = output("order.pt");
  torch::save(checkpoint, path);
  EXPECT_THAT(record_names(path),
              ElementsAre("archive/data.pkl", "archive/.format_version", "archive/.storage_alignment",
                          "archive/byteorder", "archive/data/0", "archive/data/1", "archive/data/2",
                          "archive/data/3", "archive/data/4", "archive/data/5", "archive/data/6",
                          "archive/data/7", "archive/data/8", "archive/data/9", "archive/data/10",
                          "archive/data/11", "archive/version", "archive/.data/serialization_id"));
  const ZipArchive archive = ZipArchive::open(File::open(path));
  for (const ZipEntry& entry : archive.entries())
    EXPECT_EQ(archive.check_header(entry) % 64, 0U) << entry.name;
  EXPECT_EQ(record_size(path, "archive/.data/serialization_id"), 40U);
}

TEST(TorchSave, GivesTheSameBytesEveryTime) {
  Checkpoint checkpoint;
  checkpoint.add("w", floats({100, 1000}));
  checkpoint.add("v", floats({3}));
  torch::save(checkpoint, output("one.pt"));
  torch::save(checkpoint, output("two.pt"));
  EXPECT_TRUE(slurp(testing::TempDir() + "/one.pt") == slurp(testing::TempDir() + "/two.pt"));
}

TEST(TorchSave, WritesOnlyWhatTensorsUseOrTheWholeStorage) {
  const Tensor base = floats({1000});
  Checkpoint checkpoint;
  checkpoint.add("part", base.narrow(0, 10, 5));
  checkpoint.add("overlapping", base.narrow(0, 13, 5));
  checkpoint.add("apart", base.narrow(0, 500, 2));
  const std::string path = output("extent.pt");
  torch::save(checkpoint, path);
  EXPECT_EQ(record_size(path, "archive/data/0"), 8U * 4);  // 10 to 18
  EXPECT_EQ(record_size(path, "archive/data/1"), 2U * 4);
  torch::save(checkpoint, path, {.extent = torch::Extent::whole, .overwrite = true});
  EXPECT_EQ(record_size(path, "archive/data/0"), 4000U);
  EXPECT_EQ(record_size(path, "archive/data/1"), 0U);
  // A tree keeps what torch.save would keep.
  torch::save(Value::dict({{"part", base.narrow(0, 10, 5)}}), path, {.overwrite = true});
  EXPECT_EQ(record_size(path, "archive/data/0"), 4000U);
}

TEST(TorchSave, GivesEachTensorOfASafetensorsFileItsOwnStorage) {
  Checkpoint checkpoint;
  checkpoint.add("a", floats({10}));
  checkpoint.add("b", floats({20}));
  const std::string path = output("source.safetensors");
  safetensors::save(checkpoint, path);
  const Checkpoint opened = safetensors::open(path);
  const std::string pt = output("converted.pt");
  torch::save(opened, pt);
  EXPECT_EQ(record_size(pt, "archive/data/0"), 40U);
  EXPECT_EQ(record_size(pt, "archive/data/1"), 80U);
  torch::save(Value::dict({{"a", opened.tensor("a")}, {"b", opened.tensor("b")}}), pt, {.overwrite = true});
  EXPECT_EQ(record_size(pt, "archive/data/0"), 40U);
}

TEST(TorchSave, WritesTwoDTypesOnOneStorageAsTwoStorages) {
  NEEDS_TORCH();
  const Tensor base = floats({4});
  Checkpoint checkpoint;
  checkpoint.add("floats", base);
  checkpoint.add("integers", Tensor::contiguous_view(DType::i32, {4}, base.storage()));
  checkpoint.add("unaligned", Tensor::contiguous_view(DType::f32, {2}, base.storage(), 2));
  const std::string path = output("dtypes.pt");
  torch::save(checkpoint, path);
  check_in_torch(path, R"(
assert x['floats'].tolist() == [1, 2, 3, 4] and x['integers'].tolist() == x['floats'].view(torch.int32).tolist()
assert x['unaligned'].numpy().tobytes() == x['floats'].numpy().tobytes()[2:10]
)");
}

TEST(TorchSave, KeepsSharedContainersAndCycles) {
  NEEDS_TORCH();
  // d = {'list': l, 'again': l, 'tuple': t, 'tuple again': t}
  const Value list = Value::list({1, "x"});
  const Value tuple = Value::tuple({list, Value::dict({})});
  const Value tensor(floats({2}));
  const std::string path = output("shared.pt");
  torch::save(Value::dict({{"list", list},
                           {"again", list},
                           {"tuple", tuple},
                           {"tuple again", tuple},
                           {"t", tensor},
                           {"u", tensor}}),
              path);
  check_in_torch(path, R"(
assert x['list'] is x['again'] and x['tuple'] is x['tuple again'] and x['tuple'][0] is x['list'] and x['t'] is x['u']
assert x['list'] == [1, 'x'] and x['tuple'][1] == {}
)");
}

TEST(TorchSave, WritesALargeIntegerAndALongTextOnce) {
  const std::string path = output("large.pt");
  const Value integer = Value::integer(std::string(600, '7'));
  const Value text(std::string(100'000, 'x'));
  std::vector<Value> elements;
  for (int i = 0; i < 1000; ++i) {
    elements.push_back(integer);
    elements.push_back(text);
  }
  torch::save(Value::list(elements), path);
  EXPECT_LT(std::filesystem::file_size(path), 110'000U);
  NEEDS_TORCH();
  check_in_torch(path, "assert x == [int('7' * 600), 'x' * 100000] * 1000", false);
}

TEST(TorchSave, WritesNestingOfAnyDepthWithoutRecursion) {
  Value nested = Value::list({});
  for (int i = 0; i < 50'000; ++i) nested = Value::list({nested});
  torch::StorageTable storages(torch::Extent::automatic);
  const std::string pickle = torch::pickle_tree(nested, {}, storages);
  // PROTO 2; "](" for each list that holds one; "]" for the innermost; "e" to close each; STOP.
  std::string wanted = "\x80\x02";
  for (int i = 0; i < 50'000; ++i) wanted += "](";
  EXPECT_TRUE(pickle == wanted + "]" + std::string(50'000, 'e') + ".");
}

TEST(TorchSave, RepeatsNoGlobalAndNoName) {
  std::vector<std::pair<Value, Value>> pairs;
  for (int i = 0; i < 100; ++i)
    pairs.emplace_back(i, Value::dict({{"exp_avg", floats({1})}, {"step", floats({1})}}));
  torch::StorageTable storages(torch::Extent::automatic);
  const std::string pickle = torch::pickle_tree(Value::dict(pairs), {}, storages);
  const auto count = [&](std::string_view text) {
    int found = 0;
    for (std::size_t at = pickle.find(text); at != std::string::npos; at = pickle.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("_rebuild_tensor_v2"), 1);
  EXPECT_EQ(count("FloatStorage"), 1);
  EXPECT_EQ(count("exp_avg"), 1);
  EXPECT_LT(pickle.size(), 100U * 120);
}

TEST(TorchSave, NamesThePathOfWhatItCannotWrite) {
  std::string message;
  const Value opaque = Value::object("__main__.Config");
  EXPECT_EQ(
      code_of_saving(Value::dict({{"model", Value::list({1, Value::dict({{"config", opaque}})})}}), &message),
      Errc::not_representable);
  EXPECT_THAT(message, HasSubstr("model.1.config"));
  EXPECT_THAT(message, HasSubstr("__main__.Config"));
  EXPECT_EQ(code_of_saving(Value::dict({{"lr", Value(0.5).as_type("numpy.float64")}})),
            Errc::not_representable);
  EXPECT_EQ(
      code_of_saving(Value::dict({{"lr", Value(0.5).as_type("numpy.float64")}}), nullptr, {.simplify = true}),
      Errc::load_failed);
  EXPECT_EQ(code_of_saving(Value::dict({{Value::list({}), 1}})), Errc::not_representable);
  EXPECT_EQ(code_of_saving(Value(Tensor::zeros(DType::f6_e2m3, {4}))), Errc::not_representable);
  EXPECT_EQ(code_of_saving(Value(Tensor::zeros(DType::qi8, {4}))), Errc::not_representable);
  EXPECT_EQ(code_of_saving(Value("\xff\xfe")), Errc::not_representable);
  EXPECT_EQ(code_of_saving(Value::integer("1" + std::string(700, '0'))), Errc::not_representable);
  EXPECT_EQ(code_of_saving(Value(Tensor::zeros(DType::u16, {4})), nullptr, {.format = formats::torch_legacy}),
            Errc::not_representable);
}

TEST(TorchSave, WritesForeignClassesAsWhatTheyAreMadeOfWhenAsked) {
  NEEDS_TORCH();
  const std::string path = output("simple.pt");
  torch::save(Value::dict({{"scalar", Value(3).as_type("numpy.int64")},
                           {"space", Value::dict({{"lr", 1}}).as_type("argparse.Namespace")},
                           {"path", Value("/tmp").as_type("pathlib.PosixPath")}}),
              path, {.simplify = true});
  check_in_torch(path, "assert x == {'scalar': 3, 'space': {'lr': 1}, 'path': '/tmp'}, x");
}

TEST(TorchSave, DoesNotReplaceAFileUnlessAsked) {
  const std::string path = output("there.pt");
  std::ofstream(path) << "old";
  Checkpoint checkpoint;
  EXPECT_THROW(torch::save(checkpoint, path), Error);
  EXPECT_EQ(slurp(path), "old");
  EXPECT_THROW(
      torch::save(checkpoint, path,
                  {.overwrite = true, .progress = [](auto, auto) { throw std::runtime_error("stop"); }}),
      std::runtime_error);
  EXPECT_EQ(slurp(path), "old");
}

// What a file's tree becomes after steps: torch_convert_test.cpp.
TEST(TorchSave, ACheckpointDoesNotTakeATreeMadeByHand) {
  const Tensor weight = floats({2});
  Checkpoint checkpoint;
  checkpoint.add("w", weight);
  checkpoint.tree = Value::dict({{"epoch", 3}, {"model", Value::dict({{"w", weight}})}});
  EXPECT_THROW(torch::save(checkpoint, output("tree.pt")), Error);
  torch::save(*checkpoint.tree, output("tree.pt"));
  EXPECT_THAT(slurp(testing::TempDir() + "/tree.pt"), HasSubstr("epoch"));
}

TEST(Save, ChoosesTheFormatByTheName) {
  Checkpoint checkpoint;
  checkpoint.add("w", floats({2}));
  for (const char* extension : {".pt", ".pth", ".bin", ".ckpt", ".pth.tar"}) {
    const std::string path = output(std::string("named") + extension);
    save(checkpoint, path);
    EXPECT_THAT(slurp(path), testing::StartsWith("PK\x03\x04")) << extension;
  }
  save(checkpoint, output("named.safetensors"));
  EXPECT_EQ(safetensors::open(testing::TempDir() + "/named.safetensors").size(), 1U);
  save(checkpoint, output("legacy.pt"), {.format = formats::torch_legacy});
  EXPECT_THAT(slurp(testing::TempDir() + "/legacy.pt"),
              testing::StartsWith("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."));
  EXPECT_THROW(save(checkpoint, output("named.txt")), Error);
  EXPECT_THROW(save(checkpoint, output("named.pt"), {.format = format_named("gguf")}), Error);
}

}  // namespace
}  // namespace ballast
