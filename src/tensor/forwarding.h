// SPDX-License-Identifier: Apache-2.0
// Storage whose bytes are all of another's, which is found or made when they are first asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ballast/storage.h"

namespace ballast {

class ForwardingStorage : public Storage {
 public:
  [[nodiscard]] const std::byte* data() const final { return content().data(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const final { content().read(offset, out); }

  [[nodiscard]] std::optional<SourceSpan> source_span() const final { return content().source_span(); }

  void check_unchanged() const final { content().check_unchanged(); }

  void check_sound(std::uint64_t begin, std::uint64_t end) const override {
    content().check_sound(begin, end);
  }

 protected:
  using Storage::Storage;

  /// The same each time, from any thread.
  [[nodiscard]] virtual const Storage& content() const = 0;

 private:
  [[nodiscard]] std::byte* writable_data() final { return mutable_data_behind(content()); }
};

}  // namespace ballast
