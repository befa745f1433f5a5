// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "ballast/error.h"

namespace ballast {
namespace {

constexpr std::size_t kLongestCompared = 256;  // the distance costs length squared
constexpr std::size_t kMostCompared = 20'000;  // a suggestion must not take longer than the failure

// Insertions, deletions, substitutions and swaps of neighbours, given up once there are more than `limit`.
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<std::size_t> before_last(a.size() + 1);
  std::vector<std::size_t> last(a.size() + 1);
  std::vector<std::size_t> row(a.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t j = 1; j <= b.size(); ++j) {
    row[0] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      row[i] = std::min({last[i] + 1, row[i - 1] + 1, last[i - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[i] = std::min(row[i], before_last[i - 2] + 1);
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[a.size()];
}

}  // namespace

std::vector<std::string_view> nearest(std::string_view wanted, std::span<const std::string_view> names,
                                      std::size_t count) {
  if (wanted.size() > kLongestCompared) return {};
  if (count == 0) return {};
  // In a word of three letters, two wrong ones are not a typing error any more.
  std::size_t limit = wanted.size() < 4 ? 1 : std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const std::string_view candidate : names.first(std::min(names.size(), kMostCompared))) {
    // A name that only lacks or has an outer prefix is as good as a typing error.
    const bool prefixed =
        candidate.size() > wanted.size()
            ? candidate.ends_with(wanted) && candidate[candidate.size() - wanted.size() - 1] == '.'
            : wanted.ends_with(candidate) && wanted.size() > candidate.size() &&
                  wanted[wanted.size() - candidate.size() - 1] == '.';
    const std::size_t far = prefixed ? 1 : distance(wanted, candidate.substr(0, kLongestCompared), limit);
    if (far > limit) continue;
    const auto behind =
        std::upper_bound(found.begin(), found.end(), far,
                         [](std::size_t value, const auto& entry) { return value < entry.first; });
    found.emplace(behind, far, candidate);
    if (found.size() > count) found.pop_back();
    // From now on only something nearer is wanted, and the comparison can be given up sooner.
    if (found.size() == count) limit = found.back().first == 0 ? 0 : found.back().first - 1;
  }
  std::vector<std::string_view> result;
  result.reserve(found.size());
  for (const auto& [far, candidate] : found) result.push_back(candidate);
  return result;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string_view> names) {
  const auto found = nearest(wanted, names);
  if (found.empty()) return "";
  std::string text = "; did you mean ";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i > 0) text += i + 1 == found.size() ? " or " : ", ";
    text += quoted(found[i]);
  }
  return text + "?";
}

}  // namespace ballast
