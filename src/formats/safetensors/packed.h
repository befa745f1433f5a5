// SPDX-License-Identifier: Apache-2.0
// What the metadata of a Safetensors file says of its packed tensors (docs/formats/packed.md). A checkpoint
// never has these keys: reading takes them away, and only the writer and edit() put them there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "formats/safetensors/header.h"

namespace ballast::safetensors {

struct PackedTensor {
  DType dtype = DType::bf16;
  std::vector<std::uint64_t> shape;
  std::uint64_t xxh3 = 0;  ///< of the unpacked bytes
};

class PackedTensors {
 public:
  PackedTensors() = default;
  /// All tensors named are in the header, as bytes, and could be what is said: Errc::bad_packed, bad_json,
  /// bad_dtype, expansion_limit, or unsupported for another version.
  PackedTensors(const Header& header, const std::string& where);

  [[nodiscard]] bool empty() const noexcept { return tensors_.empty(); }

  [[nodiscard]] const PackedTensor* find(std::string_view name) const;

  void add(std::string_view name, PackedTensor tensor) { tensors_.emplace(name, std::move(tensor)); }

  /// The two keys, when there is a packed tensor.
  void write(std::optional<Metadata>& metadata) const;

  /// Errc::invalid_argument for a name that two get; `now(name)` gives a tensor's new one.
  template <class Now>
  [[nodiscard]] PackedTensors renamed(const Now& now) const {
    PackedTensors out;
    for (const auto& [name, tensor] : tensors_) out.add(now(name), tensor);
    return out;
  }

 private:
  std::map<std::string, PackedTensor, std::less<>> tensors_;
};

/// Whether it speaks of packed tensors at all.
[[nodiscard]] bool says_packed(const Header& header);

/// Without the two keys.
void remove_packed_keys(std::optional<Metadata>& metadata);

/// "12 of 14 tensors are packed: 1400 bytes of the file for 2000"; empty when none is.
[[nodiscard]] std::string packed_note(const Checkpoint& checkpoint);

/// That somebody else's way of packing is there, which Ballast does not undo, in a sentence; else empty.
[[nodiscard]] std::string foreign_packing(const Header& header);

}  // namespace ballast::safetensors
