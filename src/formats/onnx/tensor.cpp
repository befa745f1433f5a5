// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/tensor.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "ballast/error.h"
#include "ballast/shape.h"
#include "base/fail.h"
#include "formats/onnx/fields.h"
#include "tensor/describe.h"

namespace ballast::onnx_file {
namespace {

namespace proto = tensor_proto;

constexpr std::array<ElementType, 26> kTypes = {{
    {1, "FLOAT", DType::f32, proto::float_data, 4},
    {2, "UINT8", DType::u8, proto::int32_data, 1},
    {3, "INT8", DType::i8, proto::int32_data, 1},
    {4, "UINT16", DType::u16, proto::int32_data, 2},
    {5, "INT16", DType::i16, proto::int32_data, 2},
    {6, "INT32", DType::i32, proto::int32_data, 4},
    {7, "INT64", DType::i64, proto::int64_data, 8},
    {8, "STRING", std::nullopt, proto::string_data, 0},
    {9, "BOOL", DType::boolean, proto::int32_data, 1},
    {10, "FLOAT16", DType::f16, proto::int32_data, 2},
    {11, "DOUBLE", DType::f64, proto::double_data, 8},
    {12, "UINT32", DType::u32, proto::uint64_data, 4},
    {13, "UINT64", DType::u64, proto::uint64_data, 8},
    {14, "COMPLEX64", DType::c64, proto::float_data, 4},
    {15, "COMPLEX128", DType::c128, proto::double_data, 8},
    {16, "BFLOAT16", DType::bf16, proto::int32_data, 2},
    {17, "FLOAT8E4M3FN", DType::f8_e4m3, proto::int32_data, 1},
    {18, "FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz, proto::int32_data, 1},
    {19, "FLOAT8E5M2", DType::f8_e5m2, proto::int32_data, 1},
    {20, "FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz, proto::int32_data, 1},
    {21, "UINT4", std::nullopt, proto::int32_data, 1},
    {22, "INT4", std::nullopt, proto::int32_data, 1},
    {23, "FLOAT4E2M1", DType::f4, proto::int32_data, 1},  // two in a byte, the first in the low bits
    {24, "FLOAT8E8M0", DType::f8_e8m0, proto::int32_data, 1},
    {25, "UINT2", std::nullopt, proto::int32_data, 1},
    {26, "INT2", std::nullopt, proto::int32_data, 1},
}};

constexpr std::uint64_t kInThisFile = 0;
constexpr std::uint64_t kInAnotherFile = 1;
constexpr std::uint64_t kMaxLocationBytes = 4096;  // Linux's longest path

bool is_numbers(std::uint32_t field) {
  return field == proto::float_data || field == proto::int32_data || field == proto::int64_data ||
         field == proto::double_data || field == proto::uint64_data || field == proto::string_data;
}

class TensorReader {
 public:
  TensorReader(WireReader& wire, Range message) : wire_(wire) { tensor_.message = message; }

  TensorDescription read() {
    Range rest = tensor_.message;
    Field field;
    while (wire_.next(rest, field)) take(field);
    settle_type();
    if (tensor_.skipped()) return std::move(tensor_);
    settle_size();
    settle_data();
    return std::move(tensor_);
  }

 private:
  void take(const Field& field) {
    if (is_numbers(field.number)) return take_numbers(field);
    switch (field.number) {
      case proto::dims:
        return take_dims(field);
      case proto::data_type:
        once(type_code_.has_value(), "data_type");
        type_code_ = wire_.number(field, "data_type");
        return;
      case proto::segment:
        fail(Errc::unsupported, wire_.where(), "a tensor in segments at offset {}", tensor_.message.begin);
      case proto::name:
        once(!tensor_.name.empty(), "name");
        tensor_.name = wire_.text(field, "a tensor's name", kMaxNameBytes);
        return;
      case proto::raw_data:
        once(has_raw_, "raw_data");
        tensor_.raw = wire_.message(field, "raw_data");
        has_raw_ = true;
        return;
      case proto::external_data:
        return take_entry(wire_.message(field, "external_data"));
      case proto::data_location:
        location_ = wire_.number(field, "data_location");
        return;
      default:
        return;  // documentation, metadata, what newer versions add
    }
  }

  // Two of them: readers that take the first and readers that take the last would see two different files.
  void once(bool was_there, std::string_view what) const {
    if (was_there) fail(Errc::bad_onnx, where(), "two fields {}", what);
  }

  void take_dims(const Field& field) {
    if (field.wire == Wire::varint) return add_dim(field.value);
    for (Range packed = wire_.message(field, "dims"); !packed.empty();) add_dim(wire_.take_varint(packed));
  }

  void add_dim(std::uint64_t value) {
    const auto dim = static_cast<std::int64_t>(value);
    if (dim < 0) fail(Errc::size_overflow, where(), "a dimension of {}", dim);
    if (tensor_.shape.size() == kMaxRank) fail(Errc::too_many, where(), "more than {} dimensions", kMaxRank);
    tensor_.shape.push_back(dim);
  }

  void take_numbers(const Field& field) {
    if (numbers_field_ != 0 && numbers_field_ != field.number)
      fail(Errc::bad_onnx, where(), "data in two fields, {} and {}", numbers_field_, field.number);
    const bool is_float = field.number == proto::float_data;
    const bool is_double = field.number == proto::double_data;
    const bool is_text = field.number == proto::string_data;
    const Wire lone = is_float ? Wire::fixed32 : is_double ? Wire::fixed64 : Wire::varint;
    if (field.wire != Wire::bytes && (is_text || field.wire != lone))
      fail(Errc::bad_onnx, where(), "data at offset {} has wire type {}", field.at,
           static_cast<unsigned>(field.wire));
    numbers_field_ = field.number;
    run_ = field.range;
    ++runs_;
  }

  void take_entry(Range rest) {
    std::string key;
    std::string value;
    Field field;
    while (wire_.next(rest, field)) {
      if (field.number == entry_proto::key) key = wire_.text(field, "a key of external_data", kMaxNameBytes);
      if (field.number == entry_proto::value)
        value = wire_.text(field, "a value of external_data", kMaxNameBytes);
    }
    ExternalPlace& place = tensor_.external;
    if (key == "location") {
      once(!place.location.empty(), "location");
      if (value.size() > kMaxLocationBytes)
        fail(Errc::path_escape, where(), "a location of {} bytes", value.size());
      place.location = std::move(value);
    } else if (key == "offset") {
      place.offset = number_of(value, key);
    } else if (key == "length") {
      place.length = number_of(value, key);
    } else if (key == "checksum") {
      place.checksum = std::move(value);
    }
  }

  std::uint64_t number_of(const std::string& text, const std::string& key) const {
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc::result_out_of_range)
      fail(Errc::size_overflow, where(), "{} {} does not fit into 64 bits", key, display(text));
    if (problem != std::errc() || end != text.data() + text.size())
      fail(Errc::bad_onnx, where(), "{} {} is no number", key, quoted(text));
    return number;
  }

  void settle_type() {
    if (tensor_.name.find('\0') != std::string::npos)
      fail(Errc::bad_name, wire_.where(), "a tensor is called {}", quoted(tensor_.name));
    const std::uint64_t code = type_code_.value_or(0);
    tensor_.type = element_type(code);
    if (tensor_.type == nullptr) fail(Errc::bad_dtype, where(), "no data type {} is known", code);
    if (!tensor_.type->dtype) tensor_.why_skipped = tensor_.type->name;
  }

  void settle_size() {
    const auto bits = try_bits(*tensor_.type->dtype, tensor_.shape);
    if (!bits)
      fail(Errc::size_overflow, where(), "the size of {} does not fit into 64 bits",
           to_string(ShapeView(tensor_.shape)));
    tensor_.bytes = *bits / 8;
    if (*bits % 8 != 0) tensor_.why_skipped = fmt::format("{} that end inside a byte", tensor_.type->name);
  }

  void settle_data() {
    if (tensor_.skipped()) return;
    if (location_ != kInThisFile && location_ != kInAnotherFile)
      fail(Errc::bad_onnx, where(), "data_location {}", location_);
    const bool is_external = location_ == kInAnotherFile;
    if (is_external + has_raw_ + (runs_ > 0) > 1)
      fail(Errc::bad_onnx, where(), "data in two places (raw, in numbers, in another file)");
    if (is_external) {
      if (tensor_.external.location.empty())
        fail(Errc::bad_onnx, where(), "is in another file, and no location says which");
      tensor_.data = DataIn::external;
    } else if (runs_ > 0) {
      settle_numbers();
    } else {
      if (tensor_.raw.size() != tensor_.bytes) {
        fail(Errc::size_mismatch, where(), "{} {} needs {} bytes, {} are there",
             info(*tensor_.type->dtype).code, to_string(ShapeView(tensor_.shape)), tensor_.bytes,
             tensor_.raw.size());
      }
      tensor_.data = tensor_.bytes == 0 ? DataIn::nothing : DataIn::raw;
    }
  }

  void settle_numbers() {
    if (numbers_field_ != tensor_.type->field)
      fail(Errc::bad_onnx, where(), "{} does not lie in field {} but in {}", tensor_.type->name,
           numbers_field_, tensor_.type->field);
    check_numbers(wire_, tensor_);
    const bool lies_as_raw = numbers_field_ == proto::float_data || numbers_field_ == proto::double_data;
    tensor_.data = tensor_.bytes == 0 ? DataIn::nothing : DataIn::numbers;
    if (tensor_.bytes == 0 || runs_ > 1 || !lies_as_raw) return;
    tensor_.data = DataIn::raw;
    tensor_.raw = run_;
  }

  [[nodiscard]] std::string where() const {
    return wire_.where() + (tensor_.name.empty()
                                ? fmt::format(": the tensor at offset {}", tensor_.message.begin)
                                : ": tensor " + quoted(tensor_.name));
  }

  WireReader& wire_;
  TensorDescription tensor_;
  std::optional<std::uint64_t> type_code_;
  bool has_raw_ = false;
  std::uint64_t location_ = kInThisFile;
  std::uint32_t numbers_field_ = 0;
  std::uint64_t runs_ = 0;  // fields with numbers in them
  Range run_;               // the last of them
};

}  // namespace

const ElementType* element_type(std::uint64_t code) noexcept {
  return code >= 1 && code <= kTypes.size() ? &kTypes[static_cast<std::size_t>(code - 1)] : nullptr;
}

std::string type_text(std::uint64_t code) {
  const ElementType* type = element_type(code);
  if (type == nullptr) return fmt::format("type {}", code);
  return std::string(type->dtype ? info(*type->dtype).code : type->name);
}

TensorDescription read_tensor(WireReader& wire, Range message) {
  return TensorReader(wire, message).read();
}

}  // namespace ballast::onnx_file
