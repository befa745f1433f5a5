// SPDX-License-Identifier: Apache-2.0
// What follows the marks in a checkpoint's metadata refuses damaged ones, and what needs bytes a tensor on
// another device.
#include "ballast/adapter.h"
#include "ballast/convert.h"
#include "ballast/diff.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load.h"
#include "ballast/nn.h"
#include "ballast/operation.h"
#include "ballast/quantized.h"
#include "ballast/record.h"
#include "ballast/torch.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

Checkpoint marked(const std::string& key, const std::string& value) {
  Checkpoint checkpoint;
  checkpoint.add("m.w", of({2, 2}));
  checkpoint.add("m.v", of({2, 2}));
  checkpoint.metadata = Metadata{{key, value}};
  return checkpoint;
}

/// Ties that are no JSON.
Checkpoint torn() {
  return marked("ballast.ties", "{");
}

/// Quantized as one knows nothing of.
Checkpoint strange() {
  return marked("ballast.quantized", R"({"m.w":{"scheme":"int3","scale":"s","axis":0,"dtype":"F32"}})");
}

Checkpoint elsewhere() {
  static float memory[2] = {};
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor::contiguous_view(DType::f32, {2},
                                              Storage::borrow(static_cast<const void*>(memory), sizeof memory,
                                                              {}, {DeviceType::cuda, 0})));
  return checkpoint;
}

struct Model {
  Tensor w = Tensor(DType::f32, {2, 2});
};

LoadOptions below_m() {
  return {.root = "m"};
}

void load_into_model(const Checkpoint& checkpoint) {
  Model model;
  load(model, checkpoint, below_m());
}

const Row kMarks[] = {
    {"adapt ties", Errc::bad_json, [](auto&) { drop(adapt(torn(), {.to = Adapter::burn})); }},
    {"apply_steps ties", Errc::bad_json, [](auto&) { drop(apply_steps(torn(), {})); }},
    {"apply_steps quantized", Errc::unsupported, [](auto&) { drop(apply_steps(strange(), {})); }},
    {"check_record ties", Errc::bad_json, [](auto&) { drop(check_record(torn())); }},
    {"check_record checksums", Errc::bad_json,
     [](auto&) { drop(check_record(marked("ballast.xxh3", "{"))); }},
    {"check_record version", Errc::unsupported,
     [](auto&) { drop(check_record(marked("ballast.record", "9"))); }},
    {"record_config_value twice", Errc::duplicate_key,
     [](auto&) { drop(record_config_value(marked("ballast.config", R"({"a":1,"a":2})"))); }},
    {"debug_keys ties", Errc::bad_json, [](auto&) { drop(debug_keys(torn(), below_m())); }},
    {"dequantize of another type", Errc::bad_json,
     [](auto&) {
       drop(dequantize(
           marked("ballast.quantized", R"({"w":{"scheme":8,"scale":"s","axis":0,"dtype":"F32"}})")));
     }},
    {"dequantize axis beyond 64 bits", Errc::bad_json,
     [](auto&) {
       drop(dequantize(
           marked("ballast.quantized",
                  R"({"w":{"scheme":"int8","scale":"s","axis":99999999999999999999,"dtype":"F32"}})")));
     }},
    {"diff ties", Errc::bad_json, [](auto&) { drop(diff(torn(), torn())); }},
    {"diff quantized", Errc::unsupported, [](auto&) { drop(diff(strange(), strange())); }},
    {"filter ties", Errc::bad_json, [](auto&) { drop(filter(torn(), {"w"})); }},
    {"filter quantized", Errc::unsupported, [](auto&) { drop(filter(strange(), {"w"})); }},
    {"hash ties", Errc::bad_json, [](auto&) { drop(hash(torn())); }},
    {"hash ties twice", Errc::duplicate_key,
     [](auto&) { drop(hash(marked("ballast.ties", R"({"a":"m.w","a":"m.v"})"))); }},
    {"hash ties of no text", Errc::bad_utf8,
     [](auto&) { drop(hash(marked("ballast.ties", "{\"a\xff\":\"m.w\"}"))); }},
    {"load ties", Errc::bad_json, [](auto&) { load_into_model(torn()); }},
    {"load quantized", Errc::unsupported, [](auto&) { load_into_model(strange()); }},
    {"merge ties", Errc::bad_json,
     [](auto&) {
       const Checkpoint in = torn();
       drop(merge(std::span(&in, 1)));
     }},
    {"quantize_int8 ties", Errc::bad_json, [](auto&) { drop(quantize_int8(torn())); }},
    {"reindex ties", Errc::bad_json, [](auto&) { drop(reindex(torn())); }},
    {"rename ties", Errc::bad_json,
     [](auto&) {
       drop(rename(torn(), {{"w", "x"}}));
     }},
    {"root ties", Errc::bad_json, [](auto&) { drop(root(torn(), "m")); }},
    {"rules::apply ties", Errc::bad_json, [](auto&) { drop(rules::apply(torn(), {rules::Drop{"v"}})); }},
    {"strip_common_prefixes ties", Errc::bad_json, [](auto&) { drop(strip_common_prefixes(torn())); }},
    {"save ties", Errc::bad_json, [](auto& at) { save(torn(), at("o.pt")); }},
    {"save quantized", Errc::unsupported, [](auto& at) { save(strange(), at("o.safetensors")); }},
    {"save_record ties", Errc::bad_json, [](auto& at) { save_record(torn(), at("o.record")); }},
    {"save_shards ties", Errc::bad_json, [](auto& at) { drop(save_shards(torn(), at("o/"))); }},
};

const Row kElsewhere[] = {
    {"in_memory", Errc::unsupported, [](auto&) { drop(in_memory(elsewhere())); }},
    {"quantize_int8 elsewhere", Errc::unsupported,
     [](auto&) {
       drop(quantize_int8(elsewhere(), {}, [](const Entry&) { return std::optional<std::int64_t>(0); }));
     }},
    {"hash elsewhere", Errc::unsupported, [](auto&) { drop(hash(elsewhere())); }},
    {"save elsewhere", Errc::unsupported, [](auto& at) { save(elsewhere(), at("o.npz")); }},
    {"safetensors::save", Errc::unsupported,
     [](auto& at) { safetensors::save(elsewhere(), at("o.safetensors")); }},
    {"safetensors::serialize", Errc::unsupported, [](auto&) { drop(safetensors::serialize(elsewhere())); }},
    {"save_record elsewhere", Errc::unsupported, [](auto& at) { save_record(elsewhere(), at("o.record")); }},
    {"torch::save", Errc::unsupported, [](auto& at) { torch::save(elsewhere(), at("o.pt")); }},
};

const Row kNumbers[] = {
    {"OperationCall::number of a list", Errc::type_mismatch,
     [](auto&) {
       const Operation operation{.name = "Sum", .attributes = {"dims"}};
       const Attributes attributes = {{"dims", Dims{1}}};
       drop(OperationCall{operation, {}, attributes}.number("dims"));
     }},
    {"Tensor::expand negative", Errc::size_overflow, [](auto&) { drop(of({}).expand({-2})); }},
    {"Tensor::expand beyond", Errc::size_overflow,
     [](auto&) {
       drop(of({1}).expand({std::int64_t{1} << 40, std::int64_t{1} << 40}));
     }},
    {"Tensor::to beyond", Errc::size_overflow,
     [](auto&) { drop(Tensor::zeros(DType::u8, {1}).expand({std::int64_t{1} << 58}).to(DType::f64)); }},
    {"Tensor::t", Errc::shape_mismatch, [](auto&) { drop(of({2}).t()); }},
    {"AdaptiveLogSoftmaxWithLoss div_value", Errc::invalid_argument,
     [](auto&) { drop(nn::AdaptiveLogSoftmaxWithLoss(8, 20, {5}, 0)); }},
};

BALLAST_CONTRACTS(Marks, kMarks);
BALLAST_CONTRACTS(Elsewhere, kElsewhere);
BALLAST_CONTRACTS(Numbers, kNumbers);

}  // namespace
}  // namespace ballast::contracts
