// SPDX-License-Identifier: Apache-2.0
#include "base/json_scanner.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "ballast/error.h"
#include "base/ascii.h"

namespace ballast {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighs = 0x8080808080808080;

constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - kOnes) & ~word & kHighs;
}

// The first byte at or after `text` that ends or interrupts a string: a quote, a backslash or a control
// character. Padding has some.
char* string_stop(char* text) {
  for (;; text += 8) {
    std::uint64_t word;
    std::memcpy(&word, text, sizeof word);
    // A flag above the first true one may be wrong (borrows run upwards), the first never is.
    const std::uint64_t stops = zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\') |
                                ((word - kOnes * 0x20) & ~word & kHighs);
    if (stops != 0) return text + __builtin_ctzll(stops) / 8;
  }
}

std::uint64_t digit_of(char c) {
  return static_cast<std::uint64_t>(c - '0');
}

bool fits_u64(std::uint64_t value, std::uint64_t digit) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  return value < kLargest / 10 || (value == kLargest / 10 && digit <= kLargest % 10);
}

char* append_utf8(char* out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { *out++ = static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0U | point >> 6U);
    put(0x80U | (point & 0x3FU));
  } else if (point < 0x10000) {
    put(0xE0U | point >> 12U);
    put(0x80U | (point >> 6U & 0x3FU));
    put(0x80U | (point & 0x3FU));
  } else {
    put(0xF0U | point >> 18U);
    put(0x80U | (point >> 12U & 0x3FU));
    put(0x80U | (point >> 6U & 0x3FU));
    put(0x80U | (point & 0x3FU));
  }
  return out;
}

// Exact powers, which multiplication would not give.
double power_of_ten(int exponent) {
  const std::string text = "1e" + std::to_string(exponent);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// A JSON number as digits and a power of ten. serde_json, by whose verdicts Safetensors files live, refuses
// numbers that become infinite, and it computes them quickly rather than correctly: nineteen or twenty
// digits, one rounding for them, one for the power. To agree with it at the very end of the range, the same
// steps are taken here.
class Decimal {
 public:
  explicit Decimal(const char* text) : at_(text) {}

  // Past the number, or null when it is none.
  const char* scan() {
    if (*at_ == '-') ++at_;
    if (!is_digit(*at_)) return nullptr;
    if (*at_ == '0' && is_digit(at_[1])) return nullptr;
    take_digits([this] { ++exponent_; });
    if (*at_ == '.') {
      ++at_;
      if (!is_digit(*at_)) return nullptr;
      full_ = false;
      take_digits([] {}, -1);
    }
    if ((*at_ == 'e' || *at_ == 'E') && !take_exponent()) return nullptr;
    return at_;
  }

  [[nodiscard]] bool is_infinite() const {
    if (digits_ == 0 || exponent_ <= 0) return false;
    return exponent_ > 308 ||
           std::isinf(static_cast<double>(digits_) * power_of_ten(static_cast<int>(exponent_)));
  }

 private:
  // Digits as long as they fit into 64 bits; `dropped` is called for each that does not, `step` is what one
  // that fits adds to the exponent.
  template <class Dropped>
  void take_digits(Dropped dropped, std::int64_t step = 0) {
    for (; is_digit(*at_); ++at_) {
      full_ = full_ || !fits_u64(digits_, digit_of(*at_));
      if (full_) {
        dropped();
        continue;
      }
      digits_ = digits_ * 10 + digit_of(*at_);
      exponent_ += step;
    }
  }

  bool take_exponent() {
    ++at_;
    const bool negative = *at_ == '-';
    if (*at_ == '+' || *at_ == '-') ++at_;
    if (!is_digit(*at_)) return false;
    std::int64_t value = 0;
    for (; is_digit(*at_); ++at_)
      value = std::min<std::int64_t>(value * 10 + (*at_ - '0'), std::numeric_limits<std::int32_t>::max());
    exponent_ += negative ? -value : value;
    return true;
  }

  const char* at_;
  std::uint64_t digits_ = 0;
  std::int64_t exponent_ = 0;
  bool full_ = false;
};

}  // namespace

std::string_view JsonScanner::string() {
  if (next() != '"') unexpected("a string");
  char* first = ++at_;
  at_ = string_stop(at_);
  if (*at_ == '"') return {first, static_cast<std::size_t>(at_++ - first)};
  return unescape(first);
}

std::string_view JsonScanner::unescape(char* first) {
  char* out = at_;
  for (;;) {
    char* stop = string_stop(at_);
    std::memmove(out, at_, static_cast<std::size_t>(stop - at_));
    out += stop - at_;
    at_ = stop;
    if (*at_ == '"') break;
    if (*at_ != '\\') {
      if (at_ >= end_) fail(Errc::bad_json, where_, "the header ends inside a string");
      fail(Errc::bad_json, where_, "a control character (0x{:02x}) in a string at byte {} of the JSON text",
           *at_, offset());
    }
    switch (*++at_) {
      case '"':
        *out++ = '"';
        break;
      case '\\':
        *out++ = '\\';
        break;
      case '/':
        *out++ = '/';
        break;
      case 'b':
        *out++ = '\b';
        break;
      case 'f':
        *out++ = '\f';
        break;
      case 'n':
        *out++ = '\n';
        break;
      case 'r':
        *out++ = '\r';
        break;
      case 't':
        *out++ = '\t';
        break;
      case 'u':
        out = append_utf8(out, unicode_escape());
        continue;
      default:
        fail(Errc::bad_json, where_, "an unknown escape in a string at byte {} of the JSON text", offset());
    }
    ++at_;
  }
  ++at_;
  return {first, static_cast<std::size_t>(out - first)};
}

// Four hexadecimal digits after at_, which stands on the 'u'.
std::uint32_t JsonScanner::hex4() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = *++at_;
    const char lower = static_cast<char>(c | 0x20);
    if (is_digit(c))
      value = value << 4U | static_cast<std::uint32_t>(c - '0');
    else if (lower >= 'a' && lower <= 'f')
      value = value << 4U | static_cast<std::uint32_t>(lower - 'a' + 10);
    else
      fail(Errc::bad_json, where_, "a \\u escape without four hexadecimal digits at byte {} of the JSON text",
           offset());
  }
  ++at_;
  return value;
}

std::uint32_t JsonScanner::unicode_escape() {
  const std::uint32_t first = hex4();
  if (first < 0xD800 || first > 0xDFFF) return first;
  if (first <= 0xDBFF && at_[0] == '\\' && at_[1] == 'u') {
    ++at_;
    const std::uint32_t second = hex4();
    if (second >= 0xDC00 && second <= 0xDFFF) return 0x10000 + ((first - 0xD800) << 10U) + (second - 0xDC00);
  }
  fail(Errc::bad_json, where_, "half of a surrogate pair in a string at byte {} of the JSON text", offset());
}

JsonScanner::Number JsonScanner::number() {
  static_cast<void>(next());
  const char* first = at_;
  Number number{true, 0, {}};
  if (!take_unsigned(number.value)) {
    Decimal decimal(at_);
    const char* stop = decimal.scan();
    if (stop == nullptr) unexpected("a number");
    if (decimal.is_infinite()) {
      fail(Errc::bad_json, where_, "number {} at byte {} of the JSON text is out of range",
           display({first, static_cast<std::size_t>(stop - first)}, 40), offset());
    }
    number.is_unsigned = false;
    at_ += stop - at_;
  }
  number.text = {first, static_cast<std::size_t>(at_ - first)};
  return number;
}

bool JsonScanner::take_unsigned(std::uint64_t& value) {
  constexpr std::ptrdiff_t kAlwaysFits = 19;  // digits
  const char* c = at_;
  std::uint64_t sum = 0;
  for (; is_digit(*c); ++c) sum = sum * 10 + digit_of(*c);
  const std::ptrdiff_t digits = c - at_;
  if (digits == 0 || (*at_ == '0' && digits > 1) || *c == '.' || *c == 'e' || *c == 'E') return false;
  if (digits > kAlwaysFits) {
    // 2^64 - 1 has twenty digits; the sum wrapped around unless it continues the first nineteen.
    std::uint64_t start = 0;
    for (const char* d = at_; d < at_ + kAlwaysFits; ++d) start = start * 10 + digit_of(*d);
    if (digits > kAlwaysFits + 1 || !fits_u64(start, digit_of(at_[kAlwaysFits]))) return false;
  }
  value = sum;
  at_ += digits;
  return true;
}

void JsonScanner::literal(std::string_view text) {
  if (!take_text(text)) unexpected(text);
}

void JsonScanner::null() {
  static_cast<void>(next());
  literal("null");
}

void JsonScanner::skip_value() {
  switch (peek()) {
    case Kind::object:
      return object([this](std::string_view) { skip_value(); });
    case Kind::array:
      return array([this] { skip_value(); });
    case Kind::string:
      static_cast<void>(string());
      return;
    case Kind::number:
      static_cast<void>(number());
      return;
    case Kind::boolean:
      return literal(*at_ == 't' ? "true" : "false");
    case Kind::null:
      return literal("null");
  }
}

void JsonScanner::finish() {
  static_cast<void>(next());
  if (at_ != end_) unexpected("nothing more");
}

void JsonScanner::unexpected(std::string_view expected) {
  const char c = *at_;
  if (at_ >= end_)
    fail(Errc::bad_json, where_, "the header ends after {} bytes where {} should come", offset(), expected);
  fail(Errc::bad_json, where_, "expected {} at byte {} of the JSON text, found {}", expected, offset(),
       quoted(std::string_view(&c, 1)));
}

void JsonScanner::too_deep() const {
  fail(Errc::bad_json, where_, "nested deeper than {} levels at byte {} of the JSON text", kMaxDepth,
       offset());
}

}  // namespace ballast
