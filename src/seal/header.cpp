// SPDX-License-Identifier: Apache-2.0
#include "seal/header.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/fail.h"
#include "seal/text.h"

namespace ballast::seal {
namespace {

constexpr std::string_view kAnyVersion = "age-encryption.org/";
constexpr std::string_view kArmor = "-----BEGIN AGE ENCRYPTED FILE-----";
constexpr std::size_t kColumns = 64;
constexpr std::size_t kFirstRead = 4096;

Key mac_key(const FileKey& key) {
  return hkdf(key.bytes(), {}, "header");
}

// Lines of a source, read ahead in growing pieces, up to the limit of a header.
class Lines {
 public:
  explicit Lines(const ByteSource& source) : source_(source) {}

  // Without its line break.
  std::string_view next() {
    std::size_t end = text_.find('\n', position_);
    while (end == std::string::npos) {
      const std::size_t searched = text_.size();
      grow();
      end = text_.find('\n', searched);
    }
    const std::string_view line = std::string_view(text_).substr(position_, end - position_);
    start_ = position_;
    position_ = end + 1;
    ++number_;
    return line;
  }

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] std::size_t start() const noexcept { return start_; }  // of the last line
  [[nodiscard]] std::size_t end() const noexcept { return position_; }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void grow() {
    if (text_.size() == source_.size())
      fail(Errc::truncated, source_.where(), "ends after {} bytes, inside the header of an age file",
           text_.size());
    if (text_.size() == kMaxHeaderBytes)
      fail(Errc::header_too_large, source_.where(), "a header of age of more than {} bytes", kMaxHeaderBytes);
    const std::uint64_t wanted = std::max(kFirstRead, std::min(text_.size() * 4, kMaxHeaderBytes));
    const std::size_t old = text_.size();
    text_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, source_.size())));
    source_.read(old, std::as_writable_bytes(std::span(text_)).subspan(old));
  }

  const ByteSource& source_;
  std::string text_;
  std::size_t start_ = 0;
  std::size_t position_ = 0;
  std::size_t number_ = 0;
};

class HeaderReader {
 public:
  explicit HeaderReader(const ByteSource& source) : source_(source), lines_(source) {}

  Header run() {
    read_version();
    while (true) {
      const std::string_view line = lines_.next();
      if (line.starts_with("-> ")) {
        read_stanza(line.substr(3));
      } else if (line.starts_with("--- ")) {
        read_mac(line.substr(4));
        return std::move(header_);
      } else {
        refuse("begins neither a stanza (->) nor the end (---)");
      }
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(Errc::bad_age, source_.where(), "line {} of the header {}: damaged, or not written by age",
         lines_.number(), what);
  }

  void read_version() {
    const auto first = source_.read(0, std::min<std::uint64_t>(source_.size(), kArmor.size()));
    if (as_text(first).starts_with(kArmor))
      fail(Errc::unsupported, source_.where(),
           "is an age file in armor (letters), which cannot be read by position; make it a plain one: age "
           "-d, then "
           "encrypt without -a");
    if (as_text(first).starts_with(kVersionLine)) {
      static_cast<void>(lines_.next());
      return;
    }
    if (!is_age(as_text(first))) fail(Errc::bad_age, source_.where(), "is no age file");
    fail(Errc::unsupported, source_.where(), "is an age file, but not of version 1, which Ballast reads");
  }

  void read_stanza(std::string_view line) {
    if (header_.stanzas.size() == kMaxStanzas)
      fail(Errc::too_many, source_.where(), "a header of age with more than {} stanzas", kMaxStanzas);
    Stanza stanza;
    while (true) {
      const std::size_t space = line.find(' ');
      const std::string_view argument = line.substr(0, space);
      const bool is_printable =
          std::all_of(argument.begin(), argument.end(), [](char c) { return c >= '!' && c <= '~'; });
      if (argument.empty() || !is_printable) refuse("has an argument that is empty or not printable");
      stanza.arguments.emplace_back(argument);
      if (space == std::string_view::npos) break;
      line.remove_prefix(space + 1);
    }
    read_body(stanza);
    header_.stanzas.push_back(std::move(stanza));
  }

  // Full lines, and one that is not, which may be empty.
  void read_body(Stanza& stanza) {
    while (true) {
      const std::string_view line = lines_.next();
      const auto bytes = line.size() > kColumns ? std::nullopt : from_base64(line);
      if (!bytes) refuse("is not canonical Base64 of at most 64 letters");
      stanza.body.insert(stanza.body.end(), bytes->begin(), bytes->end());
      if (line.size() < kColumns) return;
    }
  }

  void read_mac(std::string_view text) {
    const auto mac = from_base64(text);
    if (!mac || mac->size() != header_.mac.size()) refuse("is no MAC of 32 bytes in canonical Base64");
    if (header_.stanzas.empty()) refuse("comes before any stanza");
    std::copy(mac->begin(), mac->end(), header_.mac.begin());
    header_.authenticated = lines_.text().substr(0, lines_.start() + 3);
    header_.size = lines_.end();
  }

  const ByteSource& source_;
  Lines lines_;
  Header header_;
};

}  // namespace

bool is_age(std::string_view first) noexcept {
  return first.starts_with(kAnyVersion) || first.starts_with(kArmor);
}

Header read_header(const ByteSource& source) {
  return HeaderReader(source).run();
}

void require_mac(const Header& header, const FileKey& key, const std::string& where) {
  if (!equal_in_constant_time(hmac_sha256(mac_key(key), header.authenticated), header.mac))
    fail(Errc::bad_tag, where, "its header was changed after it was encrypted (the MAC is wrong)");
}

std::string write_header(const std::vector<Stanza>& stanzas, const FileKey& key) {
  std::string text(kVersionLine);
  for (const Stanza& stanza : stanzas) {
    text += "->";
    for (const std::string& argument : stanza.arguments) text += ' ' + argument;
    text += '\n';
    const std::string body = base64(stanza.body);
    for (std::size_t at = 0; at <= body.size(); at += kColumns) text += body.substr(at, kColumns) + '\n';
  }
  text += "---";
  const std::string mac = base64(hmac_sha256(mac_key(key), text));
  return text + ' ' + mac + '\n';
}

}  // namespace ballast::seal
