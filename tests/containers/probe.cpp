// SPDX-License-Identifier: Apache-2.0
// What Ballast's readers of containers make of many small inputs, for scripts/compare-containers: it holds
// that against Python's zipfile, tarfile, json and NumPy.
//
// Standard input: for each, a letter (z, t, j, n, p), its length (8 bytes, little-endian) and its bytes.
// Standard output: a line for each: "refused CODE", or "ok" and fields behind tabs; names and contents in
// hexadecimal digits.
#include <algorithm>
#include <cstring>
#include <iostream>

#include "ballast/dtype.h"
#include "ballast/error.h"
#include "base/json_scanner.h"
#include "containers/tar.h"
#include "containers/zip.h"
#include "formats/npy/npy.h"

namespace ballast {
namespace {

std::string hex(std::span<const std::byte> bytes) {
  std::string out = ".";  // nothing is something too
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
}

std::string hex(std::string_view text) {
  return hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::shared_ptr<const Storage> storage_of(const std::string& input) {
  return Storage::borrow(static_cast<const void*>(input.data()), input.size());
}

std::string zip_line(const std::string& input) {
  const containers::ZipArchive archive =
      containers::ZipArchive::open(memory_source(storage_of(input), "input"));
  std::string out = fmt::format("ok\t{}", archive.anomalies().size());
  for (const containers::ZipEntry& entry : archive.entries()) {
    out += "\t" + hex(entry.name) + "=" + hex(archive.read(entry, std::uint64_t{1} << 24U));
    archive.check_crc(entry);
  }
  return out;
}

std::string tar_line(const std::string& input) {
  const auto source = memory_source(storage_of(input), "input");
  std::string out = "ok";
  for (const containers::TarMember& member : containers::read_tar_members(*source)) {
    std::vector<std::byte> content(static_cast<std::size_t>(member.size));
    source->read(member.offset, content);
    out += "\t" + hex(member.name) + "=" + hex(content);
  }
  return out;
}

// Objects as "{key:value,…}" with every member in its order, texts in hexadecimal digits, numbers as written.
void append_json(JsonScanner& json, std::string& out) {
  switch (json.peek()) {
    case JsonScanner::Kind::object:
      out += '{';
      json.object([&](std::string_view key) {
        out += hex(key) + ":";
        append_json(json, out);
        out += ',';
      });
      out += '}';
      return;
    case JsonScanner::Kind::array:
      out += '[';
      json.array([&] {
        append_json(json, out);
        out += ',';
      });
      out += ']';
      return;
    case JsonScanner::Kind::string:
      out += hex(json.string());
      return;
    case JsonScanner::Kind::number:
      out += json.number().text;
      return;
    case JsonScanner::Kind::boolean:
      if (json.take_text("true"))
        out += "true";
      else if (json.take_text("false"))
        out += "false";
      else
        fail(Errc::bad_json, "input", "a word that is none");
      return;
    case JsonScanner::Kind::null:
      json.null();
      out += "null";
      return;
  }
}

std::string json_line(std::string input) {
  if (!is_utf8(input)) fail(Errc::bad_utf8, "input", "is not UTF-8");
  const std::size_t size = input.size();
  input.resize(size + JsonScanner::kPadding, '\0');
  JsonScanner json({input.data(), size}, "input");
  std::string out = "ok\t";
  append_json(json, out);
  json.finish();
  return out;
}

std::string npy_line(const std::string& input) {
  const auto bytes = std::as_bytes(std::span(input.data(), input.size()));
  const npy::Header header =
      npy::header_of(bytes.first(std::min(bytes.size(), npy::kMaxHeaderBytes)), bytes.size(), "input");
  std::string out = fmt::format("ok\t{}\t{}\t{}\t{}\t", info(header.dtype).numpy, header.big_endian ? 1 : 0,
                                header.fortran_order ? 1 : 0, header.data);
  for (const std::int64_t dim : header.shape) out += fmt::format("{},", dim);
  return out;
}

std::string line_of(char kind, const std::string& input) {
  try {
    if (kind == 'z') return zip_line(input);
    if (kind == 't') return tar_line(input);
    if (kind == 'j') return json_line(input);
    return npy_line(input);
  } catch (const Error& error) {
    return "refused\t" + std::string(name(error.code()));
  }
}

}  // namespace
}  // namespace ballast

int main() {
  std::ios::sync_with_stdio(false);
  char head[9];
  std::string input;
  while (std::cin.read(head, sizeof head)) {
    std::uint64_t size = 0;
    std::memcpy(&size, head + 1, sizeof size);
    input.resize(static_cast<std::size_t>(size));
    std::cin.read(input.data(), static_cast<std::streamsize>(size));
    std::cout << ballast::line_of(head[0], input) << std::endl;
  }
  return 0;
}
