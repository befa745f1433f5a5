// SPDX-License-Identifier: Apache-2.0
// More of what is said to be thrown: files that change, lie, or are for somebody else, and rules beyond
// measure.
#include <cctype>

#include "ballast/adapter.h"
#include "ballast/convert.h"
#include "ballast/diff.h"
#include "ballast/dlpack.h"
#include "ballast/graph.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "ballast/onnx_file.h"
#include "ballast/operation.h"
#include "ballast/quantized.h"
#include "ballast/record.h"
#include "ballast/scan.h"
#include "ballast/stats.h"
#include "ballast/torch.h"
#include "ballast/verify.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

Checkpoint with(const std::string& name, const Tensor& tensor) {
  Checkpoint checkpoint;
  checkpoint.add(name, tensor);
  return checkpoint;
}

Checkpoint said(const std::string& key, const std::string& value) {
  Checkpoint checkpoint = with("w", Tensor::zeros(DType::i8, {2, 2}));
  checkpoint.metadata = Metadata{{key, value}};
  return checkpoint;
}

/// A file that somebody writes to while it is open.
Checkpoint changed(const Place& at) {
  const std::string path = at.weights();
  Checkpoint file = open(path, {.io = Io::read});
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  return file;
}

std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size() & 0xFF);
  file[1] = static_cast<char>(header.size() >> 8U);
  return file + header + data;
}

Tensor on_other_device() {
  static float memory[2] = {};
  return Tensor::contiguous_view(
      DType::f32, {2},
      Storage::borrow(static_cast<const void*>(memory), sizeof memory, {}, {DeviceType::cuda, 0}));
}

Tensor twice(const Operation& /*operation*/, const Tensor& x) {
  return x;
}

const OperationOf<Tensor(const Tensor&)> kTwice = {
    {.name = "Twice", .inputs = {"x"}, .domain = "com.example"}, {twice}};

struct Config {
  std::int64_t width = 0;
};

struct Base {
  Base() = default;
  Base(const Base&) = default;
  Base& operator=(const Base&) = default;
  virtual ~Base() = default;
  Tensor w = of({1});
  BALLAST_FIELDS(w);
};

struct Model {
  Tensor w = Tensor(DType::f32, {2});
};

Receipt receipt_of(const Place& at) {
  drop(convert(at.weights(), at("o.npz"), {.receipt = at("r.json")}));
  return read_receipt(at("r.json"));
}

const Row kClaims[] = {
    {"Value::key no dict", Errc::type_mismatch, [](auto&) { drop(Value(1).key(0)); }},
    {"adapter_of unknown", Errc::unsupported,
     [](auto&) { drop(adapter_of(said("ballast.layout", "caffe"))); }},
    {"adapt like another layout", Errc::invalid_argument,
     [](auto&) {
       Checkpoint like = with("fc.weight", of({2, 3}));
       like.metadata = Metadata{{"ballast.layout", "native"}};
       like.format = formats::safetensors;
       drop(adapt(with("fc.weight", of({2, 3})), {.to = Adapter::pytorch, .like = &like}));
     }},
    {"dequantize no JSON", Errc::bad_json, [](auto&) { drop(dequantize(said("ballast.quantized", "{"))); }},
    {"dequantize unknown", Errc::unsupported,
     [](auto&) {
       drop(dequantize(
           said("ballast.quantized", R"({"w":{"scheme":"int4","scale":"s","axis":0,"dtype":"F32"}})")));
     }},
    {"dequantize no scales", Errc::not_found,
     [](auto&) {
       drop(dequantize(
           said("ballast.quantized", R"({"w":{"scheme":"int8","scale":"s","axis":0,"dtype":"F32"}})")));
     }},
    {"dequantize scales of another dtype", Errc::bad_dtype,
     [](auto&) {
       Checkpoint in =
           said("ballast.quantized", R"({"w":{"scheme":"int8","scale":"s","axis":0,"dtype":"F32"}})");
       in.add("s", Tensor::zeros(DType::f64, {2}));
       drop(dequantize(in));
     }},
    {"dequantize scales of another size", Errc::shape_mismatch,
     [](auto&) {
       Checkpoint in =
           said("ballast.quantized", R"({"w":{"scheme":"int8","scale":"s","axis":0,"dtype":"F32"}})");
       in.add("s", of({3}));
       drop(dequantize(in));
     }},
    {"merge layouts", Errc::invalid_argument,
     [](auto&) {
       Checkpoint parts[] = {with("v", of({1})), with("u", of({1}))};
       parts[0].metadata = Metadata{{"ballast.layout", "native"}};
       parts[1].metadata = Metadata{{"ballast.layout", "burn"}};
       drop(merge(parts));
     }},
    {"diff a file that changed", Errc::file_changed,
     [](auto& at) { drop(diff(changed(at), with("w", of({2})))); }},
    {"diff another device", Errc::unsupported,
     [](auto&) { drop(diff(with("w", on_other_device()), with("w", of({2})))); }},
    {"hash a file that changed", Errc::file_changed, [](auto& at) { drop(hash(changed(at))); }},
    {"in_memory", Errc::file_changed, [](auto& at) { drop(in_memory(changed(at))); }},
    {"stats a file that changed", Errc::file_changed,
     [](auto& at) {
       const Tensor tensors[] = {changed(at).tensor("w")};
       drop(stats(tensors));
     }},
    {"save a source that changed", Errc::file_changed, [](auto& at) { save(changed(at), at("o.npz")); }},
    {"safetensors::save a source that changed", Errc::file_changed,
     [](auto& at) { safetensors::save(changed(at), at("o")); }},
    {"torch::save a source that changed", Errc::file_changed,
     [](auto& at) { torch::save(changed(at), at("o")); }},
    {"init", Errc::invalid_argument,
     [](auto&) {
       Model model{Tensor()};
       init(model);
     }},
    {"open for somebody else", Errc::cannot_decrypt,
     [](auto& at) {
       save(with("w", of({1})), at("w.safetensors.age"), {.recipients = {generate_identity().recipient}});
       drop(open(at("w.safetensors.age"), {.identities = {generate_identity().file}}));
     }},
    {"open what could run code", Errc::forbidden_global,
     [](auto& at) {
       drop(open(at.with("x.pkl",
                         "\x80\x02"
                         "cposix\nsystem\nU\x02lsR.")));
     }},
    {"safetensors::open no JSON", Errc::bad_json,
     [](auto& at) { drop(safetensors::open(at.with("s", safetensors_file("{\"w\": }", "")))); }},
    {"safetensors::open overlap", Errc::overlap,
     [](auto& at) {
       drop(safetensors::open(
           at.with("s", safetensors_file(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                                         "123"))));
     }},
    {"safetensors::open one name twice", Errc::duplicate_key,
     [](auto& at) {
       drop(safetensors::open(
           at.with("s", safetensors_file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                         R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                         "12"))));
     }},
    {"safetensors::StreamWriter::StreamWriter one name twice", Errc::duplicate_key,
     [](auto& at) {
       drop(safetensors::StreamWriter(at("s"), {{"w", DType::u8, {1}}, {"w", DType::u8, {1}}}));
     }},
    {"safetensors::StreamWriter::write after finish", Errc::invalid_argument,
     [](auto& at) {
       safetensors::StreamWriter out(at("s"), {});
       out.finish();
       out.write("w", of({1}));
     }},
    {"safetensors::edit two of one name", Errc::duplicate_key,
     [](auto& at) {
       Checkpoint in = with("w", of({1}));
       in.add("v", of({1}));
       safetensors::save(in, at("s"));
       drop(safetensors::edit(at("s"), at("o"), {.rename = {{"v", "w"}}}));
     }},
    {"safetensors::edit metadata of somebody else", Errc::file_changed,
     [](auto& at) {
       drop(safetensors::edit(at.weights(), at("o"),
                              {.metadata = Metadata{{"a", "b"}}, .replaces = Metadata{{"c", "d"}}}));
     }},
    {"pickle_entries", Errc::truncated,
     [](auto& at) {
       drop(pickle_entries(at.with("x.pt", "PK\x03\x04, and nothing of an archive behind it")));
     }},
    {"onnx_file::read_info not there", Errc::file_not_found,
     [](auto& at) { drop(onnx_file::read_info(at("none"))); }},
    {"read_receipt members", Errc::not_found,
     [](auto& at) { drop(read_receipt(at.with("r.json", R"({"schema": 1, "output": {}})"))); }},
    {"read_receipt types", Errc::type_mismatch,
     [](auto& at) {
       drop(read_receipt(at.with("r.json", R"({"schema": "1", "output": {}, "producer": "x"})")));
     }},
    {"record_config type", Errc::type_mismatch,
     [](auto& at) {
       Checkpoint wide = with("w", of({1}));
       wide.metadata = Metadata{{"ballast.config", R"({"width": "wide"})"}};
       save_record(wide, at("r"));
       drop(record_config<Config>(open_record(at("r"))));
     }},
    {"replay twice", Errc::already_exists,
     [](auto& at) { drop(replay(receipt_of(at), at("w.safetensors"), at("o.npz"))); }},
    {"replay what is not known", Errc::unsupported,
     [](auto& at) {
       Receipt receipt = receipt_of(at);
       receipt.command = "dance";
       drop(replay(receipt, at("w.safetensors"), at("again.npz")));
     }},
    {"replay what was encrypted", Errc::unsupported,
     [](auto& at) {
       Receipt receipt = receipt_of(at);
       receipt.steps.passphrase = true;
       drop(replay(receipt, at("w.safetensors"), at("again.npz")));
     }},
    {"replay a dtype", Errc::bad_dtype,
     [](auto& at) {
       Receipt receipt = receipt_of(at);
       receipt.steps.dtype = "F99";
       drop(replay(receipt, at("w.safetensors"), at("again.npz")));
     }},
    {"rules::read no JSON", Errc::bad_json, [](auto& at) { drop(rules::read(at.with("r", "{"))); }},
    {"rules::apply nothing left", Errc::bad_name,
     [](auto&) {
       drop(rules::apply(with("w", of({1})), {rules::Rename{"w", ""}}));
     }},
    {"rules::apply one name", Errc::duplicate_key,
     [](auto&) {
       Checkpoint in = with("w", of({1}));
       in.add("v", of({1}));
       drop(rules::apply(in, {rules::Rename{"v", "w"}}));
     }},
    {"rules::apply joined without end", Errc::too_deep,
     [](auto&) {
       std::vector<rules::Rule> steps;
       for (int i = 0; i < 100; ++i)
         steps.emplace_back(rules::Change{"w", {rules::Cast{i % 2 == 0 ? DType::f16 : DType::f32}}});
       drop(rules::apply(with("w", of({1})), steps));
     }},
    {"rules::apply quantized integers", Errc::invalid_argument,
     [](auto&) {
       const Checkpoint in = quantize_int8(with("w", of({2, 2}))).checkpoint;
       drop(rules::apply(in, {rules::Change{"^w$", {rules::Transpose{0, 1}}}}));
     }},
    {"run another device", Errc::unsupported, [](auto&) { drop(run(kTwice, on_other_device())); }},
    {"run undefined", Errc::invalid_argument, [](auto&) { drop(run(kTwice, Tensor())); }},
    {"copy", Errc::unsupported,
     [](auto&) {
       struct Derived : Base {
         int more = 0;
       };
       struct Holder {
         std::unique_ptr<Base> base = std::make_unique<Derived>();
       };
       drop(copy(Holder()));
     }},
    {"trace a dimension that is baked in", Errc::baked_dimension,
     [](auto&) {
       drop(trace(nn::ReLU(), {{"x", {"n"}}}, [](std::span<const Tensor> in) {
         return std::vector<Tensor>{in[0].reshape({in[0].size(0) % 3 + 1, -1})};
       }));
     }},
    {"sign onto another", Errc::already_exists,
     [](auto& at) { drop(sign(at.weights(), at.with("sig", "{}"), {.key = at.with("key", "")})); }},
    {"verify_signature neither", Errc::invalid_argument,
     [](auto&) {
       const std::string folder = BALLAST_TEST_DATA "/fixtures/signatures";
       drop(verify_signature(folder + "/model", folder + "/files/1.1.1-key-p256.sig", {}));
     }},
    {"verify_signature another key", Errc::wrong_signature,
     [](auto&) {
       const std::string folder = BALLAST_TEST_DATA "/fixtures/signatures";
       drop(verify_signature(folder + "/model", folder + "/files/1.1.1-key-p256.sig",
                             {.key = folder + "/files/pub-p384.pem"}));
     }},
    {"verify_signature of another kind", Errc::unsupported,
     [](auto&) {
       const std::string folder = BALLAST_TEST_DATA "/fixtures/signatures";
       drop(verify_signature(folder + "/model", folder + "/files/keyless.sig",
                             {.key = folder + "/files/pub-p256.pem"}));
     }},
    {"sign a key that is encrypted", Errc::invalid_argument,
     [](auto& at) {
       drop(
           sign(at.weights(), at("sig"), {.key = at.with("key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\n")}));
     }},
    {"optimizer_state several", Errc::invalid_argument,
     [](auto&) {
       const Value one =
           Value::dict({{Value("state"), Value::dict({})}, {Value("param_groups"), Value::list({})}});
       Checkpoint in = with("w", of({1}));
       in.tree = Value::dict({{Value("a"), one}, {Value("b"), one.as_type("dict")}});
       drop(optimizer_state(in));
     }},
    {"OptimizerState::at", Errc::not_found, [](auto&) { drop(OptimizerState().at("w")); }},
    {"ParameterState::value", Errc::not_found, [](auto&) { drop(ParameterState().value("step")); }},
    {"list_pickle nothing there", Errc::not_found,
     [](auto& at) { drop(list_pickle(at.weights(), 3, 0, 1)); }},
    {"safetensors::save no folder", Errc::file_not_found,
     [](auto& at) { safetensors::save(with("w", of({1})), at("none/s")); }},
};

BALLAST_CONTRACTS(Claims, kClaims);

class Scanned : public Scratch {};

TEST_F(Scanned, AShardThatIsNotThereIsAFinding) {
  const Place at(path("."));
  const ScanReport report =
      scan(at.with("model.safetensors.index.json", R"({"weight_map": {"w": "a.safetensors"}})"));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, Errc::missing_shard);
}

TEST_F(Scanned, AFileWithoutAPickleHasNoEntries) {
  const Place at(path("."));
  EXPECT_TRUE(pickle_entries(at.weights()).empty());
}

}  // namespace
}  // namespace ballast::contracts
