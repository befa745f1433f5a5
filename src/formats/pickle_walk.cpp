// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_walk.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/checked.h"
#include "base/utf8.h"
#include "formats/pickle_opcodes.h"

namespace ballast {
namespace {

constexpr std::size_t kWindow = 4096;
constexpr std::size_t kLongestLine = 4096;
constexpr std::uint64_t kMostOpcodes = std::uint64_t{1} << 18U;

enum class Step : std::uint8_t { go_on, import, end };

class Walker {
 public:
  explicit Walker(const ByteSource& source) : source_(source) {}

  std::optional<std::uint64_t> run() {
    for (std::uint64_t i = 0; i < kMostOpcodes; ++i) {
      const std::uint64_t at = position_;
      const auto opcode = take(1);
      if (!opcode) return std::nullopt;
      const auto code = static_cast<unsigned char>(*opcode);
      const bool is_whole = take_argument(pickle_argument(code)) == Step::go_on;
      const Step step = is_whole ? follow(code) : Step::end;
      if (step == Step::import) return at;
      if (step == Step::end) return std::nullopt;
    }
    return position_;
  }

 private:
  // A little-endian number of `bytes` bytes; none at the end of the file.
  std::optional<std::uint64_t> take(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (position_ >= source_.size()) return std::nullopt;
      if (position_ < window_at_ || position_ - window_at_ >= window_.size()) {
        window_at_ = position_;
        window_.resize(
            static_cast<std::size_t>(std::min<std::uint64_t>(kWindow, source_.size() - position_)));
        source_.read(position_, window_);
      }
      value |= static_cast<std::uint64_t>(window_[static_cast<std::size_t>(position_ - window_at_)])
               << 8U * i;
      ++position_;
    }
    return value;
  }

  Step skip(std::uint64_t bytes) {
    if (!fits(position_, bytes, source_.size())) return Step::end;
    position_ += bytes;
    return Step::go_on;
  }

  std::optional<std::string> line() {
    std::string text;
    for (auto c = take(1); c && text.size() < kLongestLine; c = take(1)) {
      if (*c == '\n') return text;
      text += static_cast<char>(*c);
    }
    return std::nullopt;
  }

  // Takes `below` from the stack and puts one thing there, unless there are not that many.
  Step replace(std::uint64_t below, std::uint64_t with = 1) {
    if (depth_ - bottom() < below) return Step::end;
    depth_ = depth_ - below + with;
    return Step::go_on;
  }

  [[nodiscard]] std::uint64_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  Step to_mark(std::uint64_t below, std::uint64_t with) {
    if (marks_.empty()) return Step::end;
    depth_ = marks_.back();
    marks_.pop_back();
    return replace(below, with);
  }

  // The names of a module and of something in it; none has such a name as this refuses.
  Step names() {
    for (int i = 0; i < 2; ++i) {
      const auto name = line();
      const bool plain = name && !name->empty() && is_utf8(*name) &&
                         std::none_of(name->begin(), name->end(), [](char c) { return c >= 0 && c < 0x20; });
      if (!plain) return Step::end;
    }
    return Step::go_on;
  }

  // Past what stands behind an opcode.
  Step take_argument(PickleArgument argument) {
    switch (argument.kind) {
      case PickleArgument::none:
        return Step::go_on;
      case PickleArgument::fixed:
        return skip(argument.size);
      case PickleArgument::length: {
        const auto length = take(argument.size);
        return length ? skip(*length) : Step::end;
      }
      case PickleArgument::line:
        return line() ? Step::go_on : Step::end;
      case PickleArgument::two_lines:
        return names();
      case PickleArgument::stop:
      case PickleArgument::unknown:
        break;
    }
    return Step::end;
  }

  Step needs(std::uint64_t below) { return depth_ - bottom() < below ? Step::end : Step::import; }

  Step follow(unsigned char opcode);

  const ByteSource& source_;
  std::uint64_t position_ = 0;
  std::uint64_t depth_ = 0;
  std::vector<std::uint64_t> marks_;  // no more than opcodes
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
};

// What an opcode does to the stack, its argument taken.
Step Walker::follow(unsigned char opcode) {
  switch (opcode) {
    case '(':
      marks_.push_back(depth_);
      return Step::go_on;
    case '0':
      if (depth_ == bottom() && !marks_.empty()) return to_mark(0, 0);
      return replace(1, 0);
    case '1':
      return to_mark(0, 0);
    case '2':
      return replace(1, 2);
    case 0x80:  // PROTO and FRAME
    case 0x95:
      return Step::go_on;
    case 'p':
    case 'q':
    case 'r':
    case 0x85:
    case 0x94:
    case 0x98:
      return replace(1);
    case 'a':
    case 0x86:
      return replace(2);
    case 's':
    case 0x87:
      return replace(3);
    case 'e':
    case 'u':
    case 0x90:
      return to_mark(1, 1);
    case 'd':
    case 'l':
    case 't':
    case 0x91:
      return to_mark(0, 1);
    case 'c':
      return Step::import;
    case 'i':
      return marks_.empty() ? Step::end : Step::import;
    case 'o':
      return marks_.empty() || depth_ == bottom() ? Step::end : Step::import;
    case 'R':
    case 'b':
    case 0x81:
    case 0x93:
      return needs(2);
    case 0x92:
      return needs(3);
    case 'P':  // persistent ids, extensions and buffers that nobody has
    case 'Q':
    case 0x82:
    case 0x83:
    case 0x84:
    case 0x97:
      return Step::end;
    default:  // every other makes one value
      return replace(0);
  }
}

}  // namespace

std::optional<std::uint64_t> first_pickle_import(const ByteSource& source) {
  return Walker(source).run();
}

}  // namespace ballast
