// SPDX-License-Identifier: Apache-2.0
// Cases written by make_cases.py, as C++ sees them; casekit.py describes the bundle.
#pragma once

#include <cmath>
#include <cstdint>
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

inline std::vector<Case> cases_of(const Checkpoint& bundle, const std::string& op) {
  std::vector<Case> cases;
  const auto found = bundle.metadata->find(op);
  if (found == bundle.metadata->end()) return cases;
  for (const Json& entry : Json::parse(found->second)) {
    Case one{{}, entry["args"], {}, entry["exact"].get<bool>()};
    for (const Json& input : entry["in"]) {
      one.inputs.push_back(
          input.is_null() ? Tensor() : viewed(bundle.tensor(input["t"].get<std::string>()), input["view"]));
    }
    for (const Json& output : entry["out"]) one.expected.push_back(bundle.tensor(output.get<std::string>()));
    cases.push_back(std::move(one));
  }
  return cases;
}

/// Norm-wise relative error of the finite values; infinite when NaN or infinities are at other places, or
/// shapes or dtypes differ.
inline double error_of(const Tensor& got, const Tensor& expected) {
  if (!(got.shape() == expected.shape()) || got.dtype() != expected.dtype()) return INFINITY;
  const Tensor a = got.to(DType::f64).contiguous();
  const Tensor b = expected.to(DType::f64).contiguous();
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
  return std::sqrt(distance) / std::max(std::sqrt(norm), 1e-30);
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

}  // namespace ballast::ops_tests
