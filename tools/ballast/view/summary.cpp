// SPDX-License-Identifier: Apache-2.0
// files/F/t/N/summary and exact: how the values of a tensor are distributed, from a sample at once, from all
// of them when the exact pass is done.
#include <fmt/format.h>

#include <array>

#include "ballast/stats.h"
#include "view/app.h"
#include "view/exact.h"
#include "view/numbers.h"

namespace tool::view {
namespace {

constexpr std::array kQuantiles = {0.0, 0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0};

std::string key_of_plane(const Call& call, const ballast::Plane& plane) {
  return fmt::format("{}/{} axes {} at {}", call.number(0), call.number(1), fmt::join(plane.axes(), ","),
                     fmt::join(plane.at(), ","));
}

std::string key_of_tensor(const Call& call) {
  return fmt::format("{}/{}", call.number(0), call.number(1));
}

std::string quantile_text(double value) {
  const Json number = json_number(value);
  return number.is_string() ? number.get<std::string>() : fmt::format("{:.6g}", value);
}

Json summary_json(const ballast::Summary& summary) {
  const ballast::TensorStats& s = summary.stats;
  Json quantiles = Json::array();
  for (const double q : kQuantiles) quantiles.push_back({q, quantile_text(summary.quantile(q))});
  const ballast::Histogram histogram = summary.histogram();
  Json edges = Json::array();
  for (const double edge : histogram.edges) edges.push_back(json_number(edge));
  return {{"exact", summary.exact()},
          {"sampled", s.count},
          {"elements", summary.values},
          {"min", json_number(s.min)},
          {"max", json_number(s.max)},
          {"mean", json_number(s.mean)},
          {"std", json_number(s.std)},
          {"l2", json_number(s.l2())},
          {"nan", s.nan},
          {"pos_inf", s.inf - s.neg_inf},
          {"neg_inf", s.neg_inf},
          {"zeros", s.zeros},
          {"quantiles", std::move(quantiles)},
          {"histogram",
           {{"edges", std::move(edges)},
            {"counts", histogram.counts},
            {"below", histogram.below},
            {"above", histogram.above}}}};
}

ballast::Plane plane_asked_for(const Call& call) {
  return ballast::Plane(call.tensor(), call.query.numbers("axes"), call.query.numbers("at"));
}

// The pass reads the plane that is looked at; of a tensor with more axes than two the values of all planes
// are summed up besides.
std::uint64_t start_pass(const Call& call) {
  App& app = call.app;
  const ballast::Plane plane = plane_asked_for(call);
  const std::string plane_key = key_of_plane(call, plane);
  const std::string tensor_key = key_of_tensor(call);
  if (const auto done = app.exact.find(plane_key)) return done->job;
  return app.jobs.start(
      "exact", "exact " + plane_key,
      [&app, plane, plane_key, tensor_key](std::uint64_t number, const ballast::Progress& progress) {
        auto pass = std::make_shared<ExactPasses::Pass>();
        ballast::Summary summary;
        pass->job = number;
        pass->pyramid = ballast::pyramid(plane, progress, &summary);
        pass->bytes = ExactPasses::bytes_of(plane);
        pass->summary = to_text(summary_json(summary));
        app.exact.keep(plane_key, pass);
        if (tensor_key != plane_key) app.exact.keep(tensor_key, pass);
      });
}

}  // namespace

std::shared_ptr<const ballast::Pyramid> exact_pyramid(const Call& call, const ballast::Plane& plane) {
  const auto pass = call.app.exact.find(key_of_plane(call, plane));
  return pass == nullptr ? nullptr : std::shared_ptr<const ballast::Pyramid>(pass, &pass->pyramid);
}

Response get_summary(const Call& call) {
  const bool wants_exact = call.query.flag("exact", false);
  if (const auto pass = call.app.exact.find(key_of_tensor(call))) return {.body = pass->summary};
  const std::string key = "summary " + key_of_tensor(call);
  auto kept = call.app.tiles.find(key);
  if (kept == nullptr) {
    const ballast::Summary sample = ballast::sampled_summary(call.tensor());
    kept = std::make_shared<const std::string>((sample.exact() ? "e" : "s") + to_text(summary_json(sample)));
    call.app.tiles.keep(key, kept);
  }
  if (wants_exact && kept->front() != 'e') return json_response({{"job", start_pass(call)}}, 202);
  return {.body = kept->substr(1)};
}

Response post_exact(const Call& call) {
  return json_response({{"job", start_pass(call)}});
}

}  // namespace tool::view
