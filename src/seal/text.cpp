// SPDX-License-Identifier: Apache-2.0
#include "seal/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/ascii.h"
#include "seal/primitives.h"

namespace ballast::seal {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBech32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr std::size_t kChecksumLetters = 6;

// One step of the polynomial of BIP 173.
std::uint32_t step(std::uint32_t sum, std::uint8_t value) {
  constexpr std::array<std::uint32_t, 5> kGenerator = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
                                                       0x2a1462b3};
  const std::uint32_t top = sum >> 25U;
  sum = (sum & 0x1ffffffU) << 5U ^ value;
  for (unsigned i = 0; i < kGenerator.size(); ++i) {
    if ((top >> i & 1U) != 0) sum ^= kGenerator[i];
  }
  return sum;
}

std::uint32_t checksum(std::string_view prefix, std::span<const std::uint8_t> values) {
  std::uint32_t sum = 1;
  for (const char c : prefix) sum = step(sum, static_cast<std::uint8_t>(static_cast<unsigned char>(c) >> 5U));
  sum = step(sum, 0);
  for (const char c : prefix) sum = step(sum, static_cast<unsigned char>(c) & 31U);
  for (const std::uint8_t value : values) sum = step(sum, value);
  return sum;
}

// From groups of `from` bits to groups of `to`, the last filled up with zeros.
class Regroup {
 public:
  Regroup(unsigned from, unsigned to) : from_(from), to_(to) {}

  template <class Out>
  void add(std::uint32_t value, Out&& out) {
    held_ = held_ << from_ | value;
    count_ += from_;
    while (count_ >= to_) {
      count_ -= to_;
      out(held_ >> count_ & ((1U << to_) - 1));
      held_ &= (1U << count_) - 1;
    }
  }

  [[nodiscard]] unsigned left() const noexcept { return count_; }
  /// The bits that did not fill a group.
  [[nodiscard]] std::uint32_t rest() const noexcept { return held_; }

 private:
  unsigned from_;
  unsigned to_;
  std::uint32_t held_ = 0;
  unsigned count_ = 0;
};

}  // namespace

std::string base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  Regroup groups(8, 6);
  for (const std::byte byte : bytes)
    groups.add(static_cast<std::uint32_t>(byte), [&](std::uint32_t six) { text += kBase64[six]; });
  if (groups.left() > 0) text += kBase64[groups.rest() << (6 - groups.left()) & 63U];
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() * 3 / 4);
  Regroup groups(6, 8);
  for (const char c : text) {
    const std::size_t six = kBase64.find(c);
    if (six == std::string_view::npos) return std::nullopt;
    groups.add(static_cast<std::uint32_t>(six),
               [&](std::uint32_t byte) { bytes.push_back(static_cast<std::byte>(byte)); });
  }
  if (groups.left() >= 6 || groups.rest() != 0) return std::nullopt;
  return bytes;
}

std::string padded_base64(std::span<const std::byte> bytes) {
  std::string text = base64(bytes);
  text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

std::optional<std::vector<std::byte>> from_padded_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return from_base64(text);
}

std::string bech32(std::string_view prefix, std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> values;
  Regroup groups(8, 5);
  const auto add = [&](std::uint32_t five) { values.push_back(static_cast<std::uint8_t>(five)); };
  for (const std::byte byte : bytes) groups.add(static_cast<std::uint32_t>(byte), add);
  if (groups.left() > 0) add(groups.rest() << (5 - groups.left()) & 31U);
  values.resize(values.size() + kChecksumLetters);
  const std::uint32_t sum = checksum(prefix, values) ^ 1U;
  for (unsigned i = 0; i < kChecksumLetters; ++i)
    values[values.size() - kChecksumLetters + i] = static_cast<std::uint8_t>(sum >> 5U * (5 - i) & 31U);
  std::string text(prefix);
  text += '1';
  for (const std::uint8_t value : values) text += kBech32[value];
  cleanse(std::as_writable_bytes(std::span(values)));
  return text;
}

std::optional<std::vector<std::byte>> from_bech32(std::string_view prefix, std::string_view text) {
  const bool has_lower = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  const bool has_upper = std::any_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
  const std::size_t one = lower.rfind('1');
  if ((has_lower && has_upper) || one == std::string::npos ||
      std::string_view(lower).substr(0, one) != prefix || lower.size() - one - 1 < kChecksumLetters)
    return std::nullopt;
  std::vector<std::uint8_t> values;
  for (const char c : std::string_view(lower).substr(one + 1)) {
    const std::size_t value = kBech32.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    values.push_back(static_cast<std::uint8_t>(value));
  }
  if (checksum(prefix, values) != 1) return std::nullopt;
  values.resize(values.size() - kChecksumLetters);
  std::vector<std::byte> bytes;
  bytes.reserve(values.size());
  Regroup groups(5, 8);
  for (const std::uint8_t five : values)
    groups.add(five, [&](std::uint32_t byte) { bytes.push_back(static_cast<std::byte>(byte)); });
  cleanse(std::as_writable_bytes(std::span(values)));
  cleanse(std::as_writable_bytes(std::span(lower)));
  if (groups.left() >= 5 || groups.rest() != 0) return std::nullopt;
  return bytes;
}

}  // namespace ballast::seal
