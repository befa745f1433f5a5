// SPDX-License-Identifier: Apache-2.0
// Which bytes of its storage a tensor looks at, whether they are what their file's checksums say, and whether
// somebody has written to the file meanwhile.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast {

struct ByteRange {
  std::uint64_t begin;
  std::uint64_t end;
};

/// First to last, of a tensor that has elements; the view was checked when it was made.
[[nodiscard]] ByteRange touched_bytes(const Tensor& tensor);

/// Storage::check_sound() for them. Nothing for a tensor without data.
void check_sound(const Tensor& tensor);
/// The same, and Errc::bad_crc says whose bytes are damaged: an archive knows its entries only.
void check_sound(const Tensor& tensor, std::string_view name);

/// Storage::check_unchanged() of many tensors or storages, once for each file. Asked when they have been
/// read: what was read was then read of one state of the file.
class ChangeCheck {
 public:
  /// Errc::file_changed.
  void operator()(const Tensor& tensor);
  void operator()(const Storage& storage);

 private:
  std::set<const ByteSource*> seen_;  // as many as files
  const Storage* last_ = nullptr;     // views of one storage mostly follow each other
};

}  // namespace ballast

#pragma GCC visibility pop
