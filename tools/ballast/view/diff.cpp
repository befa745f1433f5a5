// SPDX-License-Identifier: Apache-2.0
// diff: two files, tensor by tensor, as `ballast diff` compares them; large ones from a sample first, and
// from all values with ?exact=1. It reads both, so it is a job; the rows are there when it is done.
#include "ballast/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "ballast/error.h"
#include "diff_rows.h"
#include "view/app.h"
#include "view/numbers.h"

namespace tool::view {
namespace {

using ballast::Change;
using ballast::TensorDiff;

constexpr std::chrono::milliseconds kPatience{300};  // small files are compared before anybody shows a bar

std::string_view kind_of_change(Change change) {
  switch (change) {
    case Change::equal:
      return "equal";
    case Change::within:
    case Change::values:
      return "changed";
    case Change::dtype:
      return "dtype";
    case Change::shape:
      return "shape";
    case Change::renamed:
      return "renamed";
    case Change::only_a:
      return "only_a";
    case Change::only_b:
      return "only_b";
    case Change::layout:
      break;
  }
  return "layout";
}

// "model.layers.12.self_attn.q_proj.weight": layer 12, role q_proj.weight.
Json layer_of(const std::string& name) {
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string piece = name.substr(at, end - at);
    if (!piece.empty() && piece.size() < 10 && piece.find_first_not_of("0123456789") == std::string::npos)
      return std::stoi(piece);
    at = end + 1;
  }
  return nullptr;
}

std::string role_of(const std::string& name) {
  const std::size_t last = name.rfind('.');
  if (last == std::string::npos || last == 0) return name;
  const std::size_t before = name.rfind('.', last - 1);
  const std::string role = before == std::string::npos ? name : name.substr(before + 1);
  const bool is_numbered = role.find_first_not_of("0123456789") == role.find('.') && role.front() != '.';
  return is_numbered ? name.substr(last + 1) : role;
}

Json optional_number(const std::optional<double>& number) {
  return number ? json_number(*number) : Json(nullptr);
}

// The file's own number of a tensor that the steps may have given another name: its name's, where that is the
// tensor.
Json number_in(Document& document, const ballast::Checkpoint& stepped, const std::string& name) {
  const auto at = stepped.position(name);
  const auto direct = document.checkpoint().position(name);
  const bool is_it =
      direct && (!at || document.checkpoint()[*direct].tensor().same_view(stepped[*at].tensor()));
  if (is_it || !at) return direct ? Json(*direct) : Json(nullptr);
  const auto number = document.number_of(stepped[*at].tensor());
  return number ? Json(*number) : (direct ? Json(*direct) : Json(nullptr));
}

std::uint64_t elements_of(const TensorDiff& item) {
  if (item.distance.count > 0) return item.distance.count;
  const ballast::Shape& shape = item.change == Change::only_b ? item.shape_b : item.shape_a;
  return static_cast<std::uint64_t>(ballast::try_numel(shape).value_or(0));
}

Json change_row(Document& a, Document& b, const Compared& compared, std::size_t index) {
  const TensorDiff& item = compared.report.tensors[index];
  const bool in_a = item.change != Change::only_b;
  const bool in_b = item.change != Change::only_a;
  const std::string& name_b = item.change == Change::renamed ? item.other : item.name;
  const ballast::Distance& d = item.distance;
  const bool measured = d.count > 0;
  return {{"i", index},
          {"name", ballast::display(item.name)},
          {"name_b", in_b ? Json(ballast::display(name_b)) : Json(nullptr)},
          {"kind", kind_of_change(item.change)},
          {"rel_l2", measured ? optional_number(d.rel_l2) : Json(nullptr)},
          {"cosine", measured ? optional_number(d.cosine) : Json(nullptr)},
          {"max_abs", measured ? json_number(d.max_abs) : Json(nullptr)},
          {"differing", in_a && in_b && item.change != Change::shape ? Json(d.differing) : Json(nullptr)},
          {"sampled", compared.sampled.contains(item.name)},
          {"elements", elements_of(item)},
          {"n_a", in_a ? number_in(a, compared.a, item.name) : Json(nullptr)},
          {"n_b", in_b ? number_in(b, compared.b, name_b) : Json(nullptr)},
          {"dtype_a", in_a ? Json(ballast::info(item.dtype_a).code) : Json(nullptr)},
          {"dtype_b", in_b ? Json(ballast::info(item.dtype_b).code) : Json(nullptr)},
          {"shape_a", in_a ? shape_array(item.shape_a) : Json(nullptr)},
          {"shape_b", in_b ? shape_array(item.shape_b) : Json(nullptr)},
          {"layer", layer_of(item.name)},
          {"role", ballast::display(role_of(item.name))}};
}

Comparison::Files files_of(const Call& call) {
  const auto last = static_cast<std::int64_t>(call.app.documents.size()) - 1;
  if (last < 1) throw Refused{404, "not-found", "there is one file; name two to compare them"};
  return {static_cast<std::size_t>(call.query.number("a", 0, 0, last)),
          static_cast<std::size_t>(call.query.number("b", 1, 0, last))};
}

Json counts_of(const ballast::DiffReport& report) {
  const auto count = [&](std::initializer_list<Change> changes) {
    std::size_t sum = 0;
    for (const Change change : changes) sum += report.count(change);
    return sum;
  };
  return {{"changed", count({Change::values, Change::within, Change::dtype, Change::shape, Change::layout})},
          {"equal", count({Change::equal})},
          {"only_a", count({Change::only_a})},
          {"only_b", count({Change::only_b})},
          {"renamed", count({Change::renamed})}};
}

bool is_wanted(const TensorDiff& item, const std::string& kind, const std::string& text) {
  return (kind.empty() || kind == kind_of_change(item.change)) &&
         (text.empty() || item.name.find(text) != std::string::npos);
}

}  // namespace

std::shared_ptr<const Compared> compared_files(const Call& call) {
  return call.app.comparison.find(files_of(call));
}

namespace {

// What is known already, or soon; else the number of the job that finds it out.
struct Asked {
  std::shared_ptr<const Compared> compared;
  std::uint64_t job = 0;
};

Asked compare_patiently(const Call& call, bool exact) {
  App& app = call.app;
  const Comparison::Files files = files_of(call);
  const auto found = [&] {
    auto compared = app.comparison.find(files);
    return compared != nullptr && (compared->exact() || !exact) ? compared : nullptr;
  };
  Asked asked{found()};
  if (asked.compared != nullptr) return asked;
  asked.job = app.jobs.start(
      "diff", fmt::format("diff {} {} {}", files.first, files.second, exact),
      [&app, files, exact](std::uint64_t /*number*/, const ballast::Progress& progress) {
        app.comparison.keep(
            files, compare(*app.documents[files.first], *app.documents[files.second], exact, progress));
      });
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (app.jobs.is_running(asked.job) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  asked.compared = found();
  return asked;
}

}  // namespace

Response get_diff(const Call& call) {
  const auto [compared, job] = compare_patiently(call, call.query.flag("exact", false));
  if (compared == nullptr) return json_response({{"job", job}}, 202);
  const Comparison::Files files = files_of(call);
  App& app = call.app;
  const std::string sort = call.query.one_of("sort", {"name", "rel_l2", "max_abs", "file"});
  const std::vector<std::size_t> order = diff_order(compared->report.tensors, sort == "rel_l2"    ? "rel-l2"
                                                                              : sort == "max_abs" ? "max"
                                                                                                  : sort);
  const std::string kind = call.query.text("kind");
  const std::string text = call.query.text("q");
  const Page page = page_of_query(call.query);
  Json rows = Json::array();
  std::size_t total = 0;
  for (const std::size_t index : order) {
    if (!is_wanted(compared->report.tensors[index], kind, text)) continue;
    if (total >= page.offset && rows.size() < page.limit)
      rows.push_back(change_row(*app.documents[files.first], *app.documents[files.second], *compared, index));
    ++total;
  }
  Json answer = {{"total", total}};
  answer.update(counts_of(compared->report));
  answer["sampled"] = !compared->exact();
  answer["bytes"] = bytes_to_compare(*compared);
  answer["rows"] = std::move(rows);
  return json_response(answer);
}

}  // namespace tool::view
