// SPDX-License-Identifier: Apache-2.0
// The header of an array: a Python dict literal behind a magic number.
//
//   1. bytes 0-5   "\x93NUMPY"
//   2. bytes 6-7   version: 1.0, 2.0 or 3.0
//   3. length of what follows, little-endian: 2 bytes in version 1, 4 in the others
//   4. {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, filled with spaces up to a multiple of 64
//   and
//      ended by a newline
//   5. the elements
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "ballast/error.h"
#include "base/bytes.h"
#include "formats/instead_of.h"
#include "formats/npy/npy.h"
#include "tensor/describe.h"

namespace ballast::npy {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kMaxDict = 10'000;  // what NumPy itself reads without being told to
constexpr std::size_t kMaxRank = 64;

// The dict, in the forms NumPy has ever written it.
class DictReader {
 public:
  DictReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Header read() {
    Header header{};
    std::array<bool, 3> seen{};
    expect('{');
    while (!take('}')) {
      const std::string_view key = quoted_text("a key");
      expect(':');
      constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};
      const auto found = std::find(kKeys.begin(), kKeys.end(), key);
      if (found == kKeys.end() || std::exchange(seen[static_cast<std::size_t>(found - kKeys.begin())], true))
        fail(Errc::bad_npy, where_, "an unexpected key {}", quoted(key));
      if (key == "descr")
        read_descr(header);
      else if (key == "fortran_order")
        header.fortran_order = read_truth();
      else
        header.shape = read_shape();
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    if (at_ != text_.size()) bad("the end");
    if (!seen[0] || !seen[1] || !seen[2]) fail(Errc::bad_npy, where_, "lacks descr, fortran_order or shape");
    return header;
  }

 private:
  void read_descr(Header& header) {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '('))
      fail(Errc::unsupported, where_, "is a structured array: a tensor has elements of one type");
    const std::string_view descr = quoted_text("a dtype");
    std::string_view type = descr;
    const char order = type.empty() ? '\0' : type[0];
    if (order == '<' || order == '>' || order == '|' || order == '=') type.remove_prefix(1);
    const auto dtype = dtype_from_numpy(type);
    if (!dtype) refuse(type, descr);
    header.dtype = *dtype;
    header.big_endian = order == '>' && info(*dtype).bits > 8;
  }

  [[noreturn]] void refuse(std::string_view type, std::string_view descr) const {
    std::string_view what = "a dtype no tensor has";
    if (type.starts_with('O')) what = "Python objects: a pickle, which could run code";
    if (type.starts_with('U') || type.starts_with('S') || type.starts_with('a')) what = "text";
    if (type.starts_with('M') || type.starts_with('m')) what = "dates";
    if (type.starts_with('V')) what = "raw bytes (BF16 or F8 saved by ml_dtypes, which loses their type?)";
    if (type == "f16" || type == "c32" || type == "f12" || type == "f10")
      what = "a dtype that differs from machine to machine";
    fail(Errc::unsupported, where_, "dtype {}: {}", quoted(descr), what);
  }

  bool read_truth() {
    skip_space();
    for (const auto& [word, truth] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return truth;
    }
    bad("True or False");
  }

  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      skip_space();
      if (text_.substr(at_).starts_with('0') && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' &&
          text_[at_ + 1] <= '9')
        bad("a dimension");  // 01 is no number in Python
      std::int64_t dim = -1;
      const auto result = std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (result.ec == std::errc::result_out_of_range)
        fail(Errc::size_overflow, where_, "a dimension that does not fit into 64 bits");
      if (result.ec != std::errc() || dim < 0) bad("a dimension");
      at_ = static_cast<std::size_t>(result.ptr - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
      shape.push_back(dim);
      if (shape.size() > kMaxRank)
        fail(Errc::too_many, where_, "more than {} dimensions are not read", kMaxRank);
      if (take(',')) continue;
      if (shape.size() == 1) bad("a comma");  // (3) is a number, (3,) a tuple
      expect(')');
      break;
    }
    return shape;
  }

  std::string_view quoted_text(std::string_view wanted) {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') bad(wanted);
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad(wanted);
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) bad(std::string_view(&c, 1));
  }

  [[noreturn]] void bad(std::string_view wanted) const {
    fail(Errc::bad_npy, where_, "the header is no dict as NumPy writes it: {} should be at character {}",
         wanted, at_);
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

void check_size(const Header& header, std::uint64_t bytes, const std::string& where) {
  const auto bits = try_bits(header.dtype, header.shape);
  if (!bits)
    fail(Errc::size_overflow, where, "the size of {} does not fit into 64 bits", to_string(header.shape));
  const std::uint64_t needed = *bits / 8;
  if (needed == bytes) return;
  fail(needed > bytes ? Errc::truncated : Errc::trailing_data, where,
       "{} {} needs {} bytes, {} follow the header", info(header.dtype).code, to_string(header.shape), needed,
       bytes);
}

}  // namespace

Header header_of(std::span<const std::byte> first, std::uint64_t size, const std::string& where) {
  ByteReader in(first, where);
  if (!is_npy(first)) fail(Errc::bad_npy, where, "does not begin with NumPy's magic number");
  in.seek(kMagic.size());
  const auto major = in.take_le<std::uint8_t>();
  const auto minor = in.take_le<std::uint8_t>();
  if (major < 1 || major > 3 || minor != 0)
    fail(Errc::unsupported, where, "version {}.{} of NumPy's format, which Ballast does not read", major,
         minor);
  const std::uint32_t length = major == 1 ? in.take_le<std::uint16_t>() : in.take_le<std::uint32_t>();
  if (length > kMaxDict)
    fail(Errc::header_too_large, where, "a header of {} bytes, at most {} are read", length, kMaxDict);
  Header header = DictReader(in.take_text(length), where).read();
  header.data = in.position();
  check_size(header, size - header.data, where);
  return header;
}

std::string header_text(const Entry& entry, const std::string& where) {
  constexpr std::size_t kMostDimensions = 64;  // NumPy's own limit
  if (entry.shape.size() > kMostDimensions)
    fail(Errc::not_representable, where, "tensor {} has {} dimensions, NumPy has at most {}",
         quoted(entry.name), entry.shape.size(), kMostDimensions);
  const DTypeInfo& type = info(entry.dtype);
  if (type.numpy.empty())
    fail(Errc::not_representable, where, "tensor {} is {}, which NumPy does not have{}", quoted(entry.name),
         type.code, instead_of(entry.dtype));
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': (",
                                 type.bits > 8 ? '<' : '|', type.numpy);
  for (std::size_t i = 0; i < entry.shape.size(); ++i)
    dict += fmt::format("{}{}", i == 0 ? "" : ", ", entry.shape[i]);
  dict += entry.shape.size() == 1 ? ",), }" : "), }";
  const std::size_t prefix = kMagic.size() + 4;
  const std::size_t whole = (prefix + dict.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  dict.resize(whole - prefix - 1, ' ');
  dict += '\n';
  std::string text(kMagic);
  text.append("\1\0", 2);
  text += static_cast<char>(dict.size() & 0xFFU);
  text += static_cast<char>(dict.size() >> 8U);
  return text + dict;
}

bool is_npy(std::span<const std::byte> head) noexcept {
  return as_text(head).starts_with(kMagic);
}

}  // namespace ballast::npy
