// SPDX-License-Identifier: Apache-2.0
#include "rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "text.h"

namespace tool {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_separator(char c) {
  return c == '.' || c == '/' || c == '_';
}

}  // namespace

// A number counts where separators stand on both sides.
std::string folded_name(std::string_view name) {
  std::string pattern;
  std::size_t at = 0;
  while (at < name.size()) {
    std::size_t end = at;
    while (end < name.size() && is_digit(name[end])) ++end;
    const bool alone = end > at && (at == 0 || is_separator(name[at - 1])) &&
                       (end == name.size() || is_separator(name[end]));
    if (alone) {
      pattern += '#';
      at = end;
    } else {
      const std::size_t next = std::max(end, at + 1);
      pattern += name.substr(at, next - at);
      at = next;
    }
  }
  return pattern;
}

std::vector<Row> rows_of(const ballast::Checkpoint& checkpoint) {
  std::vector<Row> rows;
  rows.reserve(checkpoint.size());
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const ballast::Entry entry = checkpoint[i];
    const auto parameters = static_cast<std::uint64_t>(ballast::try_numel(entry.shape).value_or(0));
    rows.push_back({std::string(entry.name), entry.dtype, entry.shape, 1, parameters, entry.bytes, i});
    if (const auto storage = entry.tensor().storage(); storage != nullptr)
      rows.back().packed = storage->packed_size().value_or(0);
  }
  for (const ballast::Tie& tie : ballast::ties(checkpoint))
    rows[tie.tensor].tied_to = checkpoint[tie.first].name;
  return rows;
}

void mark_constants(std::vector<Row>& rows, const std::vector<std::string>& names) {
  const std::set<std::string_view> constants(names.begin(), names.end());  // as below
  for (Row& row : rows) row.constant = constants.contains(row.name);
}

std::vector<Row> folded(const std::vector<Row>& rows) {
  std::vector<Row> result;
  std::map<std::string, std::size_t> seen;  // ordered: no file can choose names that collide
  for (const Row& row : rows) {
    std::string pattern = folded_name(row.name);
    const std::string key = fmt::format("{}\n{}\n{}\n{}", ballast::info(row.dtype).code,
                                        fmt::join(row.shape, ","), row.tied_to, pattern);
    const auto [found, is_new] = seen.emplace(key, result.size());
    if (is_new) {
      result.push_back(row);  // alone, it keeps its own name
      continue;
    }
    Row& group = result[found->second];
    group.name = std::move(pattern);
    group.tensors += row.tensors;
    group.parameters += row.parameters;
    group.bytes += row.bytes;
    group.packed += row.packed;
  }
  return result;
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto number_at = [](std::string_view& text) {
    std::size_t end = 0;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string_view digits = text.substr(0, end);
    text.remove_prefix(end);
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return digits;
  };
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = number_at(a);
      const std::string_view y = number_at(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front())
      return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

void sort_rows(std::vector<Row>& rows, std::string_view order) {
  const auto sort = [&](auto less) { std::stable_sort(rows.begin(), rows.end(), less); };
  if (order == "name") {
    sort([](const Row& a, const Row& b) { return natural_less(a.name, b.name); });
  } else if (order == "dtype") {
    sort(
        [](const Row& a, const Row& b) { return ballast::info(a.dtype).code < ballast::info(b.dtype).code; });
  } else if (order == "shape") {
    sort([](const Row& a, const Row& b) {
      if (a.shape.size() != b.shape.size()) return a.shape.size() < b.shape.size();
      return std::lexicographical_compare(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end());
    });
  } else if (order == "parameters") {
    sort([](const Row& a, const Row& b) { return a.parameters > b.parameters; });
  } else if (order == "size" || order == "bytes") {
    sort([](const Row& a, const Row& b) { return a.bytes > b.bytes; });
  } else if (order == "packed") {
    sort([](const Row& a, const Row& b) { return a.packed > b.packed; });
  }
}

void Totals::add(const Row& row) {
  tensors += row.tensors;
  if (row.tied_to.empty()) {
    parameters += row.parameters;
    bytes += row.bytes;
  } else {
    tied += row.tensors;
  }
  by_dtype[static_cast<std::size_t>(row.dtype)] += row.tensors;
}

std::string Totals::dtypes() const {
  std::string several;
  std::string_view only;
  int kinds = 0;
  for (std::size_t i = 0; i < by_dtype.size(); ++i) {
    if (by_dtype[i] == 0) continue;
    only = ballast::info(static_cast<ballast::DType>(i)).code;
    several += fmt::format("{}{} {}", kinds == 0 ? "" : ", ", only, grouped(by_dtype[i]));
    ++kinds;
  }
  return kinds == 1 ? std::string(only) : several;
}

std::string Totals::text() const {
  const std::string sums = fmt::format("{}, {} parameters, {}", counted(tensors, "tensor"),
                                       human_count(parameters), human_bytes(bytes));
  const std::string ties = tied == 0 ? "" : fmt::format(", {} tied", grouped(tied));
  return tensors == 0 ? "no tensors" : fmt::format("{} ({}{})", sums, dtypes(), ties);
}

Totals totals_of(const std::vector<Row>& rows) {
  Totals totals;
  for (const Row& row : rows) totals.add(row);
  return totals;
}

}  // namespace tool
