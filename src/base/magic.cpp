// SPDX-License-Identifier: Apache-2.0
#include "base/magic.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "base/json_scanner.h"

namespace ballast {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJsonText = "JSON text";

struct Magic {
  std::string_view bytes;
  std::string_view what;
};

constexpr std::array kMagics = {
    Magic{"version https://git-lfs.github.com/spec/"sv,
          "a Git LFS pointer: run `git lfs pull` to get the file itself"},
    Magic{"version https://hawser.github.com/spec/"sv,
          "a Git LFS pointer: run `git lfs pull` to get the file itself"},
    Magic{"PK\x03\x04"sv, "a zip archive (a PyTorch file?)"},
    Magic{"PK\x05\x06"sv, "an empty zip archive"},
    Magic{"\x1f\x8b"sv, "a gzip file"},
    Magic{"BZh"sv, "a bzip2 file"},
    Magic{"\xfd"
          "7zXZ\0"sv,
          "an xz file"},
    Magic{"\x28\xb5\x2f\xfd"sv, "a zstd file"},
    Magic{"\x04\x22\x4d\x18"sv, "an lz4 file"},
    Magic{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive"},
    Magic{"Rar!\x1a\x07"sv, "a rar archive"},
    Magic{"GGUF"sv, "a GGUF file"},
    Magic{"\x93NUMPY"sv, "a NumPy .npy file"},
    Magic{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras?)"},
    Magic{"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    Magic{"\xff\xd8\xff"sv, "a JPEG image"},
    Magic{"GIF8"sv, "a GIF image"},
    Magic{"%PDF-"sv, "a PDF document"},
    Magic{"\x7f"
          "ELF"sv,
          "an ELF program"},
    Magic{"MZ"sv, "a Windows program"},
    Magic{"NRUB"sv, "a Burnpack file"},
};

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
         });
}

// Protocol 2 and later begin with it; the byte after is the protocol.
bool is_pickle(std::string_view text) {
  return text.size() >= 2 && text[0] == '\x80' && text[1] >= 1 && text[1] <= 5;
}

// All of it may be cut inside a character.
bool is_text(std::string_view text) {
  const auto control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F;
  };
  if (text.empty() || std::any_of(text.begin(), text.end(), control)) return false;
  for (std::size_t cut = 0; cut < 4 && cut < text.size(); ++cut) {
    if (is_utf8(text.substr(0, text.size() - cut))) return true;
  }
  return false;
}

}  // namespace

bool is_tar(std::span<const std::byte> first) {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kAt = 148;  // of the checksum: the sum of all bytes, its own eight taken as spaces
  constexpr std::size_t kSize = 8;
  if (first.size() < kBlock) return false;
  std::uint64_t sum = 0;
  std::int64_t with_sign = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::byte byte = i >= kAt && i < kAt + kSize ? std::byte{' '} : first[i];
    sum += static_cast<std::uint64_t>(byte);
    with_sign += static_cast<std::int8_t>(byte);
  }
  std::uint64_t said = 0;
  bool any = false;
  for (const char c : as_text(first.subspan(kAt, kSize))) {
    if (c == '\0') break;
    if (c == ' ') continue;
    if (c < '0' || c > '7') return false;
    said = said << 3U | static_cast<std::uint64_t>(c - '0');
    any = true;
  }
  return any && (said == sum || static_cast<std::int64_t>(said) == with_sign);
}

std::string_view what_is_it(std::span<const std::byte> first) {
  std::string_view text = as_text(first);
  for (const Magic& magic : kMagics) {
    if (text.starts_with(magic.bytes)) return magic.what;
  }
  if (is_pickle(text)) return "a pickle (a PyTorch file of the old kind?)";
  if (is_tar(first)) return "a tar archive (a PyTorch file of the first kind?)";
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  for (const std::string_view tag : {"<!doctype html"sv, "<html"sv, "<head"sv, "<body"sv}) {
    if (starts_with_ignoring_case(text, tag))
      return "an HTML page (an error page of a server, saved under this name?)";
  }
  if (!is_text(text)) return {};
  if (text.starts_with("<?xml") || text.starts_with("<Error>"))
    return "an XML document (an error message of a server?)";
  if (text.starts_with('{') || text.starts_with('[')) return kJsonText;
  return "plain text";
}

bool is_json_text(std::span<const std::byte> first) {
  return what_is_it(first) == kJsonText;
}

}  // namespace ballast
