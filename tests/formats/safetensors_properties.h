// SPDX-License-Identifier: Apache-2.0
// What must hold for any bytes whatever, taken as a Safetensors file. Used on every mutation of the fixtures
// and by the fuzzer.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors_oracle.h"

namespace ballast::safetensors::properties {

struct Read {
  std::optional<Header> header;  // absent: refused
  Errc code = Errc::invalid_argument;
};

inline Read read(const Storage& file, Mode mode) {
  try {
    return {read_header(file, "input", mode)};
  } catch (const Error& error) {
    return {std::nullopt, error.code()};
  }
}

inline oracle::Result content_of(const Header& header) {
  oracle::Result result{oracle::Verdict::accept};
  for (const HeaderEntry& entry : header.tensors) {
    const auto shape = header.shape(entry);
    result.tensors[std::string(entry.name())] = {
        entry.dtype, {shape.begin(), shape.end()}, entry.begin, entry.end};
  }
  result.metadata = metadata_of(header);
  return result;
}

inline std::vector<std::byte> bytes_of(const Entry& entry) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  entry.tensor().read(0, bytes);
  return bytes;
}

/// The same tensors and metadata, in whatever order.
inline bool same_content(const Checkpoint& a, const Checkpoint& b) {
  if (a.size() != b.size() || a.metadata != b.metadata) return false;
  for (const Entry& entry : a) {
    const auto found = b.position(entry.name);
    if (!found || b[*found].dtype != entry.dtype || Shape(b[*found].shape) != Shape(entry.shape))
      return false;
    if (bytes_of(b[*found]) != bytes_of(entry)) return false;
  }
  return true;
}

// Written and read again, a checkpoint is the same, and written again it is the same file. Names with NUL and
// shapes that overflow from the left are read in reference mode and not written.
inline std::string round_trip(const Checkpoint& checkpoint) {
  std::vector<std::byte> first;
  try {
    first = serialize(checkpoint);
  } catch (const Error& error) {
    return error.code() == Errc::bad_name || error.code() == Errc::size_overflow
               ? ""
               : fmt::format("cannot be written: {}", error.what());
  }
  const Checkpoint back =
      parse(Storage::borrow(static_cast<const void*>(first.data()), first.size()), {.mode = Mode::strict});
  if (!same_content(checkpoint, back)) return "is not the same after a round trip";
  if (serialize(back) != first) return "is not written the same twice";
  return "";
}

/// Empty when everything holds, else what does not.
inline std::string broken(std::string_view file) {
  const auto storage = Storage::borrow(static_cast<const void*>(file.data()), file.size());
  const Read reference = read(*storage, Mode::reference);
  const oracle::Result expected = oracle::read(file);
  if (expected.verdict == oracle::Verdict::accept && !reference.header)
    return fmt::format("refused ({}), a second parser accepts", name(reference.code));
  if (expected.verdict == oracle::Verdict::refuse && reference.header)
    return "accepted, a second parser refuses";

  // Refusals take most of the time. Strict mode does what reference mode does and refuses more, so that one
  // in sixteen of them is asked twice.
  if (!reference.header && std::hash<std::string_view>()(file) % 16 != 0) return "";
  const Read strict = read(*storage, Mode::strict);
  if (strict.header && !reference.header) return "accepted by strict mode, refused by reference mode";
  if (!reference.header) return "";

  const oracle::Result found = content_of(*reference.header);
  if (expected.verdict == oracle::Verdict::accept &&
      (found.tensors != expected.tensors || found.metadata != expected.metadata)) {
    return "a second parser sees other tensors or metadata";
  }
  if (strict.header && (content_of(*strict.header).tensors != found.tensors ||
                        content_of(*strict.header).metadata != found.metadata)) {
    return "the two modes see two files";
  }
  const Checkpoint checkpoint = parse(storage, {.mode = Mode::reference});
  if (checkpoint.size() != found.tensors.size() || checkpoint.total_bytes() != reference.header->data_size)
    return "tensors do not cover the data";
  return round_trip(checkpoint);
}

}  // namespace ballast::safetensors::properties
