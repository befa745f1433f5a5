// SPDX-License-Identifier: Apache-2.0
#include "containers/tar.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"

namespace ballast::containers {
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
  explicit TarReader(const ByteSource& source) : source_(source) {}

  std::vector<TarMember> read() {
    while (position_ < source_.size() && next()) {
    }
    check_end();
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

  // Whoever unpacks the archive gets a file of that name, in its folder.
  void check_name(std::string_view name) const {
    if (name.empty()) bad("a member without a name");
    bool escapes = name.starts_with('/') || name.find('\\') != std::string_view::npos ||
                   name.find('\0') != std::string_view::npos;
    bool is_odd = false;
    for (std::size_t at = 0; at <= name.size();) {
      const std::size_t end = std::min(name.find('/', at), name.size());
      const std::string_view part = name.substr(at, end - at);
      escapes = escapes || part == "..";
      is_odd = is_odd || part.empty() || (part == "." && at != 0);
      at = end + 1;
    }
    if (escapes) fail(Errc::path_escape, source_.where(), "a tar member called {}", quoted(name));
    if (is_odd || name == ".") bad("a member called {}, which readers shorten differently", quoted(name));
  }

  // "19 path=some/name\n", one after the other. The size must be the header's own: readers disagree on which
  // one counts. What holds for all that follows, or for holes in files, may not rename or resize anything.
  void read_pax(std::string_view text, bool global) {
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
      if (equals == std::string_view::npos || equals == 0) bad("a PAX record {}", quoted(record));
      take_pax(record.substr(0, equals), record.substr(equals + 1), global);
      text.remove_prefix(length);
    }
  }

  void take_pax(std::string_view key, std::string_view value, bool global) {
    const bool names = key == "path" || key == "size";
    if ((names && global) || key.starts_with("GNU.sparse") || key == "hdrcharset")
      bad("a PAX record {} that readers treat differently", quoted(key));
    if (key == "path") name_it(std::string(value));
    if (key == "size" && pax_size_) bad("two sizes in PAX records");
    if (key == "size") pax_size_ = value;
  }

  // Of two long names readers take different ones.
  void name_it(std::string name) {
    if (long_name_ || name.empty()) bad("a long name {} beside another", quoted(name));
    long_name_ = std::move(name);
  }

  bool next() {
    if (!fits(position_, kTarBlock, source_.size())) {
      fail(Errc::truncated, source_.where(),
           "ends at byte {}, inside a tar header: the download was cut short?", source_.size());
    }
    const auto block = load_range(source_, position_, kTarBlock);
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
    if (type == 'x' || type == 'g' || type == 'L') {
      if (size > kMaxNames) bad("a name of {} bytes", size);
      const auto text = load_range(source_, content, size);
      if (type == 'L')
        name_it(std::string(field(span_of(*text), 0, static_cast<std::size_t>(size))));
      else
        read_pax(as_text(span_of(*text)), type == 'g');
    } else if (type == '0' || type == '\0') {
      if (type == '\0' && field(header, 0, 100).ends_with('/')) bad("a file whose name makes it a folder");
      add(take_name(header, size), content, size);
    } else if (type == '5') {
      if (size != 0) bad("a folder with {} bytes in it", size);  // which Python does not skip
      std::string name = take_name(header, size);
      while (name.ends_with('/')) name.pop_back();
      if (name != ".") check_name(name);
    } else {
      bad("a member of type {}: only regular files belong into a checkpoint",
          quoted(std::string_view(&type, 1)));
    }
    position_ = content + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    return true;
  }

  // The name and size as the records before this header have them, which are used up.
  std::string take_name(std::span<const std::byte> header, std::uint64_t size) {
    std::string name(field(header, 0, 100));
    if (const auto prefix = field(header, kPrefixAt, 155); !prefix.empty()) {
      // GNU's own headers keep times there, which Python takes for a part of the name.
      if (as_text(header.subspan(kMagicAt, 8)) == std::string_view("ustar  \0", 8))
        bad("a name in two parts in a GNU header");
      name = std::string(prefix) + "/" + name;
    }
    if (long_name_) name = *std::exchange(long_name_, std::nullopt);
    if (pax_size_ && *pax_size_ != std::to_string(size))
      bad("size {} in the header, {} in its PAX record", size, quoted(*pax_size_));
    pax_size_.reset();
    return name;
  }

  void add(std::string name, std::uint64_t content, std::uint64_t size) {
    check_name(name);
    if (!names_.insert(name.starts_with("./") ? name.substr(2) : name).second)
      fail(Errc::duplicate_entry, source_.where(), "two tar members called {}", quoted(name));
    if (members_.size() == kMaxMembers)
      fail(Errc::too_many, source_.where(), "more than {} tar members", kMaxMembers);
    members_.push_back({.name = std::move(name), .offset = content, .size = size});
  }

  // Behind the end there are zeros, to fill a block of a tape: another archive there would be seen by some.
  void check_end() {
    if (long_name_ || pax_size_) bad("a long name of nothing");
    if (position_ >= source_.size()) return;
    const std::uint64_t rest = source_.size() - position_;
    const auto bytes = load_range(source_, position_, std::min(rest, kMaxNames));
    const auto text = as_text(span_of(*bytes));
    if (rest > kMaxNames || text.find_first_not_of('\0') != std::string_view::npos)
      fail(Errc::trailing_data, source_.where(), "{} bytes behind the end of the tar archive, at byte {}",
           rest, position_);
  }

  const ByteSource& source_;
  std::uint64_t position_ = 0;
  std::vector<TarMember> members_;
  std::set<std::string> names_;  // without "./"
  std::optional<std::string> long_name_;
  std::optional<std::string> pax_size_;
};

}  // namespace

std::vector<TarMember> read_tar_members(const ByteSource& source) {
  return TarReader(source).read();
}

}  // namespace ballast::containers
