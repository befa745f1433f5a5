// SPDX-License-Identifier: Apache-2.0
#include "formats/one_reading.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/fail.h"
#include "containers/magic.h"
#include "containers/zip_records.h"
#include "formats/pickle_walk.h"

namespace ballast {
namespace {

// More than any reader looks back from the end of a file: PyTorch's goes in blocks of 4 kB beyond the 65,557
// bytes an end record with its comment can take.
constexpr std::uint64_t kZipWindow = std::uint64_t{128} << 10U;

bool has_signature(const ByteSource& source, std::uint64_t at, std::uint32_t signature) {
  if (!fits(at, 4, source.size())) return false;
  std::array<std::byte, 4> lead{};
  source.read(at, lead);
  return load_le<std::uint32_t>(lead.data()) == signature;
}

// An end record near the end, with a directory where it says or right before it, or a locator of zip64's,
// which leads anywhere.
std::optional<std::uint64_t> zip_end(const ByteSource& source) {
  using namespace containers::zip;
  const std::uint64_t window = std::min<std::uint64_t>(source.size(), kZipWindow);
  const std::uint64_t start = source.size() - window;
  const auto tail = source.read(start, window);
  for (std::size_t at = as_text(tail).rfind("PK\5\6"); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : as_text(tail).rfind("PK\5\6", at - 1)) {
    if (at + kEndSize > tail.size()) continue;
    const std::uint64_t place = start + at;
    const std::uint64_t size = load_le<std::uint32_t>(&tail[at + 12]);
    const std::uint64_t offset = load_le<std::uint32_t>(&tail[at + 16]);
    if (has_signature(source, offset, kCentralSignature) ||
        (size <= place && has_signature(source, place - size, kCentralSignature)) ||
        (place >= kLocatorSize && has_signature(source, place - kLocatorSize, kLocatorSignature)))
      return place;
  }
  return std::nullopt;
}

// HDF5 may begin behind a block of the user's, of 512, 1024, 2048… bytes.
std::optional<std::uint64_t> hdf5_start(const ByteSource& source) {
  constexpr std::string_view kMagic = "\x89HDF\r\n\x1A\n";
  for (std::uint64_t at = 512; fits(at, kMagic.size(), source.size()); at *= 2) {
    if (as_text(source.read(at, kMagic.size())) == kMagic) return at;
  }
  return std::nullopt;
}

// FlatBuffers have four letters behind the first four bytes: TorchScript (whose program torch.jit.load()
// runs), ExecuTorch, ONNX Runtime, TensorFlow Lite.
bool is_flatbuffers(std::string_view head) {
  if (head.size() < 8) return false;
  const std::string_view letters = head.substr(4, 4);
  return letters == "PTMF" || letters == "ORTM" || letters == "TFL3" ||
         (letters.starts_with("ET") && letters[2] >= '0' && letters[2] <= '9' && letters[3] >= '0' &&
          letters[3] <= '9');
}

// LZMA's old container has no magic number: properties, size of the dictionary, size of the content, and a
// first byte of the stream that is always 0.
bool is_lzma(std::span<const std::byte> head) {
  constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 38U;
  if (head.size() < 18) return false;
  const auto properties = static_cast<unsigned>(head[0]);
  if (properties >= 225 || properties % 9 + properties / 9 % 5 > 4) return false;
  const auto size = load_le<std::uint64_t>(&head[5]);
  return head[13] == std::byte{0} && (size == kUnknown || size < kTooLarge) &&
         load_le<std::uint32_t>(&head[1]) != 0;
}

}  // namespace

std::vector<std::byte> head_of(const ByteSource& source) {
  return source.read(0, std::min<std::uint64_t>(source.size(), containers::kMagicBytes));
}

std::vector<OtherReading> readings_besides(const ByteSource& source, Meant meant) {
  const auto head = head_of(source);
  std::vector<OtherReading> found;
  if (meant != Meant::pickle && meant != Meant::zip) {
    if (const auto at = first_pickle_import(source))
      found.push_back({"pickle", *at, "an unpickler would import or call something"});
  }
  if (meant != Meant::zip && containers::begins_like_zip(head)) {
    found.push_back(
        {"zip", 0, "begins like a zip archive, which is all that some readers look at", Errc::zip_ambiguous});
  } else if (meant != Meant::zip) {
    if (const auto at = zip_end(source))
      found.push_back(
          {"zip", *at, "a zip archive ends there, which readers of zip look for first", Errc::zip_ambiguous});
  }
  if (meant != Meant::tar && containers::is_tar(head))
    found.push_back({"tar", 0, "the first 512 bytes are the header of a tar archive"});
  if (is_flatbuffers(as_text(head)))
    found.push_back({"flatbuffers", 4, "is named like a program in FlatBuffers, which loaders of those run"});
  if (is_lzma(head)) found.push_back({"lzma", 0, "unpacks like an LZMA stream"});
  if (const auto at = hdf5_start(source)) found.push_back({"hdf5", *at, "an HDF5 file begins there"});
  return found;
}

void require_one_reading(const ByteSource& written, Meant meant) {
  const std::vector<OtherReading> others = readings_besides(written, meant);
  if (others.empty()) return;
  fail(Errc::not_representable, written.where(),
       "the file would be something else to other readers: {} (byte {}); nothing is written. Its tensors or "
       "names were made for that; other names, another order or another format avoid it",
       others.front().what, others.front().offset);
}

void require_one_reading(const AtomicFile& written, Meant meant) {
  require_one_reading(*written.written(), meant);
}

}  // namespace ballast
