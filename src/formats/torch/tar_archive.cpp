// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/tar_archive.h"

#include <algorithm>
#include <optional>

#include "ballast/display.h"
#include "base/bytes.h"
#include "base/checked.h"

namespace ballast::torch {
namespace {

constexpr std::uint64_t kTarBlock = 512;
constexpr std::uint64_t kMaxNames = std::uint64_t{1} << 20U;  // of a long name or a PAX header
constexpr std::size_t kMaxMembers = 10'000;

// Offsets of the ustar header.
constexpr std::size_t kSizeAt = 124;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kTypeAt = 156;
constexpr std::size_t kMagicAt = 257;
constexpr std::size_t kPrefixAt = 345;

std::string_view field(std::span<const std::byte> header, std::size_t offset, std::size_t size) {
  const std::string_view text = as_text(header.subspan(offset, size));
  return text.substr(0, text.find('\0'));
}

// Octal digits between spaces and NULs.
std::optional<std::uint64_t> octal(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value << 3U | static_cast<std::uint64_t>(c - '0');
  }
  return text.empty() ? std::nullopt : std::optional(value);
}

class TarReader {
 public:
  explicit TarReader(const Source& source) : source_(source) {}

  std::vector<TarMember> read() {
    while (position_ < source_.size() && next()) {
    }
    return std::move(members_);
  }

 private:
  template <class... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Errc::bad_tar, fmt::format("{}, tar header at byte {}", source_.where(), position_), format,
         std::forward<Args>(args)...);
  }

  [[nodiscard]] std::uint64_t size_field(std::span<const std::byte> header) const {
    const auto bytes = header.subspan(kSizeAt, 12);
    if ((bytes[0] & std::byte{0x80}) == std::byte{0}) {
      const auto size = octal(as_text(bytes));
      if (!size) bad("size {}", quoted(as_text(bytes)));
      return *size;
    }
    // GNU: a big-endian number, the first bit being the mark and the second the sign.
    if ((bytes[0] & std::byte{0x7F}) != std::byte{0}) bad("a size that is negative or beyond any disk");
    std::uint64_t size = 0;
    for (std::size_t i = 1; i < bytes.size(); ++i) {
      if (size >> 56U != 0) bad("a size beyond any disk");
      size = size << 8U | static_cast<std::uint64_t>(bytes[i]);
    }
    return size;
  }

  void check_sum(std::span<const std::byte> header) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kTarBlock; ++i) {
      const bool in_sum = i >= kChecksumAt && i < kChecksumAt + 8;
      sum += in_sum ? std::uint64_t{' '} : static_cast<std::uint64_t>(header[i]);
    }
    if (octal(as_text(header.subspan(kChecksumAt, 8))) != sum) bad("a checksum that is not {}", sum);
  }

  static bool escapes(std::string_view name) {
    if (name.starts_with('/') || name.find('\\') != std::string_view::npos ||
        name.find('\0') != std::string_view::npos)
      return true;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('/', at), name.size());
      if (name.substr(at, end - at) == "..") return true;
      at = end + 1;
    }
    return false;
  }

  // "19 path=some/name\n", one after the other. The size must be the header's own: readers disagree on which
  // one counts.
  void read_pax(std::string_view text) {
    while (!text.empty()) {
      std::size_t length = 0;
      std::size_t digits = 0;
      while (digits < text.size() && digits < 9 && text[digits] >= '0' && text[digits] <= '9')
        length = length * 10 + static_cast<std::size_t>(text[digits++] - '0');
      if (digits == 0 || digits >= text.size() || text[digits] != ' ' || length <= digits + 1 ||
          length > text.size() || text[length - 1] != '\n') {
        bad("a PAX record {}", quoted(text.substr(0, 80)));
      }
      const std::string_view record = text.substr(digits + 1, length - digits - 2);
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos) bad("a PAX record {}", quoted(record));
      if (record.substr(0, equals) == "path") long_name_ = record.substr(equals + 1);
      if (record.substr(0, equals) == "size") pax_size_ = record.substr(equals + 1);
      text.remove_prefix(length);
    }
  }

  bool next() {
    if (!fits(position_, kTarBlock, source_.size())) {
      fail(Errc::truncated, source_.where(),
           "ends at byte {}, inside a tar header: the download was cut short?", source_.size());
    }
    const auto block = source_.load(position_, kTarBlock);
    const auto header = span_of(*block);
    if (std::all_of(header.begin(), header.end(), [](std::byte b) { return b == std::byte{0}; }))
      return false;
    check_sum(header);
    if (as_text(header.subspan(kMagicAt, 5)) != "ustar") bad("no ustar mark");
    const std::uint64_t size = size_field(header);
    const std::uint64_t content = position_ + kTarBlock;
    if (!fits(content, size, source_.size())) {
      fail(Errc::truncated, source_.where(),
           "a tar member of {} bytes at byte {}, the file has {}: the download was cut short?", size, content,
           source_.size());
    }
    const char type = static_cast<char>(header[kTypeAt]);
    if (type == 'x' || type == 'L') {
      if (size > kMaxNames) bad("a name of {} bytes", size);
      const auto text = source_.load(content, size);
      if (type == 'x')
        read_pax(as_text(span_of(*text)));
      else
        long_name_ = std::string(field(span_of(*text), 0, static_cast<std::size_t>(size)));
    } else if (type == '0' || type == '\0') {
      add(header, content, size);
    } else if (type != 'g' && type != '5') {
      bad("a member of type {}: only regular files belong into a checkpoint", quoted({&type, 1}));
    }
    position_ = content + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    return true;
  }

  void add(std::span<const std::byte> header, std::uint64_t content, std::uint64_t size) {
    std::string name(field(header, 0, 100));
    const bool is_gnu = as_text(header.subspan(kMagicAt, 8)) == "ustar  \0";
    if (const auto prefix = field(header, kPrefixAt, 155); !is_gnu && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    if (!long_name_.empty()) name = std::exchange(long_name_, {});
    if (!pax_size_.empty() && pax_size_ != std::to_string(size))
      bad("size {} in the header, {} in its PAX record", size, quoted(pax_size_));
    pax_size_.clear();
    if (escapes(name)) fail(Errc::path_escape, source_.where(), "a tar member called {}", quoted(name));
    if (std::any_of(members_.begin(), members_.end(),
                    [&](const TarMember& member) { return member.name == name; })) {
      fail(Errc::duplicate_entry, source_.where(), "two tar members called {}", quoted(name));
    }
    if (members_.size() == kMaxMembers)
      fail(Errc::too_many, source_.where(), "more than {} tar members", kMaxMembers);
    members_.push_back({.name = std::move(name), .offset = content, .size = size});
  }

  const Source& source_;
  std::uint64_t position_ = 0;
  std::vector<TarMember> members_;
  std::string long_name_;
  std::string pax_size_;
};

}  // namespace

std::vector<TarMember> read_tar_members(const Source& source) {
  return TarReader(source).read();
}

}  // namespace ballast::torch
