// SPDX-License-Identifier: Apache-2.0
// write_torch_samples FOLDER [--big]: PyTorch files of every kind Ballast writes, and manifest.json that says
// what torch.load must find in them. scripts/check-torch reads the folder with a real PyTorch.
#include <fmt/format.h>
#include <sys/mman.h>

#include <complex>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "ballast/ballast.h"
#include "samples/torch_manifest.h"

namespace {

using namespace ballast;

// Tensors.

Tensor noise(DType dtype, Shape shape, unsigned seed = 1) {
  Tensor tensor = Tensor::empty(dtype, std::move(shape));
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + static_cast<unsigned>(dtype);
  std::byte* bytes = tensor.mutable_data();
  for (std::uint64_t i = 0; i < tensor.size_bytes(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = static_cast<std::byte>(dtype == DType::boolean ? state >> 63U : state >> 56U);
  }
  return tensor;
}

Tensor ramp(Shape shape) {
  Tensor tensor = Tensor::empty(DType::f32, std::move(shape));
  const auto values = tensor.mutable_span<float>();
  std::iota(values.begin(), values.end(), 0.5F);
  return tensor;
}

// The samples.

class Writer {
 public:
  explicit Writer(std::string folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }

  template <class Content>
  void write(const Sample& sample, const Content& content, SaveOptions options = {}) {
    options.overwrite = true;
    options.format = sample.legacy ? formats::torch_legacy : formats::torch_zip;
    torch::save(content, folder_ + "/" + sample.file, options);
    samples_.push_back(json(sample));
  }

  void finish() const {
    std::ofstream(folder_ + "/manifest.json") << fmt::format("[\n{}\n]\n", fmt::join(samples_, ",\n"));
  }

 private:
  std::string folder_;
  std::vector<std::string> samples_;
};

void write_dtypes(Writer& writer, const std::string& file, const std::vector<DType>& dtypes, bool legacy,
                  const std::string& least) {
  Sample sample{.file = file, .legacy = legacy, .root = "collections.OrderedDict", .least = least};
  Checkpoint checkpoint;
  for (const DType dtype : dtypes) {
    const std::string name = "t." + std::string(info(dtype).torch_name);
    checkpoint.add(name, noise(dtype, {3, 4}));
    checkpoint.add(name + ".scalar", noise(dtype, dtype == DType::f4 ? Shape{2} : Shape{}, 2));
    checkpoint.add(name + ".empty", Tensor::empty(dtype, {0, 4}));
  }
  for (const Entry& entry : checkpoint) sample.expect(std::string(entry.name), entry.tensor());
  writer.write(sample, checkpoint);
}

const std::vector<DType> kOldDTypes = {DType::boolean, DType::u8,   DType::i8,  DType::i16,
                                       DType::f16,     DType::bf16, DType::i32, DType::f32,
                                       DType::c64,     DType::f64,  DType::i64, DType::c128};

std::vector<std::pair<std::string, Tensor>> views() {
  const Tensor base = ramp({4, 6});
  const Tensor image = ramp({2, 8, 8, 3});
  return {{"base", base},
          {"tied", base},
          {"transposed", base.t()},
          {"rows", base.narrow(0, 1, 2)},
          {"columns", base.narrow(1, 2, 3)},
          {"row", base.index({2})},
          {"every_other", base.index({Slice{{}, {}, 2}, ellipsis})},
          {"expanded", base.index({0}).unsqueeze(0).expand({5, 6})},
          {"element", base.index({1, 1})},
          {"channels_last", image.permute({0, 3, 1, 2})},
          {"image", image}};
}

void write_views(Writer& writer, const std::string& file, bool legacy) {
  Sample sample{.file = file, .legacy = legacy, .root = "collections.OrderedDict"};
  Checkpoint checkpoint;
  for (const auto& [name, tensor] : views()) {
    checkpoint.add(name, tensor);
    sample.expect(name, tensor);
  }
  // A reversed view is nothing PyTorch has: it arrives as a copy.
  const Tensor reversed = ramp({5}).index({Slice{{}, {}, -1}});
  checkpoint.add("reversed", reversed);
  sample.expect("reversed", reversed, false);
  sample.shared = {
      {"base", "tied", "transposed", "rows", "columns", "row", "every_other", "expanded", "element"},
      {"channels_last", "image"}};
  writer.write(sample, checkpoint);
}

Value training_tree(Sample& sample) {
  const Tensor weight = noise(DType::f32, {4, 3});
  const Tensor bias = noise(DType::f32, {4}, 2);
  const Tensor step = Tensor::from<float>({7.0F}, {});
  sample.expect("model/fc.weight", weight);
  sample.expect("model/tied", weight);
  sample.expect("model/fc.bias", bias);
  sample.expect("optimizer/state/#0/step", step);
  sample.expect("optimizer/state/#0/exp_avg", weight);
  sample.expect("rng/#1", noise(DType::u8, {16}, 9));
  sample.shared = {{"model/fc.weight", "model/tied", "optimizer/state/#0/exp_avg"}};
  sample.values = {{"epoch", "3"},
                   {"loss", "0.125"},
                   {"best", "None"},
                   {"done", "False"},
                   {"name", "'run \u00e4 1'"},
                   {"optimizer/param_groups/#0/lr", "0.001"},
                   {"optimizer/param_groups/#0/betas", "(0.9, 0.999)"},
                   {"optimizer/param_groups/#0/params", "[0, 1]"},
                   {"big", "1180591620717411303424"},
                   {"negative", "-1180591620717411303424"},
                   {"limits",
                    "[255, 256, 65535, 65536, 2147483647, 2147483648, -1, -2147483648, -2147483649, "
                    "-9223372036854775808]"},
                   {"complex", "(1+2j)"},
                   {"bytes", "b'ab\\xff'"},
                   {"no_bytes", "b''"},
                   {"bytearray", "bytearray(b'xy')"},
                   {"size", "torch.Size([1, 2])"},
                   {"dtype", "torch.bfloat16"},
                   {"device", "device(type='cuda', index=1)"},
                   {"pair", "(1, 'two', (3, [4, ()]))"},
                   {"inf", "inf"},
                   {"counter", "Counter({'a': 2, 'b': 1})"},
                   {"empty", "[{}, [], (), OrderedDict()]"}};
  const Value text_pair = Value::list({1, 2});
  sample.values.emplace_back("list_a", "[1, 2]");
  sample.values.emplace_back("same:list_a", "list_b");  // one object in two places
  const std::byte raw[] = {std::byte{'a'}, std::byte{'b'}, std::byte{0xFF}};
  const std::byte xy[] = {std::byte{'x'}, std::byte{'y'}};
  const Value model =
      Value::dict({{"fc.weight", TensorValue{.tensor = weight}}, {"fc.bias", bias}, {"tied", weight}})
          .as_type("collections.OrderedDict")
          .with_attributes(Value::dict(
              {{"_metadata",
                Value::dict({{"", Value::dict({{"version", 1}})}}).as_type("collections.OrderedDict")}}));
  sample.values.emplace_back("metadata:model", "[('', {'version': 1})]");
  const Value optimizer = Value::dict(
      {{"state", Value::dict({{0, Value::dict({{"step", step}, {"exp_avg", weight}})}})},
       {"param_groups",
        Value::list({Value::dict(
            {{"lr", 0.001}, {"betas", Value::tuple({0.9, 0.999})}, {"params", Value::list({0, 1})}})})}});
  return Value::dict(
      {{"epoch", 3},
       {"loss", 0.125},
       {"best", {}},
       {"done", false},
       {"name", "run \u00e4 1"},
       {"model", model},
       {"optimizer", optimizer},
       {"rng", Value::tuple({"cpu", noise(DType::u8, {16}, 9)})},
       {"big", Value::integer("1180591620717411303424")},
       {"negative", Value::integer("-1180591620717411303424")},
       {"limits", Value::list({255, 256, 65535, 65536, 2147483647, 2147483648, -1, -2147483648LL,
                               -2147483649LL, INT64_MIN})},
       {"complex", std::complex<double>(1, 2)},
       {"bytes", Value::bytes(raw)},
       {"no_bytes", Value::bytes({})},
       {"bytearray", Value::bytes(xy).as_type("bytearray")},
       {"size", Value::tuple({1, 2}).as_type("torch.Size")},
       {"dtype", Value("bfloat16").as_type("torch.dtype")},
       {"device", Value("cuda:1").as_type("torch.device")},
       {"pair", Value::tuple({1, "two", Value::tuple({3, Value::list({4, Value::tuple({})})})})},
       {"inf", std::numeric_limits<double>::infinity()},
       {"counter", Value::dict({{"a", 2}, {"b", 1}}).as_type("collections.Counter")},
       {"empty", Value::list({Value::dict({}), Value::list({}), Value::tuple({}),
                              Value::dict({}).as_type("collections.OrderedDict")})},
       {"set", Value::set({1, 2, 3})},
       {"list_a", text_pair},
       {"list_b", text_pair}});
}

void write_trees(Writer& writer) {
  for (const bool legacy : {false, true}) {
    Sample sample{.file = legacy ? "training_legacy.pt" : "training.pth.tar",
                  .legacy = legacy,
                  .old_weights_only = false,
                  .root = "builtins.dict"};
    const Value tree = training_tree(sample);
    sample.values.emplace_back("set", "{1, 2, 3}");
    writer.write(sample, tree);
  }
  Sample plain{.file = "plain_dict.pt", .root = "builtins.dict"};
  const Tensor weight = noise(DType::f32, {4, 3});
  plain.expect("w", weight);
  writer.write(plain, Value::dict({{"w", weight}}).as_type("collections.OrderedDict"), {.plain_dict = true});

  Sample kinds{.file = "parameters.pt"};
  kinds.expect("parameter", weight, true, "parameter");
  kinds.expect("grad", weight, true, "requires_grad");
  kinds.expect("shape_only", Tensor(DType::f32, {3, 5}), true, "meta");
  writer.write(
      kinds,
      Value::dict({{"parameter", TensorValue{.tensor = weight, .requires_grad = true, .is_parameter = true}},
                   {"grad", TensorValue{.tensor = weight, .requires_grad = true}},
                   {"shape_only", Tensor(DType::f32, {3, 5})}}));
}

void write_quantized(Writer& writer) {
  Sample sample{.file = "quantized.pt", .old_weights_only = false};
  std::vector<std::pair<Value, Value>> pairs;
  for (const DType dtype : {DType::qi8, DType::qu8, DType::qi32}) {
    const Tensor tensor = noise(dtype, {3, 4});
    sample.expect(std::string(info(dtype).torch_name), tensor, true, "quantized:0.5:3");
    pairs.emplace_back(
        info(dtype).torch_name,
        TensorValue{.tensor = tensor, .quantization = Quantization{.scale = 0.5, .zero_point = 3}});
  }
  const Tensor channels = noise(DType::qi8, {3, 4}, 5);
  sample.expect("channels", channels, true, "channels:0");
  pairs.emplace_back("channels", TensorValue{.tensor = channels,
                                             .quantization = Quantization{
                                                 .scheme = "per_channel_affine",
                                                 .scales = Tensor::from<double>({0.5, 0.25, 2.0}, {3}),
                                                 .zero_points = Tensor::from<std::int64_t>({0, 1, 2}, {3})}});
  writer.write(sample, Value::dict(pairs));
}

void write_sparse(Writer& writer) {
  const Tensor dense = Tensor::from<float>({0, 0, 1.5F, 0, 2.5F, 0}, {2, 3});
  Sample coo{.file = "sparse_coo.pt"};
  coo.expect("s", dense, false, "sparse");
  writer.write(
      coo,
      Value::dict(
          {{"s", TensorValue{.tensor = dense,
                             .sparse = Sparse{.indices = Tensor::from<std::int64_t>({0, 1, 2, 1}, {2, 2}),
                                              .values = Tensor::from<float>({1.5F, 2.5F}, {2})}}}}));
  Sample csr{.file = "sparse_csr.pt", .least = "2.0"};
  csr.expect("s", dense, false, "sparse");
  writer.write(
      csr, Value::dict(
               {{"s", TensorValue{.tensor = dense,
                                  .sparse = Sparse{.layout = "csr",
                                                   .compressed = Tensor::from<std::int64_t>({0, 1, 2}, {3}),
                                                   .plain = Tensor::from<std::int64_t>({2, 1}, {2}),
                                                   .values = Tensor::from<float>({1.5F, 2.5F}, {2})}}}}));
}

void write_many(Writer& writer) {
  Sample sample{.file = "many.pt", .root = "collections.OrderedDict"};
  Checkpoint checkpoint;
  for (unsigned i = 0; i < 2500; ++i) {
    const std::string name = fmt::format("layer.{}.weight", i);
    checkpoint.add(name, noise(DType::f32, {static_cast<std::int64_t>(i % 7), 5}, i));
    if (i % 100 < 3) sample.expect(name, checkpoint.tensor(name));
  }
  sample.values = {{"metadata:", "[('layer', {'version': 2})]"}};
  writer.write(
      sample, checkpoint,
      {.metadata =
           Value::dict({{"layer", Value::dict({{"version", 2}})}}).as_type("collections.OrderedDict")});
  Sample none{.file = "no_tensors.pt", .root = "collections.OrderedDict"};
  writer.write(none, Checkpoint{});
}

// Beyond 4 GiB: one storage that needs 64-bit sizes, and two behind it whose headers need 64-bit offsets.
void write_big(Writer& writer) {
  const std::uint64_t size = (std::uint64_t{1} << 32U) + 124;
  void* memory =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  auto* bytes = static_cast<unsigned char*>(memory);
  for (std::uint64_t at = 0; at < size; at += 100'000'007) bytes[at] = static_cast<unsigned char>(at % 251);
  const auto storage = Storage::borrow(memory, size, [=] { munmap(memory, size); });
  Checkpoint checkpoint;
  checkpoint.add("before", noise(DType::f32, {10}));
  checkpoint.add("huge", Tensor::contiguous_view(DType::f32, {static_cast<std::int64_t>(size / 4)}, storage));
  checkpoint.add("after", noise(DType::f16, {3}));
  checkpoint.add("last", noise(DType::i64, {5, 5}));
  Sample sample{.file = "big.pt", .root = "collections.OrderedDict"};
  for (const Entry& entry : checkpoint) sample.expect(std::string(entry.name), entry.tensor());
  writer.write(sample, checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "write_torch_samples FOLDER [--big]\n";
    return 2;
  }
  try {
    Writer writer(argv[1]);
    write_dtypes(writer, "dtypes.pt", kOldDTypes, false, "1.6");
    write_dtypes(writer, "dtypes_legacy.pt", kOldDTypes, true, "1.6");
    write_dtypes(writer, "dtypes_v3.pt",
                 {DType::f8_e5m2, DType::f8_e4m3, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz, DType::u16,
                  DType::u32, DType::u64, DType::c32},
                 false, "2.3");
    write_dtypes(writer, "dtypes_e8m0.pt", {DType::f8_e8m0}, false, "2.7");
    write_dtypes(writer, "dtypes_f4.pt", {DType::f4}, false, "2.8");
    write_dtypes(writer, "dtypes_bits.pt",
                 {DType::bits1x8, DType::bits2x4, DType::bits4x2, DType::bits8, DType::bits16}, false, "2.1");
    write_views(writer, "views.pt", false);
    write_views(writer, "views_legacy.pt", true);
    write_trees(writer);
    write_quantized(writer);
    write_sparse(writer);
    write_many(writer);
    if (argc > 2 && std::string_view(argv[2]) == "--big") write_big(writer);
    writer.finish();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
