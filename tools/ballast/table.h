// SPDX-License-Identifier: Apache-2.0
// Rows of cells in aligned columns.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "terminal.h"

namespace tool {

class Output;
struct Session;

enum class Align : std::uint8_t { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
  bool optional = false;  ///< left out on a terminal that has no room for it, the last ones first
};

struct Cell {
  Cell(std::string t, Style s = Style::plain) : text(std::move(t)), style(s) {}

  Cell(const char* t, Style s = Style::plain) : text(t), style(s) {}

  Cell(std::string_view t, Style s = Style::plain) : text(t), style(s) {}

  std::string text;
  Style style;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// From here on a table that grows long is not gathered: its first rows say how wide the columns are, and
  /// later ones go out as they come.
  void stream(Output& out, const Terminal& terminal);

  /// One cell a column.
  void add(std::span<const Cell> row);

  void add(std::initializer_list<Cell> row) { add(std::span(row.begin(), row.size())); }

  [[nodiscard]] std::size_t columns() const noexcept { return columns_.size(); }

  [[nodiscard]] bool empty() const noexcept { return cells_.empty() && !is_begun_; }

  /// The first column is never wider than what leaves room for the others: on a terminal a longer text gets a
  /// line of its own, with the rest of its row below; elsewhere, where a row is one line, it pushes its own
  /// row aside and no other.
  void print(Output& out, const Terminal& terminal, std::string_view indent = {}, bool titles = true);

  /// The titles of columns that were not printed: "ULP, COSINE".
  [[nodiscard]] std::string left_out() const;

 private:
  // All texts lie one behind the other: a listing may have a million cells.
  struct Kept {
    std::uint32_t size;
    std::uint32_t width;
    Style style;
  };

  void settle_widths(const Terminal& terminal, std::size_t indent, bool titles);
  void leave_out(const std::vector<std::size_t>& widths, const Terminal& terminal, std::size_t indent);
  void put_out(Output& out, const Terminal& terminal, std::string_view indent, bool titles);

  Output* out_ = nullptr;  // of stream()
  const Terminal* terminal_ = nullptr;
  bool is_begun_ = false;
  std::vector<std::size_t> widths_;
  std::vector<bool> is_left_out_;
  std::vector<Column> columns_;
  std::vector<Kept> cells_;
  std::string texts_;
};

/// A note that columns were left out, where some were.
void say_left_out(Session& session, const Table& table);

}  // namespace tool
