// SPDX-License-Identifier: Apache-2.0
#include "ballast/operation.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/fail.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

template <class Type>
const Type& value_of(const OperationCall& call, std::string_view name) {
  for (const Attribute& one : call.attributes) {
    if (one.name != name) continue;
    const auto* value = std::get_if<Type>(&one.value);
    if (value == nullptr) fail(Errc::type_mismatch, call.name(), "its attribute {} is of another type", name);
    return *value;
  }
  fail(Errc::unsupported, call.name(), "has no attribute {}", name);
}

std::string place_of(Device device) {
  return device.type == DeviceType::cpu ? "the CPU" : fmt::format("cuda:{}", device.index);
}

}  // namespace

std::string to_string(const Operation& operation) {
  const std::string name = display(operation.name);
  return *operation.domain == '\0' ? name : display(operation.domain) + "." + name;
}

std::int64_t OperationCall::number(std::string_view attribute) const {
  return value_of<std::int64_t>(*this, attribute);
}

double OperationCall::real(std::string_view attribute) const {
  return value_of<double>(*this, attribute);
}

const Dims& OperationCall::list(std::string_view attribute) const {
  return value_of<Dims>(*this, attribute);
}

const std::vector<double>& OperationCall::reals(std::string_view attribute) const {
  return value_of<std::vector<double>>(*this, attribute);
}

const std::string& OperationCall::text(std::string_view attribute) const {
  return value_of<std::string>(*this, attribute);
}

namespace detail {

bool is_tracing() noexcept {
  return tracing::on();
}

std::vector<Tensor> record(const Operation& operation, std::span<const Tensor> inputs, Attributes attributes,
                           std::size_t results, const Function<std::vector<Tensor>()>& run) {
  auto made = tracing::recorder->record(operation, inputs, std::move(attributes), run);
  if (results != 0 && made.size() != results)
    fail(Errc::unsupported, operation.name, "its rule tells the form of {} results, its kernel makes {}",
         made.size(), results);
  return made;
}

void require_optional(const Operation& operation, std::size_t i) {
  const auto& names = operation.inputs;
  const auto count = static_cast<std::size_t>(std::find(names.begin(), names.end(), nullptr) - names.begin());
  const std::string_view name = count == 0 ? "" : names[std::min(i, count - 1)];
  if (!name.ends_with('?'))
    fail(Errc::invalid_argument, operation.name, "operand {}, {}, is an undefined tensor", i, name);
}

void refuse_devices(const Operation& operation, const Tensor& a, const Tensor& b) {
  fail(Errc::unsupported, operation.name, "one operand is on {}, another on {}: move one of them first",
       place_of(a.device()), place_of(b.device()));
}

void refuse_device(const Operation& operation, Device device) {
  fail(Errc::unsupported, operation.name, "has no kernel for {}: move the operands to the CPU first",
       place_of(device));
}

void refuse_unnamed(const Operation& operation, std::size_t attribute) {
  fail(Errc::unsupported, operation.name, "its row has no name for attribute {}", attribute);
}

}  // namespace detail
}  // namespace ballast
