// SPDX-License-Identifier: Apache-2.0
// Two trees of values, compared to the last bit and to what is shared in them.
#pragma once

#include <bit>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "open_and_copy.h"

namespace ballast::fuzzing {

class ValueComparison {
 public:
  /// What is different; empty when nothing is.
  std::string run(const Value& a, const Value& b) {
    pairs_.emplace_back(a, b);
    while (!pairs_.empty()) {
      const auto [mine, other] = std::move(pairs_.back());
      pairs_.pop_back();
      if (const char* what = compare(mine, other))
        return std::string(what) + ": " + mine.summary() + " (" + std::string(mine.type()) + ") and " +
               other.summary() + " (" + std::string(other.type()) + ")";
    }
    return {};
  }

 private:
  static bool is_container(Kind kind) {
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::set || kind == Kind::dict;
  }

  const char* compare(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return "another kind";
    if (a.kind() == Kind::tensor) return compare_tensors(a.tensor_value(), b.tensor_value());
    if (a.type() != b.type()) return "another class";
    if (!is_container(a.kind())) return is_same_leaf(a, b) ? nullptr : "another value";
    if (a.size() != b.size()) return "another size";
    const auto [met, is_new] = met_.try_emplace(a.identity(), b.identity());
    if (!is_new) return met->second == b.identity() || a.size() == 0 ? nullptr : "no longer shared";
    if (!a.attributes().is_none() && a.attributes().size() != 0)
      pairs_.emplace_back(a.attributes(), b.attributes());
    for (std::size_t i = 0; i < a.size(); ++i) {
      const bool is_dict = a.kind() == Kind::dict;
      if (is_dict) pairs_.emplace_back(a.key(i), b.key(i));
      pairs_.emplace_back(is_dict ? a.value(i) : a.element(i), is_dict ? b.value(i) : b.element(i));
    }
    return nullptr;
  }

  static std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

  static bool is_same_leaf(const Value& a, const Value& b) {
    switch (a.kind()) {
      case Kind::boolean:
        return a.as_bool() == b.as_bool();
      case Kind::integer:
        return a.as_decimal() == b.as_decimal();
      case Kind::floating:
        return bits(a.as_float()) == bits(b.as_float());
      case Kind::complex:
        return bits(a.as_complex().real()) == bits(b.as_complex().real()) &&
               bits(a.as_complex().imag()) == bits(b.as_complex().imag());
      case Kind::string:
        return a.as_string() == b.as_string();
      case Kind::bytes:
        return std::equal(a.as_bytes().begin(), a.as_bytes().end(), b.as_bytes().begin(), b.as_bytes().end());
      default:
        return a.kind() == Kind::none;
    }
  }

  // Where a tensor lay and which of PyTorch's old classes it had are not written.
  static const char* compare_tensors(const TensorValue& a, const TensorValue& b) {
    if (a.tensor.dtype() != b.tensor.dtype()) return "another dtype";
    if (a.tensor.shape() != b.tensor.shape()) return "another shape";
    if (a.tensor.has_data() != b.tensor.has_data()) return "data or none";
    if (a.is_parameter != b.is_parameter) return "a parameter or not";
    if (a.requires_grad != b.requires_grad && !a.sparse) return "another requires_grad";
    if (a.sparse.has_value() != b.sparse.has_value()) return "sparse or not";
    if (a.quantization.has_value() != b.quantization.has_value()) return "quantized or not";
    if (a.quantization &&
        (bits(a.quantization->scale) != bits(b.quantization->scale) ||
         a.quantization->zero_point != b.quantization->zero_point ||
         a.quantization->scheme != b.quantization->scheme || a.quantization->axis != b.quantization->axis))
      return "quantized otherwise";
    if (a.tensor.has_data() && a.tensor.size_bytes() <= kMostBytes &&
        bytes_of(a.tensor) != bytes_of(b.tensor))
      return "other elements";
    return nullptr;
  }

  std::vector<std::pair<Value, Value>> pairs_;
  std::unordered_map<std::uint64_t, std::uint64_t> met_;
};

}  // namespace ballast::fuzzing
