// SPDX-License-Identifier: Apache-2.0
#include "tensor/plane_source.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/fail.h"
#include "tensor/cast.h"
#include "tensor/copy_box.h"
#include "tensor/describe.h"
#include "tensor/meaning.h"

namespace ballast {
namespace {

// Elements with others between them are taken out of one longer read, as long as those are few.
constexpr std::int64_t kWindowBytes = std::int64_t{1} << 20U;

// The real dtype its numbers are stored as. Integers packed below a byte have none: `bits`.
DType number_dtype(DType dtype) {
  if (dtype == DType::bits16) return DType::u16;
  return meaning_of(dtype).stored;
}

bool is_packed_integer(DType dtype) {
  return !is_real(dtype) && info(dtype).bits < 8;
}

std::uint32_t code_at(const std::byte* bytes, std::uint64_t bit, unsigned bits) {
  const std::uint64_t byte = bit / 8;
  auto window = static_cast<std::uint32_t>(bytes[byte]);
  if (bit % 8 + bits > 8) window |= static_cast<std::uint32_t>(bytes[byte + 1]) << 8U;
  return window >> (bit % 8) & ((1U << bits) - 1);
}

// Codes of a few bits, packed, as numbers.
template <class T>
void unpack(const std::byte* raw, unsigned bits, std::size_t count, T* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(code_at(raw, i * bits, bits));
}

template <class T>
void to_numbers(DType dtype, const std::byte* raw, std::size_t count, T* out) {
  if (is_packed_integer(dtype)) return unpack(raw, info(dtype).bits, count, out);
  const DType stored = number_dtype(dtype);
  if (info(dtype).kind != DTypeKind::complex) {
    return cast_elements(stored, raw, dtype_of<T>, reinterpret_cast<std::byte*>(out), count);
  }
  std::array<T, 512> parts;
  for (std::size_t done = 0; done < count; done += parts.size() / 2) {
    const std::size_t here = std::min(parts.size() / 2, count - done);
    cast_elements(stored, raw + done * info(dtype).bits / 8, dtype_of<T>,
                  reinterpret_cast<std::byte*>(parts.data()), 2 * here);
    for (std::size_t i = 0; i < here; ++i) out[done + i] = std::hypot(parts[2 * i], parts[2 * i + 1]);
  }
}

}  // namespace

bool plane_needs_double(DType dtype) {
  const DType stored = number_dtype(dtype);
  if (is_packed_integer(dtype)) return false;
  if (stored == DType::f64) return true;
  return !is_floating(stored) && info(stored).bits > 16;
}

PlaneSource::PlaneSource(Tensor tensor, const PlaneForm& form, std::int64_t row_stride,
                         std::int64_t col_stride, std::int64_t first)
    : tensor_(std::move(tensor)),
      form_(form),
      row_stride_(row_stride),
      col_stride_(col_stride),
      first_(first) {
  if (!tensor_.has_data()) static_cast<void>(tensor_.data());  // throws
  if (tensor_.device().type != DeviceType::cpu)
    fail(Errc::unsupported, describe(tensor_.dtype(), tensor_.shape()),
         "lies in the memory of another device");
}

void PlaneSource::swap() {
  std::swap(form_.rows, form_.cols);
  form_.last_cols = form_.cols;
  std::swap(row_stride_, col_stride_);
}

bool PlaneSource::waits() const {
  return tensor_.storage()->source_span().has_value();
}

// `count` elements of whole bytes from element `start` on.
void PlaneSource::read_run(std::int64_t start, std::int64_t count, std::int64_t stride, std::byte* out,
                           std::vector<std::byte>& window) const {
  const auto size = static_cast<std::int64_t>(info(tensor_.dtype()).bits / 8);
  const auto at = static_cast<std::int64_t>(tensor_.bit_offset() / 8) + start * size;
  const Storage& storage = *tensor_.storage();
  if (stride == 1 || count == 1) {
    storage.read(static_cast<std::uint64_t>(at), {out, static_cast<std::size_t>(count * size)});
    return;
  }
  const std::int64_t distance = std::abs(stride) * size;
  const std::int64_t at_once = std::max<std::int64_t>(1, kWindowBytes / std::max<std::int64_t>(distance, 1));
  for (std::int64_t done = 0; done < count; done += at_once) {
    const std::int64_t here = std::min(at_once, count - done);
    const std::int64_t ends[] = {at + done * stride * size, at + (done + here - 1) * stride * size};
    const std::int64_t low = std::min(ends[0], ends[1]);
    window.resize(static_cast<std::size_t>((here - 1) * distance + size));
    storage.read(static_cast<std::uint64_t>(low), window);
    for (std::int64_t i = 0; i < here; ++i) {
      std::memcpy(out + (done + i) * size, window.data() + (ends[0] + i * stride * size - low),
                  static_cast<std::size_t>(size));
    }
  }
}

// Elements below a byte: row by row the bytes they lie in, and their bits out of those.
void PlaneSource::read_codes(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
                             std::byte* out) const {
  const auto bits = static_cast<std::int64_t>(info(tensor_.dtype()).bits);
  const auto base = static_cast<std::int64_t>(tensor_.bit_offset());
  BitWriter writer(out);
  std::vector<std::byte> window;
  for (std::int64_t r = row; r < row + height; ++r) {
    const std::int64_t start = first_ + r * row_stride_ + col * col_stride_;
    const std::int64_t count = form_.present(r, col, width);
    const std::int64_t end = start + std::max<std::int64_t>(count - 1, 0) * col_stride_;
    const std::int64_t low = (base + std::min(start, end) * bits) / 8;
    const std::int64_t high = (base + std::max(start, end) * bits + bits - 1) / 8 + 1;
    if (count > 0) {
      window.resize(static_cast<std::size_t>(high - low));
      tensor_.storage()->read(static_cast<std::uint64_t>(low), window);
    }
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t bit = base + (start + i * col_stride_) * bits - low * 8;
      writer.put(i < count
                     ? code_at(window.data(), static_cast<std::uint64_t>(bit), static_cast<unsigned>(bits))
                     : 0U,
                 static_cast<int>(bits));
    }
  }
  writer.finish();
}

void PlaneSource::read(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
                       std::vector<std::byte>& out) const {
  const std::uint64_t bits = info(tensor_.dtype()).bits;
  out.assign(static_cast<std::size_t>(bytes_of(tensor_.dtype(), static_cast<std::uint64_t>(height * width))),
             std::byte{0});
  if (out.empty()) return;
  if (bits < 8) return read_codes(row, col, height, width, out.data());
  const auto size = static_cast<std::int64_t>(bits / 8);
  std::vector<std::byte> window;
  const bool one_run = col_stride_ == 1 && row_stride_ == width && form_.cols == width;
  if (one_run) {
    const std::int64_t count = (height - 1) * width + form_.present(row + height - 1, col, width);
    return read_run(first_ + row * row_stride_ + col, count, 1, out.data(), window);
  }
  for (std::int64_t r = 0; r < height; ++r) {
    const std::int64_t count = form_.present(row + r, col, width);
    const std::int64_t start = first_ + (row + r) * row_stride_ + col * col_stride_;
    if (count > 0) read_run(start, count, col_stride_, out.data() + r * width * size, window);
  }
}

template <class T>
void PlaneSource::read(std::int64_t row, std::int64_t col, std::int64_t height, std::int64_t width,
                       std::vector<std::byte>& raw, T* out) const {
  read(row, col, height, width, raw);
  to_numbers(tensor_.dtype(), raw.data(), static_cast<std::size_t>(height * width), out);
}

template void PlaneSource::read(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                std::vector<std::byte>&, float*) const;
template void PlaneSource::read(std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                std::vector<std::byte>&, double*) const;

}  // namespace ballast
