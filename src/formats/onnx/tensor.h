// SPDX-License-Identifier: Apache-2.0
// TensorProto: what a tensor of an ONNX file says about itself, checked, and its bytes as a Storage.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/dtype.h"
#include "formats/onnx/wire.h"

namespace ballast::onnx_file {

inline constexpr std::size_t kMaxRank = 64;
inline constexpr std::uint64_t kMaxNameBytes = 65536;

/// A row of onnx.proto's DataType.
struct ElementType {
  std::uint64_t code;
  std::string_view name;
  std::optional<DType> dtype;  ///< none: Ballast has no such dtype
  std::uint32_t field;         ///< of TensorProto, where its numbers lie when they are not raw
  std::uint8_t unit;           ///< bytes a number of that field becomes
};

/// Null when there is no such type.
[[nodiscard]] const ElementType* element_type(std::uint64_t code) noexcept;
/// "F32"; ONNX's own name ("STRING") for what is no dtype of Ballast; "type 99".
[[nodiscard]] std::string type_text(std::uint64_t code);

/// Entries of external_data.
struct ExternalPlace {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  std::string checksum;
};

enum class DataIn : std::uint8_t {
  nothing,   ///< the tensor is empty
  raw,       ///< bytes of the file, as they are
  numbers,   ///< int32_data and the like: to be decoded
  external,  ///< another file
};

struct TensorDescription {
  std::string name;
  const ElementType* type = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  ///< 0 when skipped()
  DataIn data = DataIn::nothing;
  Range message;
  Range raw;
  ExternalPlace external;
  std::string why_skipped;  ///< not empty: a tensor Ballast has no dtype for; nothing but its name is known

  [[nodiscard]] bool skipped() const noexcept { return !why_skipped.empty(); }
};

/// Everything but what lies in other files is checked. Errc::bad_onnx, bad_dtype, bad_name, size_mismatch,
/// size_overflow, too_many, unsupported.
[[nodiscard]] TensorDescription read_tensor(WireReader& wire, Range message);

/// Of a tensor that is neither skipped nor external.
[[nodiscard]] std::shared_ptr<const Storage> storage_of(const ByteSource& source,
                                                        const TensorDescription& tensor);

/// That the numbers are as many as the shape needs, and fit their dtype: Errc::size_mismatch, bad_onnx.
void check_numbers(WireReader& wire, const TensorDescription& tensor);

}  // namespace ballast::onnx_file
