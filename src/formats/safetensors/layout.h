// SPDX-License-Identifier: Apache-2.0
// Where everything goes in a Safetensors file that is about to be written. serialize(), save(), StreamWriter
// and edit() all write what this says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/safetensors.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::safetensors {

struct Declared {
  std::string_view name;
  DType dtype;
  ShapeView shape;
};

struct Layout {
  struct Place {
    std::size_t tensor;   // position among those declared
    std::uint64_t begin;  // bytes [begin, end) of the file
    std::uint64_t end;
  };

  std::string head;           // the length and the header: the file's first bytes
  std::vector<Place> places;  // in the order of the file
  std::uint64_t file_size = 0;
};

enum class Arrangement : std::uint8_t {
  reference,  ///< as the reference implementation writes
  aligned,    ///< data begins on 64 bytes, and so does every tensor whose size allows it
              ///< (docs/formats/record.md)
};

/// The reference's order: dtypes by descending enumerator (wide ones first, which aligns them all), then
/// names by their bytes. Refuses what could not be read back: dtypes the format lacks, sizes that do not end
/// on a byte, `__metadata__` as a name, names or metadata that are not UTF-8, one name twice, a header beyond
/// the limit.
[[nodiscard]] Layout make_layout(std::span<const Declared> tensors, const std::optional<Metadata>& metadata,
                                 const std::string& where, Arrangement arrangement = Arrangement::reference);

/// One line of a header.
struct HeaderLine {
  std::string_view name;
  DType dtype;
  std::span<const std::uint64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

/// The file's first bytes for tensors in this order; the same refusals as far as names and size go.
[[nodiscard]] std::string head_of(std::span<const HeaderLine> lines, const std::optional<Metadata>& metadata,
                                  const std::string& where, Arrangement arrangement = Arrangement::reference);

[[nodiscard]] std::vector<Declared> declared_by(const Checkpoint& checkpoint);

}  // namespace ballast::safetensors

#pragma GCC visibility pop
