// SPDX-License-Identifier: Apache-2.0
#include "view/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ballast/error.h"
#include "view/ascii.h"
#include "view/response.h"
#include "written.h"

namespace tool::view {
namespace {

template <class Less>
std::vector<std::uint32_t> sorted_numbers(std::size_t count, Less less) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::stable_sort(numbers.begin(), numbers.end(), less);
  return numbers;
}

}  // namespace

Document::Document(std::string path, ballast::Checkpoint checkpoint)
    : path_(std::move(path)), checkpoint_(std::move(checkpoint)) {}

void Document::warm_up() {
  try {
    static_cast<void>(tree(true));
    static_cast<void>(scan());
    static_cast<void>(lower_names());
    for (const char* by : {"file", "name", "bytes", "parameters"}) static_cast<void>(order(by));
  } catch (const std::exception&) {  // whoever asks for it is told
  }
}

std::uint64_t Document::file_bytes() const {
  return size_of_files(path_, checkpoint_);
}

const NameTree& Document::tree(bool fold) {
  return (fold ? folded_ : plain_).get([&] { return NameTree(rows(), fold); });
}

std::shared_ptr<const Document::Children> Document::children(const ChildrenKey& key,
                                                             const std::function<Children()>& make) {
  constexpr std::size_t kLong = 500;
  constexpr std::size_t kMostKept = 8;
  {
    const std::lock_guard lock(children_mutex_);
    for (const auto& [of, list] : children_) {
      if (of == key) return list;
    }
  }
  auto list = std::make_shared<const Children>(make());
  if (list->size() < kLong) return list;
  const std::lock_guard lock(children_mutex_);
  children_.emplace_front(key, list);
  if (children_.size() > kMostKept) children_.pop_back();
  return list;
}

const std::vector<std::uint32_t>& Document::order(const std::string& by) {
  const std::vector<Row>& all = rows();
  const auto sorted = [&](auto less) {
    return sorted_numbers(all.size(),
                          [&, less](std::uint32_t a, std::uint32_t b) { return less(all[a], all[b]); });
  };
  if (by == "name")
    return by_name_.get(
        [&] { return sorted([](const Row& a, const Row& b) { return natural_less(a.name, b.name); }); });
  if (by == "bytes")
    return by_bytes_.get(
        [&] { return sorted([](const Row& a, const Row& b) { return a.bytes > b.bytes; }); });
  if (by == "parameters")
    return by_parameters_.get(
        [&] { return sorted([](const Row& a, const Row& b) { return a.parameters > b.parameters; }); });
  return by_file_.get([&] { return sorted([](const Row&, const Row&) { return false; }); });
}

const std::vector<std::string>& Document::lower_names() {
  return lower_.get([&] {
    std::vector<std::string> names;
    names.reserve(rows().size());
    for (const Row& row : rows()) names.push_back(lower_case(row.name));
    return names;
  });
}

const ballast::ScanReport& Document::scan() {
  return scan_.get([&] { return ballast::scan(path_, false); });
}

std::vector<std::string> Document::tied(std::size_t number, std::size_t most) {
  const auto& all = ties_.get([&] {
    std::multimap<std::size_t, std::size_t> groups;
    for (const ballast::Tie& tie : ballast::ties(checkpoint_)) {
      if (!groups.contains(tie.first)) groups.emplace(tie.first, tie.first);
      groups.emplace(tie.first, tie.tensor);
    }
    return groups;
  });
  if (all.empty()) return {};
  const std::string& first = rows()[number].tied_to;
  const std::size_t group = first.empty() ? number : checkpoint_.position(first).value_or(number);
  std::vector<std::string> names;
  const auto [begin, end] = all.equal_range(group);
  for (auto at = begin; at != end && names.size() < most; ++at) {
    if (at->second != number) names.push_back(ballast::display(rows()[at->second].name));
  }
  return names;
}

std::optional<std::size_t> Document::number_of(const ballast::Tensor& tensor) {
  const auto& places = places_.get([&] {
    Places all;
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      const ballast::Tensor one = checkpoint_[i].tensor();
      all.emplace(std::pair(one.storage().get(), one.bit_offset()), i);
    }
    return all;
  });
  constexpr int kMostLooked = 100;  // names of one place
  const auto [begin, end] = places.equal_range({tensor.storage().get(), tensor.bit_offset()});
  int looked = 0;
  for (auto at = begin; at != end && looked < kMostLooked; ++at, ++looked) {
    if (checkpoint_[at->second].tensor().same_view(tensor)) return at->second;
  }
  return std::nullopt;
}

ballast::Tensor Document::tensor(std::size_t number) const {
  if (number >= checkpoint_.size())
    throw Refused{404, "not-found",
                  fmt::format("there is no tensor {}; {} are there", number, checkpoint_.size())};
  return checkpoint_[number].tensor();
}

}  // namespace tool::view
