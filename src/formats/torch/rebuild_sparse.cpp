// SPDX-License-Identifier: Apache-2.0
// Sparse tensors: the parts as they are stored, and the dense tensor they stand for, computed when it is
// read. Indices are checked before a checkpoint is handed out.
#include <algorithm>
#include <cstring>
#include <functional>

#include "ballast/error.h"
#include "base/checked.h"
#include "formats/torch/objects.h"
#include "tensor/half.h"

namespace ballast::torch {
namespace {

constexpr std::uint64_t kWorkingCopies = 4;

struct Parts {
  std::string where;  // for refusals
  bool is_coo = true;
  bool by_column = false;  // csc, bsc
  Tensor indices;          // coo: [sparse dims, count]
  Tensor compressed;       // the others: one pointer a row (or block row), and one more
  Tensor plain;            // the others: the column of each value (or block)
  Tensor values;           // [count, …]
  Shape shape;
  std::int64_t block_rows = 1;
  std::int64_t block_columns = 1;
};

std::vector<std::int64_t> numbers_of(const Tensor& tensor) {
  const Tensor whole = tensor.to(DType::i64).contiguous();
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(whole.numel()));
  whole.read(0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::uint64_t index_count(const Parts& parts) {
  const auto count = [](const Tensor& tensor) {
    return tensor.defined() ? static_cast<std::uint64_t>(tensor.numel()) : 0;
  };
  return count(parts.indices) + count(parts.compressed) + count(parts.plain);
}

void check_range(const Parts& parts, std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size)
    fail(Errc::offset_out_of_range, parts.where, "sparse index {} in a dimension of {}", index, size);
}

// Where each value goes: the element of the dense tensor its first number lands on, `run` numbers from there.
std::vector<std::int64_t> places_coo(const Parts& parts, std::int64_t run) {
  const auto indices = numbers_of(parts.indices);
  const auto dims = static_cast<std::size_t>(parts.indices.shape()[0]);
  const auto count = static_cast<std::size_t>(parts.indices.shape()[1]);
  std::vector<std::int64_t> places(count, 0);
  for (std::size_t dim = 0; dim < dims; ++dim) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t index = indices[dim * count + i];
      check_range(parts, index, parts.shape[dim]);
      places[i] = places[i] * parts.shape[dim] + index;
    }
  }
  for (std::int64_t& place : places) place *= run;
  return places;
}

// The same for rows of blocks; a block's rows are `shape[1]` apart.
std::vector<std::int64_t> places_compressed(const Parts& parts) {
  const auto pointers = numbers_of(parts.compressed);
  const auto plain = numbers_of(parts.plain);
  const auto count = static_cast<std::int64_t>(plain.size());
  const std::int64_t block_lines = parts.by_column ? parts.block_columns : parts.block_rows;
  const std::int64_t block_across = parts.by_column ? parts.block_rows : parts.block_columns;
  const std::int64_t across = parts.by_column ? parts.shape[0] : parts.shape[1];
  if (pointers.front() != 0 || pointers.back() != count) {
    fail(Errc::offset_out_of_range, parts.where, "row pointers from {} to {} for {} values", pointers.front(),
         pointers.back(), count);
  }
  std::vector<std::int64_t> places(plain.size());
  for (std::size_t line = 0; line + 1 < pointers.size(); ++line) {
    if (pointers[line + 1] < pointers[line] || pointers[line + 1] > count) {
      fail(Errc::offset_out_of_range, parts.where, "row pointer {} behind {}, {} values", pointers[line + 1],
           pointers[line], count);
    }
    for (std::int64_t i = pointers[line]; i < pointers[line + 1]; ++i) {
      const std::int64_t other = plain[static_cast<std::size_t>(i)];
      check_range(parts, other, across / block_across);
      const std::int64_t first = static_cast<std::int64_t>(line) * block_lines;
      const std::int64_t second = other * block_across;
      places[static_cast<std::size_t>(i)] =
          parts.by_column ? second * parts.shape[1] + first : first * parts.shape[1] + second;
    }
  }
  return places;
}

template <class T>
void add_numbers(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, to + at, sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    if constexpr (std::is_floating_point_v<T>)
      a += b;
    else
      a = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    std::memcpy(to + at, &a, sizeof a);
  }
}

// Rounded after each, as PyTorch does.
template <class T>
void add_halves(std::byte* to, const std::byte* from, std::size_t bytes, T (*rounded)(float)) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T a;
    T b;
    std::memcpy(&a, to + at, sizeof a);
    std::memcpy(&b, from + at, sizeof b);
    a = rounded(float_of(a) + float_of(b));
    std::memcpy(to + at, &a, sizeof a);
  }
}

// PyTorch adds a complex number times one, by the formula: of an infinite part, or one that is no number, the
// other is none afterwards.
template <class T>
void add_products(std::byte* to, const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at + 2 * sizeof(T) <= bytes; at += 2 * sizeof(T)) {
    T sum[2];
    T value[2];
    std::memcpy(sum, to + at, sizeof sum);
    std::memcpy(value, from + at, sizeof value);
    sum[0] += value[0] - value[1] * T{0};
    sum[1] += value[0] * T{0} + value[1];
    std::memcpy(to + at, sum, sizeof sum);
  }
}

// Values that fall on one place are added, as PyTorch does for tensors it calls uncoalesced.
void add(DType dtype, std::byte* to, const std::byte* from, std::size_t bytes) {
  switch (dtype) {
    case DType::f64:
    case DType::c128:
      return add_numbers<double>(to, from, bytes);
    case DType::f32:
    case DType::c64:
      return add_numbers<float>(to, from, bytes);
    case DType::f16:
      return add_halves<Half>(to, from, bytes, half_of);
    case DType::bf16:
      return add_halves<BFloat16>(to, from, bytes, bfloat16_of);
    case DType::i64:
    case DType::u64:
      return add_numbers<std::int64_t>(to, from, bytes);
    case DType::i32:
    case DType::u32:
      return add_numbers<std::int32_t>(to, from, bytes);
    case DType::i16:
    case DType::u16:
      return add_numbers<std::int16_t>(to, from, bytes);
    case DType::i8:
    case DType::u8:
      return add_numbers<std::int8_t>(to, from, bytes);
    case DType::boolean:
      for (std::size_t i = 0; i < bytes; ++i) to[i] |= from[i];
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

void fill_dense(const Parts& parts, std::span<std::byte> out) {
  const DType dtype = parts.values.dtype();
  std::memset(out.data(), 0, out.size());
  const std::size_t item = item_bytes(dtype);
  const auto count = static_cast<std::size_t>(parts.values.shape()[0]);
  const bool is_blocks = parts.values.rank() == 3 && !parts.is_coo;  // which PyTorch puts where they belong
  const auto put = [&](std::size_t to, const std::byte* from, std::size_t bytes) {
    if (dtype == DType::c64 && !is_blocks) return add_products<float>(out.data() + to, from, bytes);
    if (dtype == DType::c128 && !is_blocks) return add_products<double>(out.data() + to, from, bytes);
    add(dtype, out.data() + to, from, bytes);
  };
  std::vector<std::byte> values(static_cast<std::size_t>(parts.values.size_bytes()));
  parts.values.read(0, values);
  const std::size_t each = count == 0 ? 0 : values.size() / count;
  if (parts.is_coo) {
    const auto places = places_coo(parts, static_cast<std::int64_t>(each / item));
    for (std::size_t i = 0; i < count; ++i)
      put(static_cast<std::size_t>(places[i]) * item, values.data() + i * each, each);
    return;
  }
  const auto places = places_compressed(parts);
  const std::size_t line = static_cast<std::size_t>(parts.block_columns) * item;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::int64_t row = 0; row < parts.block_rows; ++row) {
      const auto to = static_cast<std::size_t>(places[i] + row * parts.shape[1]) * item;
      put(to, values.data() + i * each + static_cast<std::size_t>(row) * line, line);
    }
  }
}

Tensor need_tensor(Objects& objects, Ref value, const char* what, bool is_index) {
  if (as_kind(value, NodeKind::tensor) == nullptr) {
    objects.refuse(Errc::type_mismatch, "{} for the {} of a sparse tensor", objects.describe(value), what);
  }
  // Sparse tensors made of sparse tensors would be chains without an end.
  const TensorRecord& record = *value.node()->tensor;
  if (record.details != 0 && objects.tree().details[record.details - 1].sparse)
    objects.refuse(Errc::unsupported, "{} of a sparse tensor that are no plain tensor", what);
  Tensor tensor = Rebuild::value_of(objects, value);
  const DTypeKind kind = info(tensor.dtype()).kind;
  if (is_index && kind != DTypeKind::signed_integer && kind != DTypeKind::unsigned_integer) {
    objects.refuse(Errc::type_mismatch, "{} of {}", what, info(tensor.dtype()).code);
  }
  if (!tensor.has_data()) objects.refuse(Errc::unsupported, "a sparse tensor without data");
  return tensor;
}

Shape need_shape(Objects& objects, Ref value, DType dtype) {
  Shape shape;
  const auto sizes = objects.need_sequence(value, "sizes of a sparse tensor");
  if (sizes.size() > 64) objects.refuse(Errc::too_many, "a sparse tensor of {} dimensions", sizes.size());
  for (const Ref size : sizes) shape.push_back(objects.need_int(size, "a size"));
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t dim) { return dim < 0; })) {
    objects.refuse(Errc::shape_mismatch, "a sparse tensor of sizes {}", to_string(shape));
  }
  const auto count = try_count(shape, item_bytes(dtype) * 8);
  if (!count) objects.refuse(Errc::size_overflow, "a sparse tensor of sizes {}", to_string(shape));
  // Filling it takes the values, their places and, for 16-bit floats, the sums beside the result.
  objects.views().declare(static_cast<std::uint64_t>(*count) * item_bytes(dtype) * kWorkingCopies);
  return shape;
}

Parts coo_parts(Objects& objects, std::span<const Ref> args) {
  Parts parts;
  parts.indices = need_tensor(objects, args[0], "indices", true);
  parts.values = need_tensor(objects, args[1], "values", false);
  parts.shape = need_shape(objects, args[2], parts.values.dtype());
  const Shape& index_shape = parts.indices.shape();
  if (index_shape.size() != 2 || parts.values.rank() == 0 || index_shape[1] != parts.values.shape()[0]) {
    objects.refuse(Errc::size_mismatch, "sparse indices of shape {} for values of shape {}",
                   to_string(index_shape), to_string(parts.values.shape()));
  }
  // Values may be dense blocks: [count, dense dims…], the last dims of the tensor.
  const auto dense = static_cast<std::size_t>(index_shape[0]);
  const bool fits_shape =
      dense + parts.values.rank() - 1 == parts.shape.size() &&
      std::equal(parts.values.shape().begin() + 1, parts.values.shape().end(), parts.shape.begin() + dense);
  if (!fits_shape) {
    objects.refuse(Errc::size_mismatch, "{} sparse index rows and values of shape {} for sizes {}", dense,
                   to_string(parts.values.shape()), to_string(parts.shape));
  }
  return parts;
}

Parts compressed_parts(Objects& objects, std::span<const Ref> args, std::string_view layout) {
  if (args.size() < 4)
    objects.refuse(Errc::type_mismatch, "{} parts of a compressed sparse tensor, 4 are needed", args.size());
  Parts parts;
  parts.is_coo = false;
  parts.by_column = layout == "csc" || layout == "bsc";
  parts.compressed = need_tensor(objects, args[0], "row pointers", true);
  parts.plain = need_tensor(objects, args[1], "column indices", true);
  parts.values = need_tensor(objects, args[2], "values", false);
  parts.shape = need_shape(objects, args[3], parts.values.dtype());
  const bool blocks = layout == "bsr" || layout == "bsc";
  if (parts.compressed.rank() != 1 || parts.plain.rank() != 1 || parts.values.rank() != (blocks ? 3U : 1U) ||
      parts.shape.size() != 2) {
    objects.refuse(Errc::unsupported, "a batch of sparse matrices");
  }
  if (blocks) {
    parts.block_rows = parts.values.shape()[1];
    parts.block_columns = parts.values.shape()[2];
  }
  const std::int64_t lines = parts.by_column ? parts.shape[1] : parts.shape[0];
  const std::int64_t block = parts.by_column ? parts.block_columns : parts.block_rows;
  if (parts.block_rows < 1 || parts.block_columns < 1 || parts.shape[0] % parts.block_rows != 0 ||
      parts.shape[1] % parts.block_columns != 0 || parts.compressed.numel() != lines / block + 1 ||
      parts.plain.numel() != parts.values.shape()[0]) {
    objects.refuse(Errc::size_mismatch, "{} row pointers, {} columns and values of shape {} for sizes {}",
                   parts.compressed.numel(), parts.plain.numel(), to_string(parts.values.shape()),
                   to_string(parts.shape));
  }
  return parts;
}

// PyTorch's to_dense() goes by strides also where they mean nothing, in a dimension of 1: of others than the
// usual it makes other numbers, or writes beside the tensor.
bool has_usual_strides(const Tensor& values) {
  return values.numel() == 0 || values.strides() == contiguous_strides(values.shape());
}

}  // namespace

Ref Rebuild::sparse(Objects& objects, const Call& call, Role role) {
  static_cast<void>(role);  // (layout, parts) in both spellings
  objects.need_arguments(call, 2, 2);
  const auto named = as_constant(call.args[0], Role::layout);
  if (!named || !named->starts_with("torch.sparse_"))
    objects.refuse(Errc::unsupported, "{} for the layout of a sparse tensor", objects.describe(call.args[0]));
  const std::string_view layout = named->substr(std::string_view("torch.sparse_").size());
  const auto args = objects.need_sequence(call.args[1], "the parts of a sparse tensor");
  if (args.size() < 3) objects.refuse(Errc::type_mismatch, "{} parts of a sparse tensor", args.size());
  const bool known =
      layout == "coo" || layout == "csr" || layout == "csc" || layout == "bsr" || layout == "bsc";
  if (!known) objects.refuse(Errc::unsupported, "sparse layout {}", quoted(layout));
  Parts parts = layout == "coo" ? coo_parts(objects, args) : compressed_parts(objects, args, layout);
  parts.where = objects.location();
  if (!has_usual_strides(parts.values)) {
    objects.note_misfit(call);
    parts.values = in_usual_order(objects, parts.values);
  }
  if (parts.is_coo && parts.indices.dtype() != DType::i64) {
    objects.note_copied(call);
    parts.indices = parts.indices.to_lazy(DType::i64);
  }
  const Tensor dense(parts.values.dtype(), parts.shape);
  const auto storage = Storage::deferred(
      dense.size_bytes(), [parts](std::span<std::byte> out) { fill_dense(parts, out); },
      {parts.indices.storage(), parts.compressed.storage(), parts.plain.storage(), parts.values.storage()});
  const Ref made = computed(objects, Tensor::contiguous_view(dense.dtype(), parts.shape, storage), 0);
  objects.budget().take(2 * sizeof(TensorDetails) + 2 * sizeof(Parts));  // a vector of them grows by doubling
  objects.tree().details.push_back({{},
                                    Sparse{.layout = std::string(layout),
                                           .indices = parts.indices,
                                           .compressed = parts.compressed,
                                           .plain = parts.plain,
                                           .values = parts.values}});
  made.node()->tensor->details = static_cast<std::uint32_t>(objects.tree().details.size());
  made.node()->tensor->location =
      as_kind(parts.is_coo ? args[1] : args[2], NodeKind::tensor)->tensor->location;
  const bool is_coalesced = parts.is_coo && args.size() > 3 && args[3].is_true();
  objects.when_finished([parts, is_coalesced, &objects] {
    const std::uint64_t numbers = index_count(parts);
    objects.budget().step(numbers);
    objects.budget().take(numbers * 3 * sizeof(std::int64_t));
    const auto places = parts.is_coo ? places_coo(parts, 1) : places_compressed(parts);
    // Who believes it adds what falls on one place in any order, or at the same time.
    if (is_coalesced &&
        std::adjacent_find(places.begin(), places.end(), std::greater_equal()) != places.end())
      objects.ledger().find(Severity::warning, Errc::unsupported,
                            "sparse indices that are said to be coalesced, and are not", 0, {});
    objects.budget().give_back(numbers * 3 * sizeof(std::int64_t));
  });
  return made;
}

}  // namespace ballast::torch
