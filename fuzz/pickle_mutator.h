// SPDX-License-Identifier: Apache-2.0
// A mutator that speaks pickle: it works on whole opcodes with their arguments, so that what it makes is
// mostly run to its end instead of being refused at the first broken length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "formats/pickle_opcodes.h"
#include "pickle_pieces.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace ballast::fuzzing {

/// Bytes of the opcode that `code` begins with and of its arguments, up to the end of `code`.
inline std::size_t opcode_length(std::string_view code) {
  if (pickle_argument(static_cast<unsigned char>(code[0])).kind == PickleArgument::unknown) return 1;
  return pickle_opcode_length(as_bytes(code)).value_or(code.size());
}

using Opcodes = std::vector<std::string>;

inline Opcodes split(std::string_view pickle) {
  Opcodes opcodes;
  while (!pickle.empty()) {
    const std::size_t length = opcode_length(pickle);
    opcodes.emplace_back(pickle.substr(0, length));
    pickle.remove_prefix(length);
  }
  return opcodes;
}

inline std::string join(const Opcodes& opcodes) {
  std::string pickle;
  for (const std::string& opcode : opcodes) pickle += opcode;
  return pickle;
}

class PickleMutator {
 public:
  PickleMutator(std::uint32_t seed, std::size_t max_size) : pieces_(seed), max_size_(max_size) {}

  /// Another pickle, of at most the largest size.
  std::string mutate(std::string_view pickle) {
    Opcodes code = split(pickle);
    // Frames say how long they are, which nearly every change makes wrong.
    if (!pieces_.once_in(8)) std::erase_if(code, [](const std::string& op) { return op[0] == '\x95'; });
    if (code.empty()) code = {"\x80\x02", "N", "."};
    for (std::size_t count = 1 + pieces_.below(4); count > 0; --count) change(code);
    if (pieces_.once_in(32)) code = split("\x80\x02" + pieces_.stream(join(code)) + ".");
    if (pieces_.once_in(16)) frame(code);
    std::string made = join(code);
    return made.size() <= max_size_ ? made : std::string(pickle.substr(0, max_size_));
  }

  std::string cross(std::string_view pickle, std::string_view other) {
    Opcodes code = split(pickle);
    const Opcodes from = split(other);
    if (from.empty()) return mutate(pickle);
    const auto [begin, end] = stretch(from);
    code.insert(code.begin() + at(inner(code)), from.begin() + at(begin), from.begin() + at(end));
    std::string made = join(code);
    return made.size() <= max_size_ ? made : std::string(pickle.substr(0, max_size_));
  }

 private:
  static std::ptrdiff_t at(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

  struct Stretch {
    std::size_t begin;
    std::size_t end;
  };

  /// A few opcodes that follow each other, seldom many.
  Stretch stretch(const Opcodes& code) {
    const std::size_t begin = pieces_.below(code.size());
    const std::size_t most = pieces_.once_in(8) ? code.size() : std::size_t{6};
    return {begin, std::min(code.size(), begin + 1 + pieces_.below(most))};
  }

  /// A place behind PROTO and before STOP, where there are such.
  std::size_t inner(const Opcodes& code) {
    const std::size_t first = !code.empty() && code[0][0] == '\x80' ? 1 : 0;
    return code.size() <= first ? code.size() : first + pieces_.below(code.size() - first);
  }

  static bool is_leaf(const std::string& opcode) {
    return std::string_view("NKMJGXUCBVSILF)]}\x88\x89\x8A\x8C\x8D\x8E\x8F").find(opcode[0]) !=
           std::string_view::npos;
  }

  std::optional<std::size_t> find(const Opcodes& code, bool (*wanted)(const std::string& opcode)) {
    const std::size_t start = pieces_.below(code.size());
    for (std::size_t i = 0; i < code.size(); ++i) {
      const std::size_t place = (start + i) % code.size();
      if (wanted(code[place])) return place;
    }
    return std::nullopt;
  }

  void change(Opcodes& code) {
    if (code.empty()) return;
    const auto [begin, end] = stretch(code);
    switch (pieces_.below(16)) {
      case 0:
        code.erase(code.begin() + at(begin), code.begin() + at(end));
        break;
      case 1: {
        const Opcodes copy(code.begin() + at(begin), code.begin() + at(end));
        code.insert(code.begin() + at(inner(code)), copy.begin(), copy.end());
        break;
      }
      case 2:
        std::swap(code[begin], code[inner(code) % code.size()]);
        break;
      case 3:
        repeat(code, begin, end);
        break;
      case 4:
      case 5:
      case 6:  // one value becomes another: the stack stays as deep as it was
        if (const auto place = find(code, is_leaf)) code[*place] = pieces_.value(3);
        break;
      case 7:
        if (const auto place = find(code, [](const std::string& op) { return op[0] == 'c'; }))
          code[*place] = pieces_.any_global();
        break;
      case 8:
        insert(code, pieces_.value(3) + "0");
        break;
      case 9:
        insert(code, pieces_.value(3) + (pieces_.once_in(2) ? "\x86" : "a"));
        break;
      case 10:
        share(code);
        break;
      case 11:
        change_argument(code[begin]);
        break;
      case 12:
        insert(code, pieces_.call(2));
        break;
      case 13: {
        static constexpr std::string_view kPlain =
            "(012NQRabde)]}ltosu\x81\x85\x86\x87\x88\x8F\x90\x91\x92\x93\x94.";
        insert(code, std::string(1, pieces_.one_of(kPlain)));
        break;
      }
      case 14:
        if (code[0][0] == '\x80') code[0] = std::string("\x80") + static_cast<char>(pieces_.below(6));
        break;
      default:
        change_bytes(code);
    }
  }

  void insert(Opcodes& code, std::string piece) {
    code.insert(code.begin() + at(inner(code)), std::move(piece));
  }

  // Many times: what is quadratic or unlimited shows.
  void repeat(Opcodes& code, std::size_t begin, std::size_t end) {
    std::string piece;
    for (std::size_t i = begin; i < end; ++i) piece += code[i];
    if (piece.empty()) return;
    if (pieces_.once_in(4))
      piece = pieces_.once_in(2) ? "2\x86" : pieces_.value(2) + (pieces_.once_in(2) ? "\x86" : "0");
    std::size_t room = max_size_ / piece.size() / 2;
    if (!pieces_.once_in(8)) room = std::min<std::size_t>(room, 40);
    const std::size_t times = 1 + pieces_.below(room);
    std::string many;
    for (std::size_t i = 0; i < times; ++i) many += piece;
    code.insert(code.begin() + at(begin), std::move(many));
  }

  // Something is remembered, and comes again somewhere behind.
  void share(Opcodes& code) {
    const std::size_t place = inner(code);
    const std::size_t slot = pieces_.below(pieces_.once_in(4) ? 300 : 8);
    const bool is_long = slot > 255 || pieces_.once_in(8);
    const std::string number = Pieces::le(slot, is_long ? 4 : 1);
    if (pieces_.once_in(2))
      code.insert(code.begin() + at(place), pieces_.once_in(4) ? "\x94" : (is_long ? "r" : "q") + number);
    const std::size_t behind = std::min(code.size(), place + 1 + pieces_.below(code.size() - place + 1));
    code.insert(code.begin() + at(behind),
                (is_long ? "j" : "h") + number + (pieces_.once_in(2) ? "\x86" : ""));
  }

  void change_argument(std::string& opcode) {
    if (opcode.size() < 2) return;
    static constexpr std::uint64_t kOdd[] = {0,   1,         2,           127,        128,       255,
                                             256, INT32_MAX, 1ULL << 31U, UINT32_MAX, INT64_MAX, UINT64_MAX};
    const std::size_t width = std::min<std::size_t>(opcode.size() - 1, 8);
    if (pieces_.once_in(2))
      opcode.replace(1, width, Pieces::le(pieces_.one_of(kOdd), width));
    else
      opcode[1 + pieces_.below(opcode.size() - 1)] = static_cast<char>(pieces_.below(256));
  }

  // As a fuzzer would that knows nothing of pickles.
  void change_bytes(Opcodes& code) {
    std::string bytes = join(code);
    const std::size_t size = bytes.size();
    if (size == 0 || size > max_size_) return;
    bytes.resize(std::min(max_size_, size + 64));
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, bytes.size()));
    code = split(bytes);
  }

  // Everything behind PROTO, in frames that are right.
  void frame(Opcodes& code) {
    Opcodes framed;
    std::string open;
    const auto close = [&] {
      if (open.empty()) return;
      framed.push_back("\x95" + Pieces::le(open.size(), 8));
      framed.push_back(std::move(open));
      open.clear();
    };
    for (const std::string& opcode : code) {
      if (opcode[0] == '\x80')
        framed.push_back(opcode);
      else
        open += opcode;
      if (pieces_.once_in(16)) close();
    }
    close();
    code = std::move(framed);
  }

  Pieces pieces_;
  std::size_t max_size_;
};

inline std::string_view as_view(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Into the fuzzer's buffer.
inline std::size_t put(const std::string& made, std::uint8_t* data, std::size_t max_size) {
  const std::size_t size = std::min(made.size(), max_size);
  std::memcpy(data, made.data(), size);
  return size;
}

}  // namespace ballast::fuzzing
