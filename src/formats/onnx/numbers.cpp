// SPDX-License-Identifier: Apache-2.0
// Elements in the typed fields of a TensorProto, instead of raw bytes. Each field is a list of numbers,
// packed (one field with all of them), one field a number, or any mix of the two: readers must take them all.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ballast/error.h"
#include "ballast/shape.h"
#include "base/fail.h"
#include "base/file.h"
#include "formats/onnx/fields.h"
#include "formats/onnx/tensor.h"

namespace ballast::onnx_file {
namespace {

bool is_fixed(std::uint32_t field) {
  return field == tensor_proto::float_data || field == tensor_proto::double_data;
}

struct Limits {
  std::int64_t least;
  std::int64_t most;
};

template <class T>
constexpr Limits limits_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

// What int32_data may hold: values of small integers, bits of small floats.
Limits int32_limits(DType dtype) {
  if (dtype == DType::boolean) return {0, 1};
  if (dtype == DType::i8) return limits_of<std::int8_t>();
  if (dtype == DType::i16) return limits_of<std::int16_t>();
  if (dtype == DType::i32) return limits_of<std::int32_t>();
  return info(dtype).bits == 16 ? limits_of<std::uint16_t>() : limits_of<std::uint8_t>();
}

// Calls `runs(range)` for packed bytes and `one(value)` for every other number. Fields of a fixed size are
// runs too.
template <class Runs, class One>
void for_each_number(WireReader& wire, const TensorDescription& tensor, Runs&& runs, One&& one) {
  Range rest = tensor.message;
  Field field;
  while (wire.next(rest, field)) {
    if (field.number != tensor.type->field) continue;
    if (is_fixed(tensor.type->field)) {
      runs(field.range);
    } else if (field.wire == Wire::varint) {
      one(field.value);
    } else {
      for (Range packed = field.range; !packed.empty();) one(wire.take_varint(packed));
    }
  }
}

}  // namespace

void check_numbers(WireReader& wire, const TensorDescription& tensor) {
  const std::uint64_t unit = tensor.type->unit;
  const DType dtype = *tensor.type->dtype;
  const bool in_int32 = tensor.type->field == tensor_proto::int32_data;
  const Limits limits = int32_limits(dtype);
  std::uint64_t count = 0;
  const auto refuse = [&](auto value) {
    fail(Errc::bad_onnx, wire.where(), "tensor {}: element {} is {}, which {} cannot hold",
         quoted(tensor.name), count, value, info(dtype).code);
  };
  for_each_number(
      wire, tensor,
      [&](Range run) {
        if (run.size() % unit != 0)
          fail(Errc::bad_onnx, wire.where(), "tensor {}: {} bytes of packed numbers of {} bytes",
               quoted(tensor.name), run.size(), unit);
        count += run.size() / unit;
      },
      [&](std::uint64_t value) {
        const auto small = static_cast<std::int64_t>(static_cast<std::int32_t>(value));  // as protobuf does
        if (in_int32 && (small < limits.least || small > limits.most)) refuse(small);
        if (dtype == DType::u32 && value > std::numeric_limits<std::uint32_t>::max()) refuse(value);
        ++count;
      });
  if (count == tensor.bytes / unit) return;
  fail(Errc::size_mismatch, wire.where(), "tensor {}: {} {} needs {} numbers, {} are there",
       quoted(tensor.name), info(dtype).code, to_string(ShapeView(tensor.shape)), tensor.bytes / unit, count);
}

namespace {

// Fills `out`, whose size is the tensor's, from its int32_data, float_data, ….
void decode_numbers(const ByteSource& source, const TensorDescription& tensor, std::span<std::byte> out) {
  const std::size_t unit = tensor.type->unit;
  std::size_t at = 0;
  // Counted when the file was opened: if there are more or fewer now, it is another file.
  const auto room = [&](std::uint64_t size) {
    if (size > out.size() - at) fail(Errc::file_changed, source.where(), "was written to while it was read");
    at += static_cast<std::size_t>(size);
    return out.subspan(at - static_cast<std::size_t>(size), static_cast<std::size_t>(size));
  };
  WireReader wire(source);
  for_each_number(
      wire, tensor, [&](Range run) { source.read(run.begin, room(run.size())); },
      [&](std::uint64_t value) { std::memcpy(room(unit).data(), &value, unit); });
  if (at != out.size()) fail(Errc::file_changed, source.where(), "was written to while it was read");
  source.check_unchanged();
}

}  // namespace

std::shared_ptr<const Storage> storage_of(const ByteSource& source, const TensorDescription& tensor) {
  if (tensor.data == DataIn::numbers) {
    return Storage::deferred(tensor.bytes,
                             [source = source.shared_from_this(), tensor](std::span<std::byte> out) {
                               decode_numbers(*source, tensor, out);
                             });
  }
  const std::uint64_t item = std::max<std::uint64_t>(info(*tensor.type->dtype).bits / 8, 1);
  return elements_of(source, tensor.raw.begin, tensor.raw.size(), item);
}

}  // namespace ballast::onnx_file
