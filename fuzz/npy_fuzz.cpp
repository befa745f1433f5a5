// SPDX-License-Identifier: Apache-2.0
// Any bytes as the header of a NumPy array: refused, or a shape whose elements are exactly the bytes behind
// it, and the header that is written for such an array says the same again.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "ballast/error.h"
#include "base/bytes.h"
#include "formats/npy/npy.h"
#include "watched.h"

namespace {

using namespace ballast;
using fuzzing::complain;

npy::Header header_of(std::string_view file) {
  const auto bytes = as_bytes(file);
  return npy::header_of(bytes.first(std::min(bytes.size(), npy::kMaxHeaderBytes)), bytes.size(), "fuzz");
}

void check(std::string_view file) {
  const npy::Header header = header_of(file);
  std::uint64_t bytes = info(header.dtype).bits / 8;
  for (const std::int64_t dim : header.shape) {
    if (dim < 0) complain("a negative size");
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes)) complain("too many elements");
  }
  if (header.data > file.size() || bytes != file.size() - header.data)
    complain("other bytes than its shape needs");
  Checkpoint checkpoint;
  checkpoint.add("array", Tensor(header.dtype, Shape(header.shape)));
  const std::string again = npy::header_text(checkpoint[0], "fuzz") + std::string(file.substr(header.data));
  const npy::Header copy = header_of(again);
  if (copy.dtype != header.dtype || copy.shape != header.shape || copy.big_endian || copy.fortran_order)
    complain("a header that is written says something else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  if (given.empty()) return 0;
  // The first byte says whether the rest is a file, or a header's text that gets the right length before it,
  // and how much of it is data.
  std::string file;
  if ((data[0] & 1U) != 0) {
    const std::size_t tail = std::min<std::size_t>(data[0] >> 2U, given.size() - 1);
    const auto length = static_cast<std::uint32_t>(given.size() - 1 - tail);
    const bool is_short = (data[0] & 2U) == 0;
    file = is_short ? std::string("\x93NUMPY\x01\x00", 8) : std::string("\x93NUMPY\x03\x00", 8);
    file.append(reinterpret_cast<const char*>(&length), is_short ? 2 : 4);
  }
  file += given.substr(1);
  try {
    check(file);
  } catch (const Error&) {
  }
  return 0;
}
