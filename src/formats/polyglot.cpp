// SPDX-License-Identifier: Apache-2.0
#include "formats/polyglot.h"

#include <algorithm>

#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "containers/gzip.h"
#include "containers/magic.h"
#include "formats/format_table.h"
#include "formats/onnx/onnx.h"

namespace ballast {
namespace {

bool is_safetensors(const ByteSource& source, std::span<const std::byte> head) {
  if (head.size() < 10 || head[8] != std::byte{'{'}) return false;
  const auto length = load_le<std::uint64_t>(head.data());
  if (length < 2 || length > safetensors::kMaxHeaderBytes || !fits(8, length, source.size())) return false;
  const std::uint64_t spaces = std::min<std::uint64_t>(length, 64);
  const auto last = source.read(8 + length - spaces, spaces);
  const auto text = as_text(last);
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  return end != std::string_view::npos && text[end] == '}';
}

// Some readers unpack by themselves what looks packed, and read what comes out as whatever that is.
void find_packed(const ByteSource& source, std::span<const std::byte> head, bool opened_as_gzip,
                 std::vector<OtherReading>& found) {
  if (opened_as_gzip) {
    try {
      const auto unpacked = memory_source(containers::gunzip(source), source.name());
      for (OtherReading& reading : readings_besides(*unpacked, Meant::none)) {
        reading.what = "unpacked: " + reading.what;
        found.push_back(std::move(reading));
      }
      if (may_be_packed(head_of(*unpacked)) && containers::is_packed(*unpacked))
        found.push_back({"gzip", 0, "what it unpacks to unpacks again"});
    } catch (const Error&) {
      return;  // then it is not opened either, which says why
    }
    return;
  }
  if (may_be_packed(head) && containers::is_packed(source))
    found.push_back({"gzip", 0, "unpacks like a gzip or zlib stream"});
}

Meant meaning_of(Format format, std::span<const std::byte> head) {
  if (containers::begins_like_zip(head) && (format == formats::torch_zip || format == formats::npz))
    return Meant::zip;
  if (format != formats::torch_zip) return Meant::none;
  return containers::is_tar(head) ? Meant::tar : Meant::pickle;
}

}  // namespace

bool may_be_packed(std::span<const std::byte> head) {
  if (head.size() < 2) return false;
  const auto first = static_cast<unsigned>(head[0]);
  const auto second = static_cast<unsigned>(head[1]);
  return (first == 0x1F && second == 0x8B) ||
         ((first & 15U) == 8 && first <= 0x78 && (first * 256 + second) % 31 == 0);
}

std::vector<OtherReading> readings_of_bytes(const ByteSource& source) {
  std::vector<OtherReading> found = readings_besides(source, Meant::none);
  find_packed(source, head_of(source), false, found);
  return found;
}

std::vector<OtherReading> other_readings(const ByteSource& source) {
  const auto head = head_of(source);
  const Format format = format_of(source);
  std::vector<OtherReading> found = readings_besides(source, meaning_of(format, head));
  find_packed(source, head, format == formats::mpk_gz, found);
  if (format == formats::onnx) {
    std::string why = onnx_file::as_another_message(source);
    if (!why.empty()) found.push_back({"protobuf", 0, std::move(why)});
  }
  if (format != formats::safetensors && is_safetensors(source, head))
    found.push_back({"safetensors", 0, "begins like a Safetensors file"});
  return found;
}

}  // namespace ballast
