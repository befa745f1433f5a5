// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_opcodes.h"

#include <cstring>
#include <string_view>

#include "base/bytes.h"

namespace ballast {

PickleArgument pickle_argument(unsigned char opcode) noexcept {
  constexpr std::string_view kNone =
      "()]}012NRabdelostuQ\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98";
  if (opcode == '.') return {PickleArgument::stop, 0};
  if (kNone.find(static_cast<char>(opcode)) != std::string_view::npos) return {PickleArgument::none, 0};
  switch (opcode) {
    case 0x80:
    case 'K':
    case 'h':
    case 'q':
    case 0x82:
      return {PickleArgument::fixed, 1};
    case 'M':
    case 0x83:
      return {PickleArgument::fixed, 2};
    case 'J':
    case 'j':
    case 'r':
    case 0x84:
      return {PickleArgument::fixed, 4};
    case 'G':
    case 0x95:
      return {PickleArgument::fixed, 8};
    case 'U':
    case 'C':
    case 0x8A:
    case 0x8C:
      return {PickleArgument::length, 1};
    case 'T':
    case 'X':
    case 'B':
    case 0x8B:
      return {PickleArgument::length, 4};
    case 0x8D:
    case 0x8E:
    case 0x96:
      return {PickleArgument::length, 8};
    case 'F':
    case 'I':
    case 'L':
    case 'P':
    case 'S':
    case 'V':
    case 'g':
    case 'p':
      return {PickleArgument::line, 0};
    case 'c':
    case 'i':
      return {PickleArgument::two_lines, 0};
    default:
      return {};
  }
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
