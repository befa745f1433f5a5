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

constexpr std::size_t kWalkWindow = 4096;
constexpr std::size_t kLongestModule = 4096;
constexpr std::uint64_t kLongestLine = std::uint64_t{64} << 20U;
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
      const Step argument = take_argument(pickle_argument(code));
      const Step step = argument == Step::go_on ? follow(code) : argument;
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
            static_cast<std::size_t>(std::min<std::uint64_t>(kWalkWindow, source_.size() - position_)));
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

  // Past the end of a line. One that is too long to look at might be anything.
  Step line() {
    for (std::uint64_t i = 0; i < kLongestLine; ++i) {
      const auto c = take(1);
      if (!c) return Step::end;
      if (*c == '\n') return Step::go_on;
    }
    return Step::import;
  }

  // A line that is a name: no module has such a one as this refuses.
  Step name() {
    std::string text;
    for (auto c = take(1); c && text.size() < kLongestModule; c = take(1)) {
      if (*c != '\n') {
        text += static_cast<char>(*c);
        continue;
      }
      const bool is_plain =
          !text.empty() && is_utf8(text) &&
          std::none_of(text.begin(), text.end(), [](char byte) { return byte >= 0 && byte < 0x20; });
      return is_plain ? Step::go_on : Step::end;
    }
    return text.size() < kLongestModule ? Step::end : Step::import;
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
        return line();
      case PickleArgument::two_lines: {
        const Step module = name();  // it is imported before anybody asks what of it is wanted
        return module == Step::go_on ? Step::import : module;
      }
      case PickleArgument::stop:
        if (depth_ == 0) return Step::end;
        // PyTorch reads on when the first of several pickles is its magic number, however that is spelled.
        if (has_number_) return Step::import;
        // Others may read a second one behind the first, with a stack of its own.
        depth_ = 0;
        marks_.clear();
        return Step::go_on;
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
  bool has_number_ = false;           // of any size
  std::vector<std::uint64_t> marks_;  // no more than opcodes
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
};

// What an opcode does to the stack, its argument taken.
Step Walker::follow(unsigned char opcode) {
  has_number_ = has_number_ || opcode == 'I' || opcode == 'L' || opcode == 0x8A || opcode == 0x8B;
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
    case 0x80:  // PROTO, FRAME and STOP
    case 0x95:
    case '.':
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
