// SPDX-License-Identifier: Apache-2.0
// The words of a template of Jinja's: names, texts, numbers and marks of each "{{ … }}" and "{% … %}".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ballast::jinja {

enum class Sort : std::uint8_t { name, text, number, mark };

struct Word {
  Sort sort;
  std::string_view text;  // of a text: without its quotes, its escapes as they stand

  [[nodiscard]] bool is(char mark) const { return sort == Sort::mark && text[0] == mark; }
  [[nodiscard]] bool is_name(std::string_view name) const { return sort == Sort::name && text == name; }
};

using Words = std::span<const Word>;

/// Nothing where a template has what only Jinja can tell the end of: raw blocks, texts that do not end.
[[nodiscard]] std::optional<std::vector<std::vector<Word>>> words_of(std::string_view text);

/// The place of the bracket that ends what begins at `open`; the end when there is none.
[[nodiscard]] std::size_t closing(Words words, std::size_t open);

/// The place of the bracket that begins what ends at `close`; 0 when there is none.
[[nodiscard]] std::size_t opening(Words words, std::size_t close);

/// Between the commas that stand in no bracket.
[[nodiscard]] std::vector<Words> arguments_in(Words words);

/// Whether the bracket at `open` asks a value for a part of it, where "[1, 2]" is a list.
[[nodiscard]] bool is_subscript(Words words, std::size_t open);

}  // namespace ballast::jinja
