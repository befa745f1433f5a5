// SPDX-License-Identifier: Apache-2.0
#include "ballast/tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "tensor/cast.h"
#include "tensor/copy.h"
#include "tensor/describe.h"
#include "tensor/lazy_cast.h"
#include "tensor/pool.h"
#include "tensor/trace.h"
#include "tensor/view_operations.h"

namespace ballast {
namespace {

// Every element of the view lies inside the storage, or this throws.
void check_extent(DType dtype, ShapeView shape, ShapeView strides, std::uint64_t storage_size,
                  std::uint64_t bit_offset) {
  auto lowest = static_cast<Int128>(bit_offset);
  Int128 highest = lowest + info(dtype).bits;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Int128 reach = static_cast<Int128>(shape[i] - 1) * strides[i];
    if (reach > INT64_MAX || reach < INT64_MIN) {
      fail(Errc::size_overflow, describe(dtype, shape), "stride {} of dimension {} reaches beyond 64 bits",
           strides[i], i);
    }
    (reach < 0 ? lowest : highest) += reach * info(dtype).bits;
  }
  if (lowest < 0 || highest > static_cast<Int128>(storage_size) * 8) {
    fail(Errc::offset_out_of_range, describe(dtype, shape),
         "strides {} from bit {} leave the storage of {} bytes", to_string(strides), bit_offset,
         storage_size);
  }
}

void require_castable(const Tensor& tensor, DType to) {
  if (tensor.dtype() == to || (is_real(tensor.dtype()) && is_real(to))) return;
  fail(Errc::bad_dtype, describe(tensor.dtype(), tensor.shape()), "cannot be cast to {}", info(to).code);
}

}  // namespace

std::string describe(DType dtype, ShapeView shape) {
  return fmt::format("tensor {} {}", info(dtype).code, to_string(shape));
}

std::optional<std::uint64_t> try_bits(DType dtype, ShapeView shape) noexcept {
  const auto count = try_numel(shape);
  if (!count) return std::nullopt;
  return try_mul<std::uint64_t>(static_cast<std::uint64_t>(*count), info(dtype).bits);
}

std::int64_t checked_numel(DType dtype, ShapeView shape) {
  const auto count = try_numel(shape);
  // Bits must be countable too, so that no later size computation has to ask.
  if (count && try_mul<std::int64_t>(*count, info(dtype).bits)) return *count;
  fail(Errc::size_overflow, describe(dtype, shape),
       "has a negative dimension or more elements than 64 bits can count");
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      defined_(true),
      numel_(checked_numel(dtype, shape)),
      shape_(std::move(shape)),
      strides_(contiguous_strides(shape_)) {}

Tensor::Tensor(DType dtype, Shape shape, Strides strides, std::shared_ptr<const Storage> storage,
               std::uint64_t bit_offset)
    : dtype_(dtype),
      defined_(true),
      numel_(checked_numel(dtype, shape)),
      shape_(std::move(shape)),
      strides_(std::move(strides)),
      storage_(std::move(storage)),
      bit_offset_(bit_offset) {
  if (!storage_) fail(Errc::invalid_argument, describe(dtype_, shape_), "needs a storage");
  if (strides_.size() != shape_.size()) {
    fail(Errc::invalid_argument, describe(dtype_, shape_), "has {} strides", strides_.size());
  }
  if (numel_ > 0)
    check_extent(dtype_, shape_, strides_, storage_->size(), bit_offset_);
  else if (bit_offset_ / 8 > storage_->size())
    bit_offset_ = 0;  // nothing is ever read there
}

Tensor Tensor::contiguous_view(DType dtype, Shape shape, std::shared_ptr<const Storage> storage,
                               std::uint64_t byte_offset) {
  Strides strides = contiguous_strides(shape);
  const auto bits = try_mul<std::uint64_t>(byte_offset, 8);
  if (!bits) fail(Errc::size_overflow, describe(dtype, shape), "offset {} is beyond any file", byte_offset);
  return {dtype, std::move(shape), std::move(strides), std::move(storage), *bits};
}

Tensor Tensor::empty(DType dtype, Shape shape) {
  const std::uint64_t size = Tensor(dtype, shape).size_bytes();
  return contiguous_view(dtype, std::move(shape), Storage::heap(size));
}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  const std::uint64_t size = Tensor(dtype, shape).size_bytes();
  return contiguous_view(dtype, std::move(shape), Storage::heap(size, true));
}

// Copies inside a forward pass come again at the next one.
static Tensor room_for_copy(DType dtype, const Shape& shape) {
  const Tensor form(dtype, shape);  // checks the shape
  return Tensor::contiguous_view(dtype, shape, pooled_storage(form.size_bytes(), Pooled::copy));
}

Tensor Tensor::copy_of(DType dtype, Shape shape, std::span<const std::byte> bytes) {
  const Tensor form(dtype, shape);
  if (bytes.size() != form.size_bytes()) {
    fail(Errc::size_mismatch, describe(dtype, shape), "has {} elements, {} were given", form.numel(),
         bytes.size() * 8 / info(dtype).bits);
  }
  Tensor tensor = room_for_copy(dtype, shape);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

std::uint64_t Tensor::size_bytes() const noexcept {
  return bytes_of(dtype_, static_cast<std::uint64_t>(numel_));
}

Device Tensor::device() const noexcept {
  return storage_ ? storage_->device() : Device{};
}

bool Tensor::is_contiguous() const noexcept {
  if (numel_ <= 1) return true;
  std::int64_t expected = 1;
  for (std::size_t i = shape_.size(); i-- > 0;) {
    if (shape_[i] == 1) continue;  // its stride is never used
    if (strides_[i] != expected) return false;
    expected *= shape_[i];
  }
  return true;
}

bool Tensor::same_view(const Tensor& other) const noexcept {
  return defined_ && other.defined_ && storage_ && storage_ == other.storage_ &&
         bit_offset_ == other.bit_offset_ && dtype_ == other.dtype_ && shape_ == other.shape_ &&
         strides_ == other.strides_;
}

const std::byte* Tensor::data() const {
  if (!storage_)
    fail(Errc::invalid_argument, describe(dtype_, shape_), "has a shape but no data (not loaded yet?)");
  if (storage_->device().type != DeviceType::cpu) {
    fail(Errc::unsupported, describe(dtype_, shape_), "lies in the memory of another device");
  }
  if (bit_offset_ % 8 != 0)
    fail(Errc::misaligned, describe(dtype_, shape_), "begins inside a byte (bit {})", bit_offset_);
  const std::byte* bytes = storage_->data();
  return bytes == nullptr ? nullptr : bytes + bit_offset_ / 8;  // an empty storage may have no address
}

std::byte* Tensor::mutable_data() {
  static_cast<void>(data());  // the same refusals
  std::byte* bytes = storage_->itself_->mutable_data();
  if (bytes == nullptr && numel_ > 0)
    fail(Errc::invalid_argument, describe(dtype_, shape_),
         "is read-only (a file's bytes?); clone() it first");
  return bytes == nullptr ? nullptr : bytes + bit_offset_ / 8;
}

bool Tensor::is_writable() {
  return storage_ != nullptr && (numel_ == 0 || storage_->itself_->mutable_data() != nullptr);
}

const std::byte* Tensor::span_bytes(DType dtype, std::size_t alignment) const {
  if (dtype != dtype_)
    fail(Errc::bad_dtype, describe(dtype_, shape_), "was asked for as {}; use to() first", info(dtype).code);
  if (!is_contiguous()) {
    fail(Errc::shape_mismatch, describe(dtype_, shape_), "has strides {}; use contiguous() first",
         to_string(strides_));
  }
  const std::byte* bytes = data();
  if (numel_ > 0 && reinterpret_cast<std::uintptr_t>(bytes) % alignment != 0) {
    fail(Errc::misaligned, describe(dtype_, shape_),
         "is not aligned for its type in this file; use clone() first");
  }
  return bytes;
}

void Tensor::read(std::uint64_t first, std::span<std::byte> out) const {
  if (!fits(first, out.size(), size_bytes())) {
    fail(Errc::offset_out_of_range, describe(dtype_, shape_),
         "{} bytes at offset {} lie outside its {} bytes", out.size(), first, size_bytes());
  }
  if (out.empty()) return;
  if (!storage_) static_cast<void>(data());  // throws
  const std::uint64_t bits = info(dtype_).bits;
  const auto count = static_cast<std::uint64_t>(numel_);
  if (is_contiguous() && bit_offset_ % 8 == 0) {
    storage_->read(bit_offset_ / 8 + first, out);
    // The last byte may be shared with elements that are not ours.
    const std::uint64_t used = count * bits % 8;
    if (used != 0 && first + out.size() == size_bytes())
      out.back() &= static_cast<std::byte>((1U << used) - 1);
    return;
  }
  // Every eighth element begins on a byte, in every dtype; a piece that cuts one in two is taken from whole
  // ones around it.
  const std::uint64_t begin = first * 8 / bits / 8 * 8;
  const std::uint64_t end = std::min(((first + out.size()) * 8 + bits - 1) / bits, count);
  if (begin * bits == first * 8 && (end * bits + 7) / 8 == first + out.size())
    return gather(*this, begin, end - begin, out.data());
  if (bits % 8 == 0 && first * 8 % bits == 0 && out.size() * 8 % bits == 0)
    return gather(*this, first * 8 / bits, out.size() * 8 / bits, out.data());
  std::vector<std::byte> block(static_cast<std::size_t>(((end - begin) * bits + 7) / 8));
  gather(*this, begin, end - begin, block.data());
  std::memcpy(out.data(), block.data() + (first - begin * bits / 8), out.size());
}

Tensor Tensor::contiguous() const {
  return is_contiguous() && bit_offset_ % 8 == 0 ? *this : clone();
}

Tensor Tensor::clone() const {
  if (!storage_) return *this;
  if (tracing::on()) return tracing::record(operations::clone, {*this}, {}, [&] { return clone(); });
  Tensor copy = room_for_copy(dtype_, shape_);
  if (numel_ > 0) copy_contiguous(*this, copy.mutable_data());
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  if (!defined_) fail(Errc::invalid_argument, "to", "the tensor is undefined");
  require_castable(*this, dtype);
  if (!storage_) return {dtype, shape_};
  if (tracing::on())
    return tracing::record(operations::cast, {*this}, {{"dtype", std::string(info(dtype).code)}},
                           [&] { return to(dtype); });
  Tensor result = room_for_copy(dtype, shape_);
  if (numel_ == 0) return result;
  const bool at_hand = is_contiguous() && bit_offset_ % 8 == 0 && storage_->ready();
  if (at_hand)
    cast_elements(dtype_, data(), dtype, result.mutable_data(), static_cast<std::uint64_t>(numel_));
  else
    lazy_cast(*this, dtype)
        ->read(0, {result.mutable_data(), static_cast<std::size_t>(result.size_bytes())});  // piece by piece
  return result;
}

Tensor Tensor::to_lazy(DType dtype, std::shared_ptr<CastCount> count) const {
  if (dtype == dtype_) return *this;
  require_castable(*this, dtype);
  if (!storage_) return {dtype, shape_};
  if (tracing::on()) return to(dtype);
  return contiguous_view(dtype, shape_, lazy_cast(*this, dtype, std::move(count)));
}

}  // namespace ballast
