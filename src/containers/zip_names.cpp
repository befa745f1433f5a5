// SPDX-License-Identifier: Apache-2.0
#include "containers/zip_names.h"

#include <algorithm>
#include <array>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/utf8.h"

namespace ballast::containers {
namespace {

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// Bytes that need a second look: control characters, separators of other systems, and everything beyond
// ASCII.
constexpr std::array<bool, 256> kSuspicious = [] {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < table.size(); ++c) table[c] = c < 0x20 || c >= 0x7F || c == '\\' || c == ':';
  return table;
}();

bool has_parent_component(std::string_view name) {
  for (std::size_t at = name.find(".."); at != std::string_view::npos; at = name.find("..", at + 1)) {
    const auto separates = [&](std::size_t i) {
      return i >= name.size() || name[i] == '/' || name[i] == '\\';
    };
    if ((at == 0 || separates(at - 1)) && separates(at + 2)) return true;
  }
  return false;
}

bool is_drive(std::string_view name) {
  return name.size() >= 2 && name[1] == ':' && lower(name[0]) >= 'a' && lower(name[0]) <= 'z';
}

}  // namespace

bool is_plain_zip_name(std::string_view name) noexcept {
  char before = '/';
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '_';
    if (!plain && (c != '/' || before == '/')) return false;
    before = c;
  }
  return !name.empty();
}

void check_zip_name(std::string_view name, bool utf8, const std::string& where) {
  if (is_plain_zip_name(name)) return;
  if (name.empty()) fail(Errc::bad_name, where, "an entry without a name");
  if (name.front() == '/' || name.front() == '\\' || is_drive(name) || has_parent_component(name)) {
    fail(Errc::path_escape, where, "entry {} would lie outside the archive's folder", quoted(name));
  }
  if (name == "." || name.starts_with("./") || name.ends_with("/.") ||
      name.find("//") != std::string_view::npos || name.find("/./") != std::string_view::npos)
    fail(Errc::bad_name, where, "entry {}: an empty part or a dot in its path, which readers take out",
         quoted(name));
  const auto suspicious = [](char c) { return kSuspicious[static_cast<unsigned char>(c)]; };
  if (std::none_of(name.begin(), name.end(), suspicious)) return;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      fail(Errc::bad_name, where, "entry {}: a control character in its name", quoted(name));
    if (c == '\\')
      fail(Errc::bad_name, where, "entry {}: a backslash in its name, which systems read differently",
           quoted(name));
  }
  const bool ascii =
      std::none_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  if (!utf8 && !ascii)
    fail(Errc::bad_name, where,
         "entry {}: beyond ASCII and not marked as UTF-8, which readers decode differently", quoted(name));
  if (utf8 && !is_utf8(name))
    fail(Errc::bad_name, where, "entry {}: marked as UTF-8 and is not", quoted(name));
}

void fold_case(std::string_view name, std::string& out) {
  out.resize(name.size());
  std::transform(name.begin(), name.end(), out.begin(), lower);
}

bool equal_any_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace ballast::containers
