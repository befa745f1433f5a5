// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <algorithm>

#include "output.h"
#include "session.h"
#include "text.h"

namespace tool {
namespace {

constexpr std::string_view kBetween = "  ";
constexpr std::size_t kWidestFirstColumn = 100;  // where there is no terminal to fit into
constexpr std::size_t kMostGathered = 100'000;   // cells, by a table that may stream
constexpr std::size_t kMostTextGathered = std::size_t{8} << 20U;
constexpr std::size_t kNarrowestFirstColumn = 8;

std::vector<std::size_t> fit(std::vector<std::size_t> widths, const std::vector<bool>& left_out,
                             const Terminal& terminal, std::size_t indent) {
  std::size_t others = indent;
  for (std::size_t i = 1; i < widths.size(); ++i) others += left_out[i] ? 0 : widths[i] + kBetween.size();
  const auto room = static_cast<std::size_t>(terminal.width);
  std::size_t limit = kWidestFirstColumn;
  if (terminal.is_terminal) limit = std::max(kNarrowestFirstColumn, room > others ? room - others : 0);
  widths[0] = std::min(widths[0], limit);
  return widths;
}

}  // namespace

void Table::add(std::span<const Cell> row) {
  for (const Cell& cell : row) {
    texts_ += cell.text;
    cells_.push_back({static_cast<std::uint32_t>(cell.text.size()),
                      static_cast<std::uint32_t>(screen_width(cell.text)), cell.style});
  }
  if (out_ != nullptr && (cells_.size() >= kMostGathered || texts_.size() >= kMostTextGathered))
    put_out(*out_, *terminal_, {}, true);
}

void Table::stream(Output& out, const Terminal& terminal) {
  out_ = &out;
  terminal_ = &terminal;
}

void Table::print(Output& out, const Terminal& terminal, std::string_view indent, bool titles) {
  if (!columns_.empty()) put_out(out, terminal, indent, titles);
}

void Table::settle_widths(const Terminal& terminal, std::size_t indent, bool titles) {
  const std::size_t count = columns_.size();
  std::vector<std::size_t> widths(count, 0);
  for (std::size_t i = 0; i < count && titles; ++i) widths[i] = screen_width(columns_[i].title);
  for (std::size_t i = 0; i < cells_.size(); ++i)
    widths[i % count] = std::max<std::size_t>(widths[i % count], cells_[i].width);
  leave_out(widths, terminal, indent);
  widths_ = fit(std::move(widths), is_left_out_, terminal, indent);
}

void Table::leave_out(const std::vector<std::size_t>& widths, const Terminal& terminal, std::size_t indent) {
  is_left_out_.assign(columns_.size(), false);
  std::size_t taken = indent + std::min(widths[0], kNarrowestFirstColumn);
  for (std::size_t i = 1; i < widths.size(); ++i) taken += widths[i] + kBetween.size();
  for (std::size_t i = columns_.size(); i-- > 1 && terminal.is_terminal;) {
    if (taken <= static_cast<std::size_t>(terminal.width)) return;
    if (!columns_[i].optional) continue;
    is_left_out_[i] = true;
    taken -= widths[i] + kBetween.size();
  }
}

std::string Table::left_out() const {
  std::string titles;
  for (std::size_t i = 0; i < is_left_out_.size(); ++i)
    if (is_left_out_[i]) titles += (titles.empty() ? "" : ", ") + columns_[i].title;
  return titles;
}

// What was gathered; with the titles the first time.
void Table::put_out(Output& out, const Terminal& terminal, std::string_view indent, bool titles) {
  const std::size_t count = columns_.size();
  if (!is_begun_) settle_widths(terminal, indent.size(), titles);
  std::string line;
  const auto put = [&](std::size_t column, std::string_view text, std::size_t width, Style style) {
    if (is_left_out_[column]) return;
    std::size_t padding = widths_[column] - std::min(widths_[column], width);
    if (column == 0 && width > widths_[0] && terminal.is_terminal && count > 1) {
      out.line(line + terminal.paint(text, style));
      line = indent;
      text = {};
      padding = widths_[0];
    }
    if (column > 0) line += kBetween;
    if (columns_[column].align == Align::right) line.append(padding, ' ');
    if (style == Style::plain)
      line += text;
    else
      line += terminal.paint(text, style);
    if (columns_[column].align == Align::left && column + 1 < count) line.append(padding, ' ');
  };
  const auto finish = [&] {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out.line(line);
    line = indent;
  };

  line = indent;
  if (titles && !is_begun_) {
    for (std::size_t i = 0; i < count; ++i)
      put(i, columns_[i].title, screen_width(columns_[i].title), Style::bold);
    finish();
  }
  std::size_t begin = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const Kept& cell = cells_[i];
    put(i % count, std::string_view(texts_).substr(begin, cell.size), cell.width, cell.style);
    begin += cell.size;
    if (i % count == count - 1) finish();
  }
  is_begun_ = true;
  cells_.clear();
  texts_.clear();
}

void say_left_out(Session& session, const Table& table) {
  session.out.flush();
  if (!table.left_out().empty())
    session.note(fmt::format("no room for {}; a wider terminal or --json has them", table.left_out()));
}

}  // namespace tool
