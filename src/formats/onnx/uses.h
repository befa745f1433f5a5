// SPDX-License-Identifier: Apache-2.0
// Which tensors of a model are weights, and which are constants that an exporter wrote for the operators: the
// shape of a Reshape, the axes of a ReduceSum, the 2 of x * 2. The file does not say; the nodes that take
// them, and how they are called, do.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "formats/onnx/model.h"

namespace ballast::onnx_file {

class Uses {
 public:
  /// A tensor under its name in the whole file and under the one its graph's nodes know.
  void add(const std::string& full_name, const std::string& name, const TensorDescription& tensor,
           Origin origin);
  /// A node takes `name` as its input of this number. Names that no tensor has are passed over.
  void take(std::string_view domain, std::string_view op_type, std::uint64_t input, std::string_view name);

  /// Names in the whole file, in its order.
  [[nodiscard]] std::vector<std::string> constants() const;

 private:
  enum Bits : std::uint8_t { kSetting = 1, kData = 2 };

  struct Candidate {
    std::string full_name;
    std::string name;
    bool by_itself = false;  // a constant wherever it is used
  };

  std::vector<Candidate> candidates_;
  NameMap<std::uint8_t> uses_;  // by the graph's name: graphs that share one are taken together
};

}  // namespace ballast::onnx_file
