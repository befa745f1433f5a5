// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/uses.h"

#include <algorithm>
#include <array>

namespace ballast::onnx_file {
namespace {

// Inputs of operators that say how they work instead of being computed with: bit i is input i.
struct Settings {
  std::string_view op_type;
  std::uint32_t inputs;
};

constexpr std::array kSettings = {
    Settings{"AffineGrid", 0b10},     Settings{"CenterCropPad", 0b10},
    Settings{"Clip", 0b110},          Settings{"Col2Im", 0b110},
    Settings{"ConstantOfShape", 0b1}, Settings{"CumSum", 0b10},
    Settings{"DFT", 0b110},           Settings{"Dropout", 0b110},
    Settings{"Expand", 0b10},         Settings{"If", 0b1},
    Settings{"Loop", 0b11},           Settings{"MaxUnpool", 0b100},
    Settings{"OneHot", 0b110},        Settings{"Pad", 0b1110},
    Settings{"Range", 0b111},         Settings{"ReduceL1", 0b10},
    Settings{"ReduceL2", 0b10},       Settings{"ReduceLogSum", 0b10},
    Settings{"ReduceMax", 0b10},      Settings{"ReduceLogSumExp", 0b10},
    Settings{"ReduceMean", 0b10},     Settings{"ReduceMin", 0b10},
    Settings{"ReduceProd", 0b10},     Settings{"ReduceSum", 0b10},
    Settings{"Reshape", 0b10},        Settings{"ReduceSumSquare", 0b10},
    Settings{"Resize", 0b1110},       Settings{"SequenceAt", 0b10},
    Settings{"Slice", 0b11110},       Settings{"Split", 0b10},
    Settings{"Squeeze", 0b10},        Settings{"SplitToSequence", 0b10},
    Settings{"Tile", 0b110},          Settings{"TopK", 0b10},
    Settings{"Trilu", 0b10},          Settings{"Unsqueeze", 0b10},
    Settings{"Upsample", 0b10},       Settings{"NonMaxSuppression", 0b11100},
};

std::uint32_t settings_of(std::string_view domain, std::string_view op_type) {
  if (!domain.empty()) return 0;
  const auto* found = std::find_if(kSettings.begin(), kSettings.end(),
                                   [&](const Settings& one) { return one.op_type == op_type; });
  return found == kSettings.end() ? 0 : found->inputs;
}

// What exporters call them: "/layer/Constant_3_output_0" (PyTorch), "layer/constant_1" (Ballast),
// "Constant_7".
bool is_called_constant(std::string_view name) {
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (!name.starts_with("constant") && !name.starts_with("Constant")) return false;
  name.remove_prefix(std::string_view("constant").size());
  return name.empty() || name.front() == '_';
}

// Indices, sizes and masks. Whole numbers of a byte may be quantized weights.
bool counts(DType dtype) {
  return dtype == DType::boolean || dtype == DType::i64 || dtype == DType::i32;
}

}  // namespace

void Uses::add(const std::string& full_name, const std::string& name, const TensorDescription& tensor,
               Origin origin) {
  if (tensor.skipped()) return;
  const bool whole = counts(*tensor.type->dtype);
  const bool one = std::all_of(tensor.shape.begin(), tensor.shape.end(), [](auto dim) { return dim == 1; });
  const bool small = one || tensor.bytes <= 128;
  // Some exporters keep all weights in Constant nodes: what is large and no whole number is computed with.
  const bool by_itself = (origin == Origin::constant && (whole || one)) || (whole && one) ||
                         (is_called_constant(name) && (whole || small));
  candidates_.push_back({full_name, name, by_itself});
  uses_.try_emplace(name, std::uint8_t{0});
}

void Uses::take(std::string_view domain, std::string_view op_type, std::uint64_t input,
                std::string_view name) {
  const auto found = uses_.find(name);
  if (found == uses_.end()) return;
  const bool is_setting = input < 32 && (settings_of(domain, op_type) >> input & 1U) != 0;
  found->second = static_cast<std::uint8_t>(found->second | (is_setting ? kSetting : kData));
}

std::vector<std::string> Uses::constants() const {
  std::vector<std::string> names;
  for (const Candidate& one : candidates_)
    if (one.by_itself || uses_.find(one.name)->second == kSetting) names.push_back(one.full_name);
  return names;
}

}  // namespace ballast::onnx_file
