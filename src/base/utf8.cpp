// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

namespace ballast {

CodePoint decode_utf8(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead >= 0xC2 && lead < 0xE0 && continues(1)) return {(lead & 0x1FU) << 6U | (byte(1) & 0x3FU), 2};
  if (lead >= 0xE0 && lead < 0xF0 && continues(1) && continues(2)) {
    const char32_t value = (lead & 0x0FU) << 12U | (byte(1) & 0x3FU) << 6U | (byte(2) & 0x3FU);
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && continues(1) && continues(2) && continues(3)) {
    const char32_t value =
        (lead & 0x07U) << 18U | (byte(1) & 0x3FU) << 12U | (byte(2) & 0x3FU) << 6U | (byte(3) & 0x3FU);
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4};
  }
  return {lead, 0};
}

}  // namespace ballast
