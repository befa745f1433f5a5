// SPDX-License-Identifier: Apache-2.0
#include "import/sharing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "ballast/error.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

/// Where tensors of the input are in the output.
class Kept {
 public:
  explicit Kept(const Converted& done) {
    for (std::size_t i = 0; i < done.origins.size(); ++i) places_.try_emplace(done.origins[i], i);
  }

  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string_view, std::size_t> places_;
};

void note_dissolved(const Converted& done, const Kept& kept, std::vector<std::string>& notes) {
  std::map<std::size_t, std::size_t> first_of;
  for (const Tie& tie : ties(done.checkpoint)) first_of.emplace(tie.tensor, tie.first);
  const auto group = [&](std::size_t tensor) {
    const auto found = first_of.find(tensor);
    return found == first_of.end() ? tensor : found->second;
  };
  std::size_t count = 0;
  std::string example;
  for (const Tie& tie : ties(done.taken)) {
    const auto second = kept.find(done.taken[tie.tensor].name);
    const auto first = kept.find(done.taken[tie.first].name);
    if (!second || !first || group(*second) == group(*first)) continue;
    if (count++ == 0)
      example = fmt::format("{} and {}", quoted(done.checkpoint[*second].name),
                            quoted(done.checkpoint[*first].name));
  }
  if (count > 0)
    notes.push_back(fmt::format("{} are not tied any more: a step changed one of them{}", example,
                                count == 1 ? "" : fmt::format(" (and so with {} other pairs)", count - 1)));
}

void note_untied(const Converted& done, Format format, std::vector<std::string>& notes) {
  const std::size_t tied = format->holds_ties ? 0 : ties(done.checkpoint).size();
  if (tied > 0)
    notes.push_back(fmt::format("{} has no ties: {} written again under {}", format.name(),
                                tied == 1 ? "1 tensor is" : fmt::format("{} tensors are", tied),
                                tied == 1 ? "its second name" : "their second names"));
}

// Views of one storage that overlap and are not the same: a matrix and its transpose, or one of its rows.
void note_parted(const Converted& done, const Kept& kept, std::vector<std::string>& notes) {
  struct Extent {
    const Storage* storage;
    std::uint64_t begin;
    std::uint64_t end;
    std::size_t tensor;
  };

  std::set<std::size_t> tied;
  for (const Tie& tie : ties(done.taken)) tied.insert(tie.tensor);
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < done.taken.size(); ++i) {
    const Tensor tensor = done.taken[i].tensor();
    if (!tensor.has_data() || tensor.numel() == 0 || tied.contains(i) || !kept.find(done.taken[i].name))
      continue;
    const ByteRange range = touched_bytes(tensor);
    extents.push_back({tensor.storage().get(), range.begin, range.end, i});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::tuple(a.storage, a.begin, a.tensor) < std::tuple(b.storage, b.begin, b.tensor);
  });
  std::size_t count = 0;
  std::string example;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool overlaps = i > 0 && extents[i].storage == extents[i - 1].storage && extents[i].begin < end;
    end = overlaps ? std::max(end, extents[i].end) : extents[i].end;
    if (overlaps && count++ == 0)
      example = fmt::format("{} and {}", quoted(done.taken[extents[i - 1].tensor].name),
                            quoted(done.taken[extents[i].tensor].name));
  }
  if (count > 0)
    notes.push_back(fmt::format("{} share bytes in the input{}; they are written apart", example,
                                count == 1 ? "" : fmt::format(", and so do {} more", count - 1)));
}

}  // namespace

std::vector<std::string> sharing_notes(const Converted& done, Format format) {
  const Kept kept(done);
  std::vector<std::string> notes;
  note_dissolved(done, kept, notes);
  note_untied(done, format, notes);
  if (!format->holds_strides) note_parted(done, kept, notes);
  return notes;
}

}  // namespace ballast
