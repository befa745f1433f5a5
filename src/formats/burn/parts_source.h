// SPDX-License-Identifier: Apache-2.0
// A file that is still in pieces, to be read as if it were written.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "ballast/byte_source.h"
#include "containers/part_writer.h"

namespace ballast::burn {

using containers::Part;

// What parts make up, before it is packed.
class PartsSource final : public ByteSource {
 public:
  PartsSource(const std::string& path, std::span<const Part> parts)
      : ByteSource(path, parts.back().end()), parts_(parts) {}

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                 [](std::uint64_t at, const Part& each) { return at < each.at; });
    for (--part; !out.empty(); ++part) out = read_part(*part, offset, out);
  }

  // What the part has of `out`, and the rest of it.
  static std::span<std::byte> read_part(const Part& part, std::uint64_t& offset, std::span<std::byte> out) {
    const auto take = [&](std::uint64_t begin, std::uint64_t size, const auto& read) {
      if (out.empty() || offset < begin || offset >= begin + size) return;
      const auto piece =
          out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), begin + size - offset)));
      read(offset - begin, piece);
      offset += piece.size();
      out = out.subspan(piece.size());
    };
    take(part.at, part.before.size(), [&](std::uint64_t at, std::span<std::byte> piece) {
      std::memcpy(piece.data(), part.before.data() + at, piece.size());
    });
    take(part.content_at(), part.size,
         [&](std::uint64_t at, std::span<std::byte> piece) { part.storage->read(part.offset + at, piece); });
    return out;
  }

  std::span<const Part> parts_;
};

}  // namespace ballast::burn
