// SPDX-License-Identifier: Apache-2.0
// An operation is a row: its name, its operands and attributes, the rule for the form of its results, a
// kernel for each device, and what it is in an ONNX file. Ballast's own operations (src/ops/operations.h) and
// yours are rows of one kind, and run() is the one way to call them:
//
//   Tensor snake_cpu(const Operation&, const Tensor& x, double alpha);
//   const OperationOf<Tensor(const Tensor&, double)> kSnake = {
//       {.name = "Snake", .inputs = {"x"}, .attributes = {"alpha"}, .domain = "com.example"}, {snake_cpu}};
//   Tensor y = run(kSnake, x, 0.5);
//
// A row is const, and lives as long as the program: graphs point to it.
//
// Throws: what run() says. Owns: a call its attributes; references are valid as long as the call. Threads:
// rows are constants; kernels and rules of yours may be called from several at once. Costs: a look at the
// operands, and the kernel.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ballast/detail/attribute.h"
#include "ballast/detail/function.h"
#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

namespace onnx {
class Builder;
}

struct Operation;

/// A call as rules see it: the operands' dtypes and shapes, not their values.
struct OperationCall {
  const Operation& operation;      ///< whose call it is
  std::span<const Tensor> inputs;  ///< undefined where one was left out
  const Attributes& attributes;    ///< what is no tensor

  /// The operation's; a constant.
  [[nodiscard]] const char* name() const noexcept;

  /// Whether input i was given.
  [[nodiscard]] bool has(std::size_t i) const { return i < inputs.size() && inputs[i].defined(); }

  /// Of input i, valid as long as the call.
  [[nodiscard]] const Shape& shape(std::size_t i) const { return inputs[i].shape(); }

  /// Of input i.
  [[nodiscard]] DType dtype(std::size_t i) const { return inputs[i].dtype(); }

  /// @name Attributes
  /// By their names, valid as long as the call. Errc::unsupported when there is none of that name,
  /// type_mismatch when it is of another type.

  /// A whole number.
  [[nodiscard]] std::int64_t number(std::string_view attribute) const;
  /// A number that may have a fraction.
  [[nodiscard]] double real(std::string_view attribute) const;
  /// A list of whole numbers.
  [[nodiscard]] const Dims& list(std::string_view attribute) const;
  /// A list of numbers.
  [[nodiscard]] const std::vector<double>& reals(std::string_view attribute) const;
  /// A text.
  [[nodiscard]] const std::string& text(std::string_view attribute) const;
};

/// The results without their data. Refuses what the kernel refuses; nullopt where it is the kernel's to say.
using FormRule = std::optional<std::vector<Tensor>> (*)(const OperationCall& call);

/// Writes nodes of ONNX's own. Takes the names of the inputs ("" for one left out), gives those of the
/// results.
using OnnxRule = std::vector<std::string> (*)(onnx::Builder& to, std::span<const std::string> inputs,
                                              const Attributes& attributes);

/// What a row says whatever the types of its arguments are.
struct Operation {
  /// What running it may do.
  enum class Kind : std::uint8_t {
    computes,
    views,   ///< shows memory otherwise, on every device: a part of Tensor, which has no kernels
    random,  ///< other results at every call
  };

  const char* name = "";                       ///< in messages and graphs, and of the node in an ONNX file
  std::array<const char*, 6> inputs = {};      ///< "bias?" may be left out; the last name stands for the rest
  std::array<const char*, 8> attributes = {};  ///< of the arguments that are no tensors, in their order
  FormRule form = nullptr;                     ///< without it a trace runs the kernel, on made-up values
  Kind kind = Kind::computes;                  ///< what running it may do
  const char* domain = "";                     ///< of an operation of your own: "com.example"
  std::int64_t version = 1;                    ///< of the domain
  OnnxRule to_onnx = nullptr;                  ///< of an operation of your own that ONNX's can say
};

/// "conv", "com.example.Snake"
[[nodiscard]] std::string to_string(const Operation& operation);

inline const char* OperationCall::name() const noexcept {
  return operation.name;
}

/// Devices there can be kernels for: DeviceType::cpu, cuda.
inline constexpr std::size_t kDeviceTypes = 2;

template <class Signature>
struct OperationOf;

/// The whole row. Results: a Tensor, a std::array or std::vector of them. Arguments: const Tensor&, lists of
/// tensors (std::span), numbers, bool, enums, const Dims& and what else an Attribute holds; a struct for
/// which there is `Attributes attributes_of(const S&)`. A pointer is a place for the kernel to keep things
/// at: no part of the operation, and null when a trace runs it.
template <class Result, class... Arguments>
struct OperationOf<Result(Arguments...)> : Operation {
  /// Takes the row it is the kernel of: rows may share one.
  using Kernel = Result (*)(const Operation& operation, Arguments... arguments);

  Kernel kernels[kDeviceTypes] = {};  ///< by DeviceType
};

namespace detail {

[[nodiscard]] bool is_tracing() noexcept;
/// `results`: how many there must be; 0 when any number will do.
[[nodiscard]] std::vector<Tensor> record(const Operation& operation, std::span<const Tensor> inputs,
                                         Attributes attributes, std::size_t results,
                                         const Function<std::vector<Tensor>()>& run);
/// Refuses operand i, which is undefined, unless it may be.
void require_optional(const Operation& operation, std::size_t i);
[[noreturn]] void refuse_devices(const Operation& operation, const Tensor& a, const Tensor& b);
[[noreturn]] void refuse_device(const Operation& operation, Device device);
[[noreturn]] void refuse_unnamed(const Operation& operation, std::size_t attribute);

template <class Argument>
concept TensorOrNumber = requires(const Argument& argument) {
  { argument.tensor() } -> std::convertible_to<const Tensor&>;
};

template <class Argument>
concept SeveralTensors = requires(const Argument& argument) {
  argument.for_each_tensor([](const Tensor&) {});
};

template <class Argument, class Visit>
void visit_tensors(const Argument& argument, const Visit& visit) {
  if constexpr (std::is_same_v<Argument, Tensor>)
    visit(argument);
  else if constexpr (TensorOrNumber<Argument>)
    visit(argument.tensor());
  else if constexpr (SeveralTensors<Argument>)
    argument.for_each_tensor(visit);
  else if constexpr (std::is_convertible_v<const Argument&, std::span<const Tensor>>)
    for (const Tensor& tensor : std::span<const Tensor>(argument)) visit(tensor);
}

/// Where the operands lie, all of them: the CPU when there are none. A tensor without dimensions on the CPU
/// is a number, which goes anywhere.
template <class... Arguments>
Device device_of(const Operation& operation, const Arguments&... arguments) {
  const Tensor* first = nullptr;
  std::size_t count = 0;
  const auto look = [&](const Tensor& tensor) {
    ++count;
    if (!tensor.defined()) return require_optional(operation, count - 1);
    if (!tensor.has_data()) return;
    const Device device = tensor.storage()->device();
    if (device.type == DeviceType::cpu && tensor.rank() == 0) return;
    if (first == nullptr)
      first = &tensor;
    else if (!(device == first->storage()->device()))
      refuse_devices(operation, *first, tensor);
  };
  (visit_tensors(arguments, look), ...);
  return first == nullptr ? Device{} : first->storage()->device();
}

/// What a trace writes down of a call.
struct Description {
  const Operation& operation;
  std::vector<Tensor> inputs = {};
  Attributes attributes = {};
  std::size_t named = 0;

  template <class Argument>
  void add(const Argument& argument) {
    if constexpr (std::is_same_v<Argument, Tensor> || TensorOrNumber<Argument> || SeveralTensors<Argument> ||
                  std::is_convertible_v<const Argument&, std::span<const Tensor>>)
      visit_tensors(argument, [&](const Tensor& tensor) { inputs.push_back(tensor); });
    else if constexpr (requires { attributes_of(argument); })
      for (Attribute& one : attributes_of(argument)) attributes.push_back(std::move(one));
    else if constexpr (std::is_integral_v<Argument> || std::is_enum_v<Argument>)
      attributes.push_back({next_name(), static_cast<std::int64_t>(argument)});
    else if constexpr (!std::is_pointer_v<Argument>)
      attributes.push_back({next_name(), argument});
  }

 private:
  [[nodiscard]] std::string next_name() {
    if (named == operation.attributes.size() || operation.attributes[named] == nullptr)
      refuse_unnamed(operation, named);
    return operation.attributes[named++];
  }
};

template <class Argument>
Argument as_traced(std::type_identity_t<Argument> argument) {
  if constexpr (std::is_pointer_v<Argument>)
    return nullptr;
  else
    return std::forward<Argument>(argument);
}

inline std::vector<Tensor> listed(Tensor result) {
  return {std::move(result)};
}

inline std::vector<Tensor> listed(std::vector<Tensor> results) {
  return results;
}

template <std::size_t N>
std::vector<Tensor> listed(std::array<Tensor, N> results) {
  return {std::make_move_iterator(results.begin()), std::make_move_iterator(results.end())};
}

template <class Result>
inline constexpr std::size_t kResults = 0;
template <>
inline constexpr std::size_t kResults<Tensor> = 1;
template <std::size_t N>
inline constexpr std::size_t kResults<std::array<Tensor, N>> = N;

template <class Result>
Result unlisted(std::vector<Tensor> results) {
  if constexpr (std::is_same_v<Result, Tensor>) {
    return std::move(results[0]);
  } else if constexpr (std::is_same_v<Result, std::vector<Tensor>>) {
    return results;
  } else {
    Result all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::move(results[i]);
    return all;
  }
}

}  // namespace detail

/// Calls an operation: looks at the operands, lets a trace write the call down, and runs the kernel of the
/// device they lie on. Errors: Errc::invalid_argument for an operand that is missing, Errc::unsupported for
/// operands on two devices, or on one the operation has no kernel for; and what the kernel refuses.
template <class Result, class... Arguments>
Result run(const OperationOf<Result(Arguments...)>& operation, std::type_identity_t<Arguments>... arguments) {
  const Device device = detail::device_of(operation, arguments...);
  const auto kernel = operation.kernels[static_cast<std::size_t>(device.type)];
  if (kernel == nullptr) detail::refuse_device(operation, device);
  if (!detail::is_tracing()) return kernel(operation, std::forward<Arguments>(arguments)...);
  detail::Description call{operation};
  (call.add(arguments), ...);
  return detail::unlisted<Result>(detail::record(
      operation, call.inputs, std::move(call.attributes), detail::kResults<Result>,
      [&] { return detail::listed(kernel(operation, detail::as_traced<Arguments>(arguments)...)); }));
}

}  // namespace ballast

#pragma GCC visibility pop
