// SPDX-License-Identifier: Apache-2.0
#include "containers/magic.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/ascii.h"
#include "base/bytes.h"
#include "base/json_scanner.h"

namespace ballast::containers {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJsonText = "JSON text";

struct Magic {
  std::string_view bytes;
  std::string_view what;
  bool is_data = false;  // some loader of models or arrays reads it, or unpacks it and reads what is inside
};

constexpr std::array kMagics = {
    Magic{"version https://git-lfs.github.com/spec/"sv,
          "a Git LFS pointer: run `git lfs pull` to get the file itself"},
    Magic{"version https://hawser.github.com/spec/"sv,
          "a Git LFS pointer: run `git lfs pull` to get the file itself"},
    Magic{"PK\x03\x04"sv, "a zip archive (a PyTorch file?)", true},
    Magic{"PK\x05\x06"sv, "an empty zip archive", true},
    Magic{"\x1f\x8b"sv, "a gzip file", true},
    Magic{"BZh"sv, "a bzip2 file", true},
    Magic{"\xfd"
          "7zXZ\0"sv,
          "an xz file", true},
    Magic{"\x28\xb5\x2f\xfd"sv, "a zstd file", true},
    Magic{"\x04\x22\x4d\x18"sv, "an lz4 file", true},
    Magic{"\x02\x21\x4c\x18"sv, "an lz4 file of the old kind", true},
    Magic{"7z\xbc\xaf\x27\x1c"sv, "a 7z archive", true},
    Magic{"Rar!\x1a\x07"sv, "a rar archive"},
    Magic{"age-encryption.org/"sv, "a file encrypted with age, which ballast::open() reads with an identity",
          true},
    Magic{"-----BEGIN AGE ENCRYPTED FILE-----"sv, "a file encrypted with age, in armor", true},
    Magic{"GGUF"sv, "a GGUF file, which llama.cpp reads and Ballast does not", true},
    Magic{"\x93NUMPY"sv, "a NumPy .npy file", true},
    Magic{"\x89HDF\r\n\x1a\n"sv, "an HDF5 file (Keras?), which Ballast does not read", true},
    Magic{"\x89PNG\r\n\x1a\n"sv, "a PNG image"},
    Magic{"\xff\xd8\xff"sv, "a JPEG image"},
    Magic{"GIF8"sv, "a GIF image"},
    Magic{"%PDF-"sv, "a PDF document"},
    Magic{"\x7f"
          "ELF"sv,
          "an ELF program"},
    Magic{"MZ"sv, "a Windows program"},
    Magic{"NRUB"sv, "a Burnpack file", true},
};

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() && std::equal(lower.begin(), lower.end(), text.begin(),
                                                   [](char a, char b) { return a == to_lower(b); });
}

// As Python reads the numbers of a tar's header: octal in every spelling of int(), or binary behind a first
// byte that says so. Nothing where there is none.
std::optional<std::int64_t> tar_number(std::span<const std::byte> field) {
  std::uint64_t value = 0;
  if (field[0] == std::byte{0x80} || field[0] == std::byte{0xFF}) {
    if (field[0] == std::byte{0xFF}) value = ~std::uint64_t{0};
    for (const std::byte byte : field.subspan(1)) value = value << 8U | static_cast<std::uint64_t>(byte);
    return static_cast<std::int64_t>(value);
  }
  std::string_view text = as_text(field);
  text = text.substr(0, text.find('\0'));
  const auto is_space = [](char c) {
    return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("0o") || text.starts_with("0O")) text.remove_prefix(2);
  for (const char c : text) {
    if (c == '_') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3U | static_cast<std::uint64_t>(c - '0');
  }
  return is_negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
}

// Protocol 2 and later begin with it; the byte after is the protocol.
bool is_pickle(std::string_view text) {
  return text.size() >= 2 && text[0] == '\x80' && text[1] >= 1 && text[1] <= 5;
}

// What joblib once wrote, and unpacks to this day: "ZF", and 19 letters that int() takes for a hexadecimal
// number, in any of its spellings.
bool is_old_joblib(std::string_view text) {
  constexpr std::string_view kSpellings = "0123456789abcdefABCDEFxX_+- \t\n\v\f\r";
  return text.size() > 21 && text.starts_with("ZF") &&
         text.substr(2, 19).find_first_not_of(kSpellings) == std::string_view::npos;
}

// A frame that readers of zstd pass over, before one that they unpack.
bool is_skipped_zstd(std::string_view text) {
  return text.size() >= 4 && (static_cast<unsigned char>(text[0]) & 0xF0U) == 0x50 &&
         text.substr(1, 3) == "\x2A\x4D\x18";
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
  std::int64_t sum = 0;
  std::int64_t with_sign = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const std::byte byte = i >= kAt && i < kAt + kSize ? std::byte{' '} : first[i];
    sum += static_cast<std::int64_t>(byte);
    with_sign += static_cast<std::int8_t>(byte);
  }
  const auto said = tar_number(first.subspan(kAt, kSize));
  return said == sum || said == with_sign;
}

std::string_view what_is_it(std::span<const std::byte> first) {
  std::string_view text = as_text(first);
  for (const Magic& magic : kMagics) {
    if (text.starts_with(magic.bytes)) return magic.what;
  }
  if (is_old_joblib(text)) return "a file of joblib's, packed as it once was";
  if (is_skipped_zstd(text)) return "a zstd file";
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

bool is_data(std::span<const std::byte> first) {
  const std::string_view text = as_text(first);
  return is_pickle(text) || is_tar(first) || is_old_joblib(text) || is_skipped_zstd(text) ||
         std::any_of(kMagics.begin(), kMagics.end(),
                     [&](const Magic& magic) { return magic.is_data && text.starts_with(magic.bytes); });
}

bool is_zip(std::span<const std::byte> first) noexcept {
  return as_text(first).starts_with("PK\3\4");
}

bool begins_like_zip(std::span<const std::byte> first) {
  return is_zip(first) || as_text(first).starts_with("PK\5\6");
}

bool is_json_text(std::span<const std::byte> first) {
  return what_is_it(first) == kJsonText;
}

}  // namespace ballast::containers
