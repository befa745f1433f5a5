// SPDX-License-Identifier: Apache-2.0
// Cases written by make_cases.py, as C++ sees them; casekit.py describes the bundle.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ballast/ops.h"
#include "ballast/safetensors.h"

namespace ballast::ops_tests {

using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;

struct Case {
  Tensors inputs;  // undefined where there is none
  Json args;
  Tensors expected;
  bool exact;
};

inline Dims dims_of(const Json& list) {
  return Dims(list.get<std::vector<std::int64_t>>());
}

inline double number_of(const Json& value) {
  if (value.is_string()) return value == "inf" ? INFINITY : -INFINITY;
  return value.get<double>();
}

inline Tensor viewed(Tensor x, const Json& steps) {
  for (const Json& step : steps) {
    const std::string kind = step[0];
    if (kind == "permute") {
      x = x.permute(dims_of(step[1]));
    } else if (kind == "expand") {
      x = x.expand(dims_of(step[1]));
    } else {
      std::vector<Index> index(x.rank(), Slice{});
      const bool flip = kind == "flip";
      index[step[1].get<std::size_t>()] =
          flip ? Slice{{}, {}, -1} : Slice{step[2].get<std::int64_t>(), {}, step[3].get<std::int64_t>()};
      x = x.index(index);
    }
  }
  return x;
}

inline PadMode pad_mode(const Json& args) {
  static const std::map<std::string, PadMode> modes = {{"constant", PadMode::constant},
                                                       {"reflect", PadMode::reflect},
                                                       {"replicate", PadMode::replicate},
                                                       {"circular", PadMode::circular}};
  return modes.at(args["mode"]);
}

/// Where torch wrote its cases; the committed ones where there is no torch.
inline std::string bundle_path(const std::string& room = "ops") {
  const std::string made = std::string(BALLAST_TEST_OUTPUT) + "/" + room + "_cases.safetensors";
  return std::filesystem::exists(made) ? made
                                       : std::string(BALLAST_TEST_DATA) + "/" + room + "/cases.safetensors";
}

/// The same view, its first byte `offset` bytes behind an address that suits every type, between bytes that
/// are NaN in every floating dtype: whoever reads beyond the elements computes with NaN.
inline Tensor at_offset(const Tensor& x, std::size_t offset) {
  if (!x.defined() || x.numel() == 0) return x;
  constexpr std::size_t kGuard = 64;
  const std::int64_t size = info(x.dtype()).bits / 8;
  std::int64_t low = 0;
  std::int64_t high = size;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    const std::int64_t reach = (x.shape()[i] - 1) * x.strides()[i] * size;
    (reach < 0 ? low : high) += reach;
  }
  const auto length = static_cast<std::size_t>(high - low);
  auto memory = Storage::heap(length + offset + 2 * kGuard);
  std::memset(memory->mutable_data(), 0xFF, memory->size());
  std::memcpy(memory->mutable_data() + kGuard + offset, x.data() + low, length);
  const auto first = static_cast<std::int64_t>(kGuard + offset) - low;
  return {x.dtype(), x.shape(), x.strides(), std::move(memory), static_cast<std::uint64_t>(first) * 8};
}

inline std::vector<Case> cases_of(const Checkpoint& bundle, const std::string& op) {
  std::vector<Case> cases;
  const auto found = bundle.metadata->find(op);
  if (found == bundle.metadata->end()) return cases;
  for (const Json& entry : Json::parse(found->second)) {
    Case one{{}, entry["args"], {}, entry["exact"].get<bool>()};
    for (const Json& input : entry["in"]) {
      one.inputs.emplace_back();
      if (input.is_null()) continue;
      one.inputs.back() = viewed(bundle.tensor(input["t"].get<std::string>()), input["view"]);
      if (input.contains("offset"))
        one.inputs.back() = at_offset(one.inputs.back(), input["offset"].get<std::size_t>());
    }
    for (const Json& output : entry["out"]) one.expected.push_back(bundle.tensor(output.get<std::string>()));
    cases.push_back(std::move(one));
  }
  return cases;
}

/// The offsets 0 to 15 a case is tried at: all of them where there are few cases, else every fourth, all in
/// four cases.
inline std::vector<std::size_t> offsets_for(std::size_t index, std::size_t cases) {
  const std::size_t step = cases < 16 ? 1 : 4;
  std::vector<std::size_t> offsets;
  for (std::size_t offset = index % step; offset < 16; offset += step) offsets.push_back(offset);
  return offsets;
}

/// A case with its inputs at bytes `offset`, `offset` + 1, … modulo 16.
inline Case at_offset(Case one, std::size_t offset) {
  for (Tensor& input : one.inputs) input = at_offset(input, offset++ % 16);
  return one;
}

/// Norm-wise relative error of the finite values, where a norm counts as `least` at least; infinite when NaN
/// or infinities are at other places, or shapes or dtypes differ.
inline double error_of(const Tensor& got, const Tensor& expected, double least = 1e-30) {
  if (!(got.shape() == expected.shape()) || got.dtype() != expected.dtype()) return INFINITY;
  const Tensor a = got.to(DType::f64).clone();  // a view may lie anywhere
  const Tensor b = expected.to(DType::f64).clone();
  double distance = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.span<double>()[static_cast<std::size_t>(i)];
    const double y = b.span<double>()[static_cast<std::size_t>(i)];
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (x != y) return INFINITY;
      continue;
    }
    distance += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(distance) / std::max(std::sqrt(norm), least);
}

/// Rounding the result once to 16 bits may go either way where F32 results differ in their last bits.
inline double tolerance(DType dtype) {
  if (dtype == DType::f16) return 1e-3;
  if (dtype == DType::bf16) return 8e-3;
  return dtype == DType::f64 ? 1e-12 : 1e-5;
}

using Run = std::function<Tensors(const Tensors& in, const Json& args)>;

template <class F>
Run unary(F function) {
  return [function](const Tensors& in, const Json&) -> Tensors { return {function(in[0])}; };
}

inline std::int64_t integer(const Json& args, const char* name) {
  return args[name].get<std::int64_t>();
}

/// Every operation, called as a case says.
[[nodiscard]] const std::map<std::string, Run>& operations();
[[nodiscard]] std::map<std::string, Run> layer_operations();
[[nodiscard]] std::map<std::string, Run> more_operations();
[[nodiscard]] std::map<std::string, Run> loss_operations();
[[nodiscard]] std::map<std::string, Run> box_operations();

}  // namespace ballast::ops_tests
