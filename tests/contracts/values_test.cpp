// SPDX-License-Identifier: Apache-2.0
// Checkpoints, values and configurations; the steps, and models that are loaded.
#include <cctype>

#include "ballast/adapter.h"
#include "ballast/config.h"
#include "ballast/diff.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/quantized.h"
#include "ballast/steps.h"
#include "contracts/rows.h"

namespace ballast::contracts {
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

struct Wide {
  Tensor w = Tensor(DType::f32, {3});
};

struct Config {
  std::int64_t width = 0;
};

struct Fraction {
  double value = std::numeric_limits<double>::infinity();
};

Value dict(std::string_view key, const Value& value) {
  return Value::dict({{Value(key), value}});
}

const Row kValues[] = {
    {"Checkpoint::at", Errc::not_found, [](auto&) { drop(one().at("v")); }},
    {"Checkpoint::tensor", Errc::not_found, [](auto&) { drop(one().tensor("v")); }},
    {"Checkpoint::add twice", Errc::duplicate_key, [](auto&) { one().add("w", floats({1})); }},
    {"Checkpoint::add undefined", Errc::invalid_argument, [](auto&) { one().add("v", Tensor()); }},
    {"Checkpoint::value no tree", Errc::not_found, [](auto&) { drop(one().value("epoch")); }},
    {"Value::Value an undefined tensor", Errc::invalid_argument, [](auto&) { drop(Value(Tensor())); }},
    {"Value::integer", Errc::invalid_argument, [](auto&) { drop(Value::integer("12x")); }},
    {"Value::as_bool", Errc::type_mismatch, [](auto&) { drop(Value(1).as_bool()); }},
    {"Value::as_int a text", Errc::type_mismatch, [](auto&) { drop(Value("1").as_int()); }},
    {"Value::as_int large", Errc::size_overflow,
     [](auto&) { drop(Value::integer("99999999999999999999").as_int()); }},
    {"Value::as_float a text", Errc::type_mismatch, [](auto&) { drop(Value("1").as_float()); }},
    {"Value::as_float large", Errc::size_overflow,
     [](auto&) { drop(Value::integer(std::string(400, '9')).as_float()); }},
    {"Value::as_complex", Errc::type_mismatch, [](auto&) { drop(Value("1").as_complex()); }},
    {"Value::as_string", Errc::type_mismatch, [](auto&) { drop(Value(1).as_string()); }},
    {"Value::as_bytes", Errc::type_mismatch, [](auto&) { drop(Value("text").as_bytes()); }},
    {"Value::as_decimal", Errc::type_mismatch, [](auto&) { drop(Value(1.5).as_decimal()); }},
    {"Value::as_tensor", Errc::type_mismatch, [](auto&) { drop(Value(1).as_tensor()); }},
    {"Value::tensor_value", Errc::type_mismatch, [](auto&) { drop(Value(1).tensor_value()); }},
    {"Value::element outside", Errc::offset_out_of_range,
     [](auto&) { drop(Value::list({Value(1)}).element(1)); }},
    {"Value::element no list", Errc::type_mismatch, [](auto&) { drop(Value(1).element(0)); }},
    {"Value::key outside", Errc::offset_out_of_range, [](auto&) { drop(dict("a", Value(1)).key(1)); }},
    {"Value::value no dict", Errc::type_mismatch, [](auto&) { drop(Value(1).value(0)); }},
    {"Value::at", Errc::not_found, [](auto&) { drop(dict("a", Value(1)).at("b")); }},
    {"format_named", Errc::invalid_argument, [](auto&) { drop(format_named("tensors")); }},
    {"format_for no extension", Errc::invalid_argument, [](auto&) { drop(format_for("weights")); }},
    {"format_for onnx", Errc::unsupported, [](auto&) { drop(format_for("net.onnx")); }},
    {"pack_named", Errc::invalid_argument, [](auto&) { drop(pack_named("huge")); }},
    {"adapter_named", Errc::invalid_argument, [](auto&) { drop(adapter_named("torch")); }},
    {"layer_kind_named", Errc::invalid_argument, [](auto&) { drop(layer_kind_named("dense")); }},
    {"adapt undecided", Errc::unsupported,
     [](auto&) {
       drop(adapt(with("thing.weight", of({2, 3})), {.from = Adapter::pytorch, .to = Adapter::burn}));
     }},
    {"dequantized", Errc::type_mismatch, [](auto&) { drop(dequantized({.tensor = floats({1})})); }},
    {"quantize_int8 infinite", Errc::not_representable,
     [](auto&) {
       drop(quantize_int8(
           with("w", Tensor::from<float>({1, std::numeric_limits<float>::infinity()}, {1, 2}))));
     }},
    {"quantize_int8 twice", Errc::invalid_argument,
     [](auto&) {
       drop(quantize_int8(quantize_int8(with("w", of({2, 2}))).checkpoint));
     }},
    {"read_config a field that is not there", Errc::not_found,
     [](auto&) { drop(read_config<Config>(dict("height", Value(1)))); }},
    {"read_config another type", Errc::type_mismatch,
     [](auto&) { drop(read_config<Config>(dict("width", Value("1")))); }},
    {"save_config infinite", Errc::not_representable,
     [](auto& at) { save_config(Fraction(), at("c.json")); }},
    {"save_config twice", Errc::already_exists,
     [](auto& at) { save_config(Config(), at.with("c.json", "{}")); }},
};

BALLAST_CONTRACTS(Values, kValues);

const Row kSteps[] = {
    {"root not there", Errc::not_found, [](auto&) { drop(root(one(), "model")); }},
    {"root no tensors", Errc::type_mismatch,
     [](auto&) {
       Checkpoint in = one();
       in.tree = dict("epoch", Value(3));
       drop(root(in, "epoch"));
     }},
    {"find_root", Errc::invalid_argument,
     [](auto&) { drop(find_root(open(fixture("import/two_models.pt")))); }},
    {"rename a pattern", Errc::invalid_argument,
     [](auto&) {
       drop(rename(one(), {{"(", "x"}}));
     }},
    {"rename a group", Errc::invalid_argument,
     [](auto&) {
       drop(rename(one(), {{"w", "$1"}}));
     }},
    {"rename nothing left", Errc::bad_name,
     [](auto&) {
       drop(rename(one(), {{"w", ""}}));
     }},
    {"rename onto another", Errc::duplicate_key,
     [](auto&) {
       Checkpoint in = one();
       in.add("v", floats({1}));
       drop(rename(in, {{"v", "w"}}));
     }},
    {"filter", Errc::invalid_argument, [](auto&) { drop(filter(one(), {"["})); }},
    {"reindex", Errc::invalid_argument, [](auto&) { drop(reindex(one(), {"["})); }},
    {"cast as_model", Errc::invalid_argument, [](auto&) { drop(cast(one(), Precision::as_model)); }},
    {"merge", Errc::duplicate_key,
     [](auto&) {
       const Checkpoint parts[] = {one(), one()};
       drop(merge(parts));
     }},
    {"with_metadata", Errc::invalid_argument,
     [](auto&) {
       drop(with_metadata(one(), Metadata{{"ballast.layout", "keras"}}));
     }},
    {"apply_steps", Errc::not_found, [](auto&) { drop(apply_steps(one(), {.include = {"^v$"}})); }},
    {"rules::parse", Errc::bad_json, [](auto&) { drop(rules::parse("{\"rules\": 3}")); }},
    {"rules::parse a dtype", Errc::bad_dtype,
     [](auto&) { drop(rules::parse(R"({"rules": [{"match": "w", "cast": "f99"}]})")); }},
    {"rules::read", Errc::file_not_found, [](auto& at) { drop(rules::read(at("none.json"))); }},
    {"rules::read a folder", Errc::not_regular_file, [](auto& at) { drop(rules::read(at("."))); }},
    {"rules::parse twice", Errc::duplicate_key,
     [](auto&) { drop(rules::parse(R"({"rules":[],"rules":[]})")); }},
    {"rules::parse no UTF-8", Errc::bad_utf8, [](auto&) { drop(rules::parse("{\"rules\":[\"\xff\"]}")); }},
    {"rules::apply dimensions", Errc::shape_mismatch,
     [](auto&) {
       drop(rules::apply(one(), {rules::Change{"w", {rules::Transpose{0, 1}}}}));
     }},
    {"rules::apply joined with nothing", Errc::not_found,
     [](auto&) {
       drop(rules::apply(one(), {rules::Concat{"w", {"v"}, "wv"}}));
     }},
    {"load does not fit", Errc::load_failed,
     [](auto&) {
       Wide model;
       load(model, one());
     }},
    {"load of nothing", Errc::invalid_argument,
     [](auto&) {
       Model model;
       load(model, std::vector<Checkpoint>());
     }},
    {"load a pattern", Errc::invalid_argument,
     [](auto&) {
       Model model;
       LoadOptions options;  // by name in the call they are an error in g++ 12
       options.include = {"["};
       load(model, one(), options);
     }},
    {"load no such root", Errc::not_found,
     [](auto&) {
       Model model;
       LoadOptions options;
       options.root = "net";
       load(model, one(), options);
     }},
    {"load one key in two", Errc::duplicate_key,
     [](auto&) {
       Model model;
       load(model, std::vector<Checkpoint>{one(), one()});
     }},
    {"to_checkpoint", Errc::invalid_argument, [](auto&) { drop(to_checkpoint(Model())); }},
    {"to_checkpoint keep_dtype", Errc::not_found,
     [](auto&) {
       Model model{floats({1, 2})};
       drop(to_checkpoint(model, Adapter::pytorch,
                          ModelCast{.dtype = Precision::half, .keep_dtype = {"zzz"}}));
     }},
    {"diff", Errc::invalid_argument, [](auto&) { drop(diff(one(), one(), {.tolerance = -1})); }},
    {"diff a shape alone", Errc::not_representable, [](auto&) { drop(diff(of_shapes(), one())); }},
    {"hash", Errc::not_representable, [](auto&) { drop(hash(of_shapes())); }},
};

BALLAST_CONTRACTS(StepsAndModels, kSteps);

}  // namespace
}  // namespace ballast::contracts
