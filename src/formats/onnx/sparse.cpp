// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: read, and as the dense ones they stand for, computed when somebody reads them.
#include "formats/onnx/sparse.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ballast/error.h"
#include "ballast/shape.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "formats/onnx/fields.h"
#include "tensor/describe.h"

namespace ballast::onnx_file {
namespace {

constexpr std::size_t kRows = 4096;

struct Parts {
  std::shared_ptr<const Storage> values;
  std::shared_ptr<const Storage> indices;
  std::vector<std::int64_t> shape;
  std::size_t item;  // bytes an element has
  std::size_t
      per_value;  // numbers an index has: 1, a position in the row-major form, or one for each dimension
  std::uint64_t elements;  // of the dense tensor
  std::string where;
};

std::uint64_t position_of(const Parts& parts, std::span<const std::int64_t> index) {
  std::uint64_t position = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto dim = parts.per_value == 1 ? static_cast<std::int64_t>(parts.elements) : parts.shape[i];
    if (index[i] < 0 || index[i] >= dim)
      fail(Errc::offset_out_of_range, parts.where, "sparse index {} of a dimension of {}", index[i], dim);
    position = position * static_cast<std::uint64_t>(dim) + static_cast<std::uint64_t>(index[i]);
  }
  return position;
}

// Before anybody asks for the values, a piece at a time.
void check_indices(const Parts& parts) {
  const std::size_t row = parts.per_value * 8;
  std::vector<std::int64_t> piece(parts.per_value * kRows);
  std::optional<std::uint64_t> last;
  for (std::uint64_t at = 0; at < parts.indices->size();) {
    const std::uint64_t size = std::min<std::uint64_t>(row * kRows, parts.indices->size() - at);
    parts.indices->read(at, std::as_writable_bytes(std::span(piece)).first(static_cast<std::size_t>(size)));
    for (std::uint64_t i = 0; i < size / row; ++i) {
      const std::uint64_t position =
          position_of(parts, std::span(piece).subspan(i * parts.per_value, parts.per_value));
      if (last && position <= *last)
        fail(Errc::bad_onnx, parts.where, "sparse indices that do not ascend: {} behind {}", position, *last);
      last = position;
    }
    at += size;
  }
}

void fill(const Parts& parts, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  const std::uint64_t count = parts.values->size() / parts.item;
  const std::byte* values = count == 0 ? nullptr : parts.values->data();
  const std::byte* indices = count == 0 ? nullptr : parts.indices->data();
  std::vector<std::int64_t> index(parts.per_value);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(index.data(), indices + i * parts.per_value * 8, parts.per_value * 8);
    std::memcpy(out.data() + position_of(parts, index) * parts.item, values + i * parts.item, parts.item);
  }
}

}  // namespace

// The shape of the whole, and the two tensors with its values and their places.
SparseDescription read_sparse(WireReader& wire, Range message) {
  SparseDescription sparse;
  sparse.message = message;
  const auto add_dim = [&](std::uint64_t value) {
    const auto dim = static_cast<std::int64_t>(value);
    if (dim < 0) fail(Errc::size_overflow, wire.where(), "a sparse tensor with a dimension of {}", dim);
    if (sparse.shape.size() == kMaxRank)
      fail(Errc::too_many, wire.where(), "a sparse tensor of more than {} dimensions", kMaxRank);
    sparse.shape.push_back(dim);
  };
  Field field;
  for (Range rest = message; wire.next(rest, field);) {
    const bool again = (field.number == sparse_proto::values && sparse.values.type != nullptr) ||
                       (field.number == sparse_proto::indices && sparse.indices.type != nullptr);
    if (again)
      fail(Errc::bad_onnx, wire.where(), "a sparse tensor at offset {} has two of a part", message.begin);
    if (field.number == sparse_proto::values)
      sparse.values = read_tensor(wire, wire.message(field, "values"));
    else if (field.number == sparse_proto::indices)
      sparse.indices = read_tensor(wire, wire.message(field, "indices"));
    else if (field.number == sparse_proto::dims && field.wire == Wire::varint)
      add_dim(field.value);
    else if (field.number == sparse_proto::dims)
      for (Range packed = wire.message(field, "dims"); !packed.empty();) add_dim(wire.take_varint(packed));
  }
  if (sparse.values.type == nullptr || sparse.indices.type == nullptr)
    fail(Errc::bad_onnx, wire.where(), "a sparse tensor at offset {} without {}", message.begin,
         sparse.values.type == nullptr ? "values" : "indices");
  return sparse;
}

std::uint64_t dense_bytes(const SparseDescription& sparse, const std::string& where) {
  const auto bits = try_bits(*sparse.values.type->dtype, sparse.shape);
  if (!bits)
    fail(Errc::size_overflow, where, "tensor {}: the size of {} does not fit into 64 bits",
         quoted(sparse.values.name), to_string(ShapeView(sparse.shape)));
  if (info(*sparse.values.type->dtype).bits < 8)
    fail(Errc::unsupported, where, "tensor {}: sparse {}", quoted(sparse.values.name),
         sparse.values.type->name);
  return *bits / 8;
}

std::shared_ptr<const Storage> dense_storage(const SparseDescription& sparse,
                                             std::shared_ptr<const Storage> values,
                                             std::shared_ptr<const Storage> indices,
                                             const std::string& where) {
  const std::string place = where + ": tensor " + quoted(sparse.values.name);
  const std::uint64_t bytes = dense_bytes(sparse, where);
  const auto& index_shape = sparse.indices.shape;
  const auto& value_shape = sparse.values.shape;
  const bool is_flat = index_shape.size() == 1;
  const bool agrees = value_shape.size() == 1 && !sparse.shape.empty() &&
                      (is_flat || index_shape.size() == 2) && index_shape[0] == value_shape[0] &&
                      (is_flat || index_shape[1] == static_cast<std::int64_t>(sparse.shape.size()));
  if (!agrees)
    fail(Errc::size_mismatch, place, "sparse values of shape {}, indices of shape {}, for a tensor of {}",
         to_string(ShapeView(value_shape)), to_string(ShapeView(index_shape)),
         to_string(ShapeView(sparse.shape)));
  if (sparse.indices.type->dtype != DType::i64)
    fail(Errc::bad_dtype, place, "sparse indices are {}, I64 is expected", sparse.indices.type->name);
  const std::size_t item = info(*sparse.values.type->dtype).bits / 8;
  Parts parts{.values = std::move(values),
              .indices = std::move(indices),
              .shape = sparse.shape,
              .item = item,
              .per_value = is_flat ? 1 : sparse.shape.size(),
              .elements = bytes / item,
              .where = place};
  check_indices(parts);
  const std::vector<std::shared_ptr<const Storage>> sources = {parts.values, parts.indices};
  return Storage::deferred(
      bytes, [parts = std::move(parts)](std::span<std::byte> out) { fill(parts, out); }, sources);
}

}  // namespace ballast::onnx_file
