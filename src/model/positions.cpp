// SPDX-License-Identifier: Apache-2.0
#include "model/positions.h"

#include <algorithm>
#include <charconv>

#include "base/key_path.h"
#include "checkpoint/steps.h"

namespace ballast {
namespace {

std::int64_t number_of(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// visit(prefix with its dot, segment, is index) for each segment.
template <class Visit>
void for_each_segment(std::string_view path, std::uint64_t index_segments, Visit&& visit) {
  std::size_t i = 0;
  key_path::for_each_segment(path, [&](std::string_view prefix, std::string_view segment) {
    visit(prefix, segment, i < 64 && (index_segments >> i & 1U) != 0);
    ++i;
  });
}

bool lies_in_empty_member(const Slots& slots, const Slot& slot) {
  for (std::uint32_t alternative = slot.alternative; alternative != kAlways;) {
    const Choice& choice = slots.choices[slots.alternatives[alternative].choice];
    if (choice.optional) return true;
    alternative = choice.parent;
  }
  return false;
}

}  // namespace

Positions::Positions(const Slots& slots, const Checkpoint& checkpoint,
                     const std::vector<std::string>& reindex, const std::vector<std::string>& keep)
    : anywhere_(!reindex.empty()), where_(reindex, keep) {
  for (const Slot& slot : slots.slots) {
    const bool is_required = !lies_in_empty_member(slots, slot);
    for_each_segment(slot.path, slot.index_segments,
                     [&](std::string_view prefix, std::string_view segment, bool is_index) {
                       if (!is_index) return;
                       model_[std::string(prefix)].insert(number_of(segment));
                       if (is_required) required_[std::string(prefix)].insert(number_of(segment));
                     });
  }
  if (model_.empty()) return;
  for (const Entry& entry : checkpoint) {
    for (const auto& [prefix, number] : numbered_segments(entry.name))
      file_[std::string(prefix)].insert(number_of(number));
  }
}

const std::map<std::int64_t, std::int64_t>& Positions::mapping(const std::string& model_prefix,
                                                               const std::string& file_prefix) {
  const auto [entry, is_new] = mappings_.try_emplace(model_prefix);
  if (!is_new) return entry->second;
  const auto in_model = model_.find(model_prefix);
  const auto in_file = file_.find(file_prefix);
  if (!anywhere_ || in_model == model_.end() || in_file == file_.end()) return entry->second;
  const Numbers& theirs = in_file->second;
  const auto required = required_.find(model_prefix);
  const bool only_required = required != required_.end() && theirs.size() < in_model->second.size();
  const Numbers& ours = only_required ? required->second : in_model->second;
  if (std::includes(theirs.begin(), theirs.end(), ours.begin(), ours.end())) return entry->second;
  // Fewer numbers than positions cannot fill the vector either way; then it is clearer to say which positions
  // are missing.
  if (theirs.size() < ours.size()) return entry->second;
  if (!where_.passes(model_prefix)) return entry->second;
  auto next = theirs.begin();
  for (const std::int64_t position : ours) {
    entry->second.emplace(position, *next);
    if (position != *next)
      moved_.push_back({file_prefix + std::to_string(*next), model_prefix + std::to_string(position)});
    ++next;
  }
  return entry->second;
}

std::string Positions::in_file(std::string_view path, std::uint64_t index_segments) {
  std::string result;
  for_each_segment(path, index_segments,
                   [&](std::string_view prefix, std::string_view segment, bool is_index) {
                     if (!prefix.empty()) result += '.';
                     if (is_index) {
                       const auto& moved = mapping(std::string(prefix), result);
                       const auto found = moved.find(number_of(segment));
                       if (found != moved.end()) {
                         result += std::to_string(found->second);
                         return;
                       }
                     }
                     result += segment;
                   });
  return result;
}

}  // namespace ballast
