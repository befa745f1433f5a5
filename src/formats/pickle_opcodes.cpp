// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_opcodes.h"

#include <array>
#include <cstring>
#include <string_view>

#include "base/bytes.h"

namespace ballast {

namespace {

constexpr auto kArguments = [] {
  std::array<PickleArgument, 256> table{};
  const auto put = [&](PickleArgument::Kind kind, std::uint8_t size, std::string_view opcodes) {
    for (const char opcode : opcodes) table[static_cast<unsigned char>(opcode)] = {kind, size};
  };
  put(PickleArgument::stop, 0, ".");
  put(PickleArgument::none, 0, "()]}012NRabdelostuQ\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98");
  put(PickleArgument::fixed, 1, "\x80Khq\x82");
  put(PickleArgument::fixed, 2, "M\x83");
  put(PickleArgument::fixed, 4, "Jjr\x84");
  put(PickleArgument::fixed, 8, "G\x95");
  put(PickleArgument::length, 1, "UC\x8a\x8c");
  put(PickleArgument::length, 4, "TXB\x8b");
  put(PickleArgument::length, 8, "\x8d\x8e\x96");
  put(PickleArgument::line, 0, "FILPSVgp");
  put(PickleArgument::two_lines, 0, "ci");
  return table;
}();

}  // namespace

PickleArgument pickle_argument(unsigned char opcode) noexcept {
  return kArguments[opcode];
}

std::optional<std::size_t> pickle_opcode_length(std::span<const std::byte> code) noexcept {
  if (code.empty()) return std::nullopt;
  const PickleArgument argument = pickle_argument(static_cast<unsigned char>(code[0]));
  const std::string_view rest = as_text(code.subspan(1));
  std::uint64_t size = argument.size;
  switch (argument.kind) {
    case PickleArgument::unknown:
      return std::nullopt;
    case PickleArgument::stop:
    case PickleArgument::none:
    case PickleArgument::fixed:
      break;
    case PickleArgument::length: {
      if (rest.size() < argument.size) return std::nullopt;
      std::uint64_t length = 0;
      std::memcpy(&length, rest.data(), argument.size);
      if (length > rest.size() - argument.size) return std::nullopt;
      size += length;
      break;
    }
    case PickleArgument::line:
    case PickleArgument::two_lines:
      for (int lines = argument.kind == PickleArgument::line ? 1 : 2; lines > 0; --lines) {
        const std::size_t end = rest.find('\n', static_cast<std::size_t>(size));
        if (end == std::string_view::npos) return std::nullopt;
        size = end + 1;
      }
      break;
  }
  if (size > rest.size()) return std::nullopt;
  return static_cast<std::size_t>(size) + 1;
}

}  // namespace ballast
