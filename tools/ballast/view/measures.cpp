// SPDX-License-Identifier: Apache-2.0
// files/F/measures: a job that reads all values of a file; then which of its tensors are odd.
#include "view/measures.h"

#include <fmt/format.h>

#include <limits>

#include "ballast/error.h"
#include "view/app.h"
#include "view/numbers.h"

namespace tool::view {
namespace {

constexpr std::size_t kMostOdd = 200;

std::shared_ptr<const Measures::Stats> read_all(const Document& document, const ballast::Progress& progress) {
  std::vector<ballast::Tensor> tensors;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < document.checkpoint().size(); ++i) {
    ballast::Tensor tensor = document.tensor(i);
    if (!tensor.has_data()) continue;
    tensors.push_back(std::move(tensor));
    numbers.push_back(i);
  }
  const std::vector<ballast::TensorStats> found = ballast::stats(tensors, progress);
  auto all = std::make_shared<Measures::Stats>(document.checkpoint().size());
  for (std::size_t i = 0; i < found.size(); ++i) (*all)[numbers[i]] = found[i];
  return all;
}

struct Oddity {
  const char* kind = nullptr;  // none: there is nothing odd about it
  Json value = nullptr;
};

// What is worst about it.
Oddity oddity_of(const Row& row, const ballast::TensorStats& stats) {
  if (stats.nan > 0) return {"nan", stats.nan};
  if (stats.inf > 0) return {"inf", stats.inf};
  if (!row.tied_to.empty()) return {"tied", ballast::display(row.tied_to)};
  if (row.parameters == 0) return {"empty", nullptr};
  if (stats.all_zero()) return {"zero", nullptr};
  if (stats.count > 1 && stats.min == stats.max) return {"constant", json_number(stats.min)};
  return {};
}

}  // namespace

Response get_measures(const Call& call) {
  App& app = call.app;
  Document& document = call.document();
  const auto file = static_cast<std::size_t>(call.number(0));
  const std::shared_ptr<const Measures::Stats> all = app.measures.find(file);
  if (all == nullptr) {
    const std::uint64_t job =
        app.jobs.start("measures", fmt::format("measures {}", file),
                       [&app, &document, file](std::uint64_t /*number*/, const ballast::Progress& progress) {
                         app.measures.keep(file, read_all(document, progress));
                       });
    return json_response({{"job", job}}, 202);
  }
  Json odd = Json::array();
  std::size_t total = 0;
  for (std::size_t i = 0; i < all->size(); ++i) {
    const Row& row = document.rows()[i];
    const Oddity oddity = oddity_of(row, (*all)[i]);
    if (oddity.kind == nullptr) continue;
    if (++total <= kMostOdd)
      odd.push_back({{"n", i},
                     {"path", ballast::display(row.name)},
                     {"kind", oddity.kind},
                     {"value", oddity.value},
                     {"elements", row.parameters}});
  }
  return json_response({{"total", total}, {"odd", std::move(odd)}});
}

std::vector<float> measured_by(const Call& call, const std::string& what) {
  std::vector<float> values;
  if (what == "none") return values;
  Document& document = call.document();
  const auto file = static_cast<std::size_t>(call.number(0));
  values.resize(document.checkpoint().size(), std::numeric_limits<float>::quiet_NaN());
  const auto refuse = [] { throw Refused{409, "not-ready", "this is known when all was read"}; };
  if (what == "change") {
    const std::shared_ptr<const Compared> compared = compared_files(call);
    if (compared == nullptr || !compared->exact()) refuse();
    for (const ballast::TensorDiff& item : compared->report.tensors) {
      const bool is_renamed = item.change == ballast::Change::renamed;
      const auto at = document.checkpoint().position(file != 0 && is_renamed ? item.other : item.name);
      const bool is_equal = item.change == ballast::Change::equal || is_renamed;
      if (at && is_equal)
        values[*at] = 0;
      else if (at && item.distance.count > 0 && item.distance.rel_l2)
        values[*at] = static_cast<float>(*item.distance.rel_l2);
    }
    return values;
  }
  const std::shared_ptr<const Measures::Stats> all = call.app.measures.find(file);
  if (all == nullptr) refuse();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(what == "std" ? (*all)[i].std : (*all)[i].absmax());
  return values;
}

}  // namespace tool::view
