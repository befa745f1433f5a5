// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/ascii.h"
#include "base/hash.h"
#include "containers/zip.h"
#include "containers/zip_names.h"

namespace ballast::containers {
namespace {

// A number as PyTorch's keys are written: digits without a leading zero.
std::optional<std::size_t> plain_number(std::string_view text) {
  if (text.empty() || text.size() > 8 || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::size_t number = 0;
  for (const char digit : text) {
    if (!is_digit(digit)) return std::nullopt;
    number = number * 10 + static_cast<std::size_t>(digit - '0');
  }
  return number;
}

}  // namespace

std::optional<std::size_t> ZipNameIndex::number_of(std::string_view name) const {
  const std::size_t size = folder_.size();
  if (size == 0 || name.size() <= size) return std::nullopt;
  if (!name.starts_with(folder_) && !equal_any_case(name.substr(0, size), folder_)) return std::nullopt;
  const auto number = plain_number(name.substr(size));
  return number && *number < numbered_.size() ? number : std::nullopt;
}

void ZipNameIndex::build(std::span<const ZipEntry> entries,
                         const std::function<void(std::size_t, std::size_t)>& again) {
  const auto first = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& entry) {
    return plain_number(entry.name.substr(zip_folder_of(entry.name).size())).has_value();
  });
  if (first != entries.end()) folder_ = zip_folder_of(first->name);
  if (!folder_.empty()) numbered_.assign(entries.size(), 0);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto number = number_of(entries[i].name);
    if (!number) {
      others_.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    std::uint32_t& place = numbered_[*number];
    if (place != 0) again(place - 1, i);
    place = static_cast<std::uint32_t>(i + 1);
  }
  std::string folded;
  hashed_.put_all(
      others_.size(),
      [&](std::size_t i) {
        fold_case(entries[others_[i]].name, folded);
        return hash_name(folded);
      },
      [&](std::size_t i, std::size_t j) {
        return equal_any_case(entries[others_[i]].name, entries[others_[j]].name);
      },
      [&](std::size_t i, std::size_t j) { again(others_[i], others_[j]); });
}

std::optional<std::size_t> ZipNameIndex::find(std::span<const ZipEntry> entries,
                                              std::string_view name) const {
  if (const auto number = number_of(name)) {
    if (numbered_[*number] == 0) return std::nullopt;
    return numbered_[*number] - 1;
  }
  std::string folded;
  fold_case(name, folded);
  const auto found = hashed_.find(
      hash_name(folded), [&](std::size_t i) { return equal_any_case(entries[others_[i]].name, name); });
  if (!found) return std::nullopt;
  return others_[*found];
}

}  // namespace ballast::containers
