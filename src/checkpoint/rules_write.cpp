// SPDX-License-Identifier: Apache-2.0
// Rules as the file they could have come from: a receipt holds it.
#include "ballast/steps.h"
#include "base/json_writer.h"
#include "base/overloaded.h"

namespace ballast::rules {
namespace {

template <class Items>
void write_list(JsonWriter& json, std::string_view key, const Items& items) {
  json.key(key).begin_array();
  for (const auto& item : items) json.value(item);
  json.end_array();
}

void write_slice(JsonWriter& json, const Slice& slice) {
  json.key("slice").begin_object().member("dim", slice.dim);
  if (slice.start) json.member("start", *slice.start);
  if (slice.stop) json.member("stop", *slice.stop);
  if (slice.step) json.member("step", *slice.step);
  json.end_object();
}

void write_operation(JsonWriter& json, const Operation& operation) {
  std::visit(Overloaded{
                 [&](const Transpose& op) {
                   json.key("transpose").begin_array().value(op.a).value(op.b).end_array();
                 },
                 [&](const Permute& op) { write_list(json, "permute", op.order); },
                 [&](const Reshape& op) { write_list(json, "reshape", op.shape); },
                 [&](const Slice& op) { write_slice(json, op); },
                 [&](const Cast& op) { json.member("cast", info(op.dtype).code); },
             },
             operation.value());
}

template <class Joined>
void write_joined(JsonWriter& json, std::string_view key, const Joined& rule) {
  json.key(key).begin_object();
  write_list(json, "with", rule.with);
  json.member("to", rule.to).member("dim", rule.dim).end_object();
}

void write_change(JsonWriter& json, const Change& rule) {
  json.key("do").begin_array();
  for (const Operation& operation : rule.operations) {
    json.begin_object();
    write_operation(json, operation);
    json.end_object();
  }
  json.end_array();
  if (!rule.to.empty()) json.member("to", rule.to);
}

void write_split(JsonWriter& json, const Split& rule) {
  json.key("split").begin_object();
  write_list(json, "to", rule.to);
  json.member("dim", rule.dim);
  if (!rule.sizes.empty()) write_list(json, "sizes", rule.sizes);
  json.end_object();
}

void write_action(JsonWriter& json, const Rule& rule) {
  std::visit(Overloaded{
                 [&](const Rename& each) { json.member("to", each.to); },
                 [&](const Drop&) { json.member("drop", true); },
                 [&](const Alias& each) { json.member("alias", each.to); },
                 [&](const Change& each) { write_change(json, each); },
                 [&](const Split& each) { write_split(json, each); },
                 [&](const Concat& each) { write_joined(json, "concat", each); },
                 [&](const Stack& each) { write_joined(json, "stack", each); },
             },
             rule.value());
}

}  // namespace

std::string to_json(const std::vector<Rule>& rules) {
  JsonWriter json;
  json.begin_object().key("rules").begin_array();
  for (const Rule& rule : rules) {
    json.begin_object();
    json.member("match", std::visit([](const auto& each) { return each.match; }, rule.value()));
    write_action(json, rule);
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace ballast::rules
