// SPDX-License-Identifier: Apache-2.0
#include "tensor/sound.h"

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast {

ByteRange touched_bytes(const Tensor& tensor) {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    const std::int64_t reach = (tensor.shape()[i] - 1) * tensor.strides()[i];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto bits = static_cast<std::int64_t>(info(tensor.dtype()).bits);
  const auto first = static_cast<std::int64_t>(tensor.bit_offset()) + lowest * bits;
  const auto last = static_cast<std::int64_t>(tensor.bit_offset()) + (highest + 1) * bits;
  return {static_cast<std::uint64_t>(first) / 8, (static_cast<std::uint64_t>(last) + 7) / 8};
}

void check_sound(const Tensor& tensor) {
  if (!tensor.has_data() || tensor.numel() == 0) return;
  const ByteRange range = touched_bytes(tensor);
  tensor.storage()->check_sound(range.begin, range.end);
}

void check_sound(const Tensor& tensor, std::string_view name) {
  try {
    check_sound(tensor);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.code() != Errc::bad_crc || text.find(quoted(name)) != std::string::npos) throw;
    const std::size_t behind = error.where().empty() ? 0 : error.where().size() + 2;
    fail_text(error.code(), error.where() + ": tensor " + quoted(name), text.substr(behind));
  }
}

void ChangeCheck::operator()(const Tensor& tensor) {
  if (tensor.has_data()) (*this)(*tensor.storage());
}

void ChangeCheck::operator()(const Storage& storage) {
  if (&storage == last_) return;
  last_ = &storage;
  const auto span = storage.source_span();
  if (!span || seen_.insert(innermost(*span).source.get()).second) storage.check_unchanged();
}

}  // namespace ballast
