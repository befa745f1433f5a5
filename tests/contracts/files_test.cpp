// SPDX-License-Identifier: Apache-2.0
// Files: opened, saved, edited, converted, looked into.
#include <cctype>

#include "ballast/convert.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/onnx_file.h"
#include "ballast/record.h"
#include "ballast/safetensors.h"
#include "ballast/scan.h"
#include "ballast/torch.h"
#include "ballast/verify.h"
#include "contracts/rows.h"

namespace ballast::contracts {

std::string Place::weights(const std::string& name) const {
  Checkpoint checkpoint;
  checkpoint.add("w", floats({1, 2}));
  save(checkpoint, (*this)(name), {.overwrite = true});
  return (*this)(name);
}

namespace {

Checkpoint with(const std::string& name, const Tensor& tensor) {
  Checkpoint checkpoint;
  checkpoint.add(name, tensor);
  return checkpoint;
}

Checkpoint one() {
  return with("w", floats({1, 2}));
}

Checkpoint of_shapes() {
  return with("w", Tensor(DType::f32, {2}));
}

std::string fixture(const std::string& name) {
  return BALLAST_TEST_DATA "/fixtures/" + name;
}

struct Model {
  Tensor w = Tensor(DType::f32, {2});
};

struct Config {
  std::int64_t width = 0;
};

Value dict(std::string_view key, const Value& value) {
  return Value::dict({{Value(key), value}});
}

safetensors::StreamWriter writer(const Place& at) {
  return {at("stream.safetensors"), {{"w", DType::f32, {2}}}};
}

const Row kFiles[] = {
    {"open not there", Errc::file_not_found, [](auto& at) { drop(open(at("none.pt"))); }},
    {"open no model", Errc::unknown_format,
     [](auto& at) { drop(open(at.with("x.pt", "hello, hello, hello"))); }},
    {"open expansion", Errc::invalid_argument, [](auto& at) { drop(open(at.weights(), {.expansion = -1})); }},
    {"open null", Errc::invalid_argument, [](auto&) { drop(open(std::shared_ptr<const ByteSource>())); }},
    {"open a folder of two", Errc::invalid_argument,
     [](auto& at) {
       at.weights("a.safetensors");
       at.weights("b.safetensors");
       drop(open(at(".")));
     }},
    {"open a shard that is not there", Errc::missing_shard,
     [](auto& at) {
       drop(open(at.with("model.safetensors.index.json", R"({"weight_map": {"w": "a.safetensors"}})")));
     }},
    {"open an index that lies", Errc::index_mismatch,
     [](auto& at) {
       at.weights("a.safetensors");
       drop(open(at.with("model.safetensors.index.json", R"({"weight_map": {"v": "a.safetensors"}})")));
     }},
    {"open_value not there", Errc::not_found,
     [](auto& at) { drop(open_value(at.with("c.json", "{}"), "a")); }},
    {"open_value of no objects", Errc::not_found, [](auto& at) { drop(open_value(at.weights())); }},
    {"open_value no JSON", Errc::bad_json, [](auto& at) { drop(open_value(at.with("c.json", "{\"a\": "))); }},
    {"save twice", Errc::already_exists, [](auto& at) { save(one(), at.weights()); }},
    {"save no extension", Errc::invalid_argument, [](auto& at) { save(one(), at("weights")); }},
    {"save read-only format", Errc::unsupported,
     [](auto& at) { save(one(), at("w.x"), {.format = formats::onnx}); }},
    {"save no folder", Errc::file_not_found, [](auto& at) { save(one(), at("none/w.safetensors")); }},
    {"save what the format has not", Errc::not_representable,
     [](auto& at) { save(with("w", Tensor::zeros(DType::c128, {1})), at("w.safetensors")); }},
    {"save a shape alone", Errc::not_representable, [](auto& at) { save(of_shapes(), at("w.safetensors")); }},
    {"save packed elsewhere", Errc::unsupported,
     [](auto& at) { save(one(), at("w.npz"), {.pack = Pack::fast}); }},
    {"save metadata elsewhere", Errc::not_representable,
     [](auto& at) {
       save(one(), at("w.npz"), {.meta = {{"a", "b"}}});
     }},
    {"save encrypted for nobody", Errc::invalid_argument,
     [](auto& at) { save(one(), at("w.safetensors.age")); }},
    {"save encrypted by another name", Errc::invalid_argument,
     [](auto& at) { save(one(), at("w.safetensors"), {.recipients = {generate_identity().recipient}}); }},
    {"save_shards format", Errc::unsupported,
     [](auto& at) { drop(save_shards(one(), at("out/"), {.format = formats::torch_zip})); }},
    {"save_shards path", Errc::invalid_argument, [](auto& at) { drop(save_shards(one(), at("w.pt"))); }},
    {"shards_in_place", Errc::invalid_argument, [](auto& at) { drop(shards_in_place(at("w.pt"))); }},
    {"require_apart", Errc::invalid_argument,
     [](auto& at) { require_apart({at.weights()}, {at("./w.safetensors")}); }},
    {"require_apart no folder", Errc::file_not_found, [](auto& at) { require_apart({}, {at("none/w")}); }},
    {"save_text", Errc::already_exists, [](auto& at) { save_text("b", at.with("t", "a")); }},
    {"save_text no folder", Errc::file_not_found, [](auto& at) { save_text("b", at("none/t")); }},
    {"save_text no name", Errc::invalid_argument, [](auto&) { save_text("b", ""); }},
    {"save_text onto a folder", Errc::not_regular_file,
     [](auto& at) {
       std::filesystem::create_directory(at("folder"));
       save_text("b", at("folder"), true);
     }},
    {"safetensors::open", Errc::truncated,
     [](auto& at) { drop(safetensors::open(at.with("s", std::string("\x10\0\0\0\0\0\0\0{", 9)))); }},
    {"safetensors::open a lying header", Errc::size_mismatch,
     [](auto& at) {
       const std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})";
       std::string file(8, '\0');
       file[0] = static_cast<char>(header.size());
       drop(safetensors::open(at.with("s", file + header + "1234")));
     }},
    {"safetensors::parse", Errc::invalid_argument, [](auto&) { drop(safetensors::parse(nullptr)); }},
    {"safetensors::save a name", Errc::bad_name,
     [](auto& at) { safetensors::save(with("__metadata__", floats({1})), at("s")); }},
    {"safetensors::save no UTF-8", Errc::bad_utf8,
     [](auto& at) { safetensors::save(with("\xFF", floats({1})), at("s")); }},
    {"safetensors::serialize", Errc::not_representable,
     [](auto&) { drop(safetensors::serialize(of_shapes())); }},
    {"safetensors::StreamWriter::write twice", Errc::overlap,
     [](auto& at) {
       auto out = writer(at);
       out.write("w", floats({1, 2}));
       out.write("w", floats({1, 2}));
     }},
    {"safetensors::StreamWriter::write unknown", Errc::not_found,
     [](auto& at) {
       writer(at).write("v", floats({1, 2}));
     }},
    {"safetensors::StreamWriter::write dtype", Errc::bad_dtype,
     [](auto& at) {
       writer(at).write("w", Tensor::from<int>({1, 2}, {2}));
     }},
    {"safetensors::StreamWriter::write shape", Errc::shape_mismatch,
     [](auto& at) { writer(at).write("w", floats({1})); }},
    {"safetensors::StreamWriter::write outside", Errc::offset_out_of_range,
     [](auto& at) { writer(at).write("w", 4, std::as_bytes(std::span("12345"))); }},
    {"safetensors::StreamWriter::finish", Errc::gap, [](auto& at) { writer(at).finish(); }},
    {"safetensors::StreamWriter::finish twice", Errc::invalid_argument,
     [](auto& at) {
       auto out = writer(at);
       out.write("w", floats({1, 2}));
       out.finish();
       out.finish();
     }},
    {"safetensors::StreamWriter::StreamWriter", Errc::already_exists,
     [](auto& at) {
       drop(safetensors::StreamWriter(at.weights(), {{"w", DType::f32, {2}}}));
     }},
    {"safetensors::edit a name", Errc::not_found,
     [](auto& at) {
       drop(safetensors::edit(at.weights(), at("out"), {.rename = {{"v", "x"}}}));
     }},
    {"safetensors::edit both", Errc::invalid_argument,
     [](auto& at) {
       drop(safetensors::edit(at.weights(), at("out"), {.metadata = Metadata(), .remove_metadata = true}));
     }},
    {"open_record", Errc::unknown_format, [](auto& at) { drop(open_record(at.weights())); }},
    {"record_config_value", Errc::not_found, [](auto&) { drop(record_config_value(one())); }},
    {"save_record", Errc::already_exists, [](auto& at) { save_record(one(), at.with("r", "")); }},
    {"torch::save", Errc::already_exists, [](auto& at) { torch::save(one(), at.with("w.pt", "")); }},
    {"torch::save a class", Errc::not_representable,
     [](auto& at) { torch::save(Value::object("__main__.Net"), at("w.pt")); }},
    {"optimizer_state none", Errc::not_found, [](auto&) { drop(optimizer_state(one())); }},
    {"optimizer_state no optimizer's", Errc::type_mismatch,
     [](auto&) {
       Checkpoint in = one();
       in.tree = dict("o", dict("x", Value(1)));
       drop(optimizer_state(in, "o"));
     }},
    {"hash_file", Errc::file_not_found, [](auto& at) { drop(hash_file(at("none"))); }},
    {"hash_file a folder", Errc::not_regular_file, [](auto& at) { drop(hash_file(at("."))); }},
    {"scan", Errc::unknown_format, [](auto& at) { drop(scan(at.with("x", "hello, hello, hello"))); }},
    {"list_pickle no entry", Errc::not_found, [](auto& at) { drop(list_pickle(at.weights(), 0, 0, 1)); }},
    {"list_pickle behind the end", Errc::offset_out_of_range,
     [](auto&) { drop(list_pickle(fixture("import/layers.pt"), 0, 1 << 30, 1)); }},
    {"check_integrity", Errc::file_not_found, [](auto& at) { drop(check_integrity(at("none"))); }},
    {"onnx_file::read_info", Errc::unknown_format,
     [](auto& at) { drop(onnx_file::read_info(at.weights())); }},
    {"verify", Errc::invalid_argument, [](auto& at) { drop(verify(at.weights(), {.tensors_only = true})); }},
    {"sign no key", Errc::invalid_argument, [](auto& at) { drop(sign(at.weights(), at("sig"), {})); }},
    {"verify_signature", Errc::bad_bundle,
     [](auto& at) { drop(verify_signature(at.weights(), at.with("sig", "{}"), {.key = at("key")})); }},
    {"convert twice", Errc::already_exists,
     [](auto& at) { drop(convert(at.weights(), at.with("out.npz", ""))); }},
    {"convert onto itself", Errc::invalid_argument,
     [](auto& at) { drop(convert(at.weights(), at("w.safetensors"))); }},
    {"plan_conversion shards", Errc::unsupported,
     [](auto& at) {
       drop(plan_conversion(at.weights(), at("o"), {.format = formats::npz, .shard_bytes = 1}));
     }},
    {"plan_conversion quantize", Errc::not_representable,
     [](auto& at) { drop(plan_conversion(at.weights(), at("o.npz"), {.quantize = Quantize::int8})); }},
    {"plan_conversion burn", Errc::invalid_argument,
     [](auto& at) { drop(plan_conversion(at.weights(), at("o.npz"), {.burn = "0.20"})); }},
    {"merge_files one name", Errc::duplicate_key,
     [](auto& at) {
       drop(merge_files({at.weights("a.safetensors"), at.weights("b.safetensors")}, at("o.npz")));
     }},
    {"merge_files none", Errc::invalid_argument, [](auto& at) { drop(merge_files({}, at("o.npz"))); }},
    {"edit_metadata nothing", Errc::invalid_argument,
     [](auto& at) { drop(edit_metadata(at.weights(), "", {})); }},
    {"edit_metadata not there", Errc::not_found,
     [](auto& at) { drop(edit_metadata(at.weights(), "", {.remove = {"x"}})); }},
    {"edit_metadata format", Errc::unsupported,
     [](auto&) {
       drop(edit_metadata(fixture("import/layers.pt"), "", {.set = {{"a", "b"}}}));
     }},
    {"read_receipt", Errc::invalid_argument, [](auto& at) { drop(read_receipt(at.with("r.json", "{}"))); }},
    {"read_receipt schema", Errc::unsupported,
     [](auto& at) {
       Receipt receipt;
       receipt.schema = 2;
       save_config(receipt, at("r.json"));
       drop(read_receipt(at("r.json")));
     }},
    {"replay", Errc::invalid_argument,
     [](auto& at) {
       drop(convert(at.weights(), at("o.npz"), {.receipt = at("r.json")}));
       const std::string other = at("other.safetensors");
       safetensors::save(with("v", floats({3})), other);
       drop(replay(read_receipt(at("r.json")), other, at("again.npz")));
     }},
    {"save_record adapter", Errc::invalid_argument,
     [](auto& at) {
       drop(save_record(Model{floats({1, 2})}, at("r"), {.adapter = Adapter::burn}));
     }},
    {"record_config", Errc::not_found, [](auto&) { drop(record_config<Config>(one())); }},
    {"load_config", Errc::not_found, [](auto& at) { drop(load_config<Config>(at.with("c.json", "{}"))); }},
    {"load_config type", Errc::type_mismatch,
     [](auto& at) { drop(load_config<Config>(at.with("c.json", R"({"width": "a"})"))); }},
};

BALLAST_CONTRACTS(Files, kFiles);

}  // namespace
}  // namespace ballast::contracts
