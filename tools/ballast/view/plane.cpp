// SPDX-License-Identifier: Apache-2.0
// files/F/t/N/plane, values, tile, lines: two axes of a tensor as a picture, down to its numbers. The same of
// two tensors: diff/t/I/….
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "ballast/error.h"
#include "ballast/stats.h"
#include "view/app.h"
#include "view/exact.h"
#include "view/value_text.h"

namespace tool::view {
namespace {

constexpr std::int64_t kMostValues = 64;  // a side

// What two tensors become; absmax and the others are what a cell shows of it.
ballast::Delta delta_of(const std::string& stat) {
  if (stat == "ratio") return ballast::Delta::ratio;
  return stat == "sign" ? ballast::Delta::sign : ballast::Delta::difference;
}

ballast::CellStat cell_stat(const std::string& stat) {
  if (stat == "absmax") return ballast::CellStat::absmax;
  if (stat == "mean") return ballast::CellStat::mean;
  if (stat == "nan") return ballast::CellStat::nan;
  return ballast::CellStat::value;
}

ballast::Plane plane_of(const Call& call) {
  return ballast::Plane(call.tensor(), call.query.numbers("axes"), call.query.numbers("at"));
}

struct DeltaPlane {
  ballast::Plane plane;
  ballast::Tensor a;
  ballast::Tensor b;
  std::string key;  ///< of what a pass over it has found
};

// diff/t/I: the tensors of row I.
DeltaPlane delta_plane(const Call& call, const std::string& stat) {
  const auto compared = compared_files(call);
  if (compared == nullptr)
    throw Refused{409, "not-ready", "the two files are not compared yet; ask for diff"};
  const std::uint64_t index = call.number(0);
  if (index >= compared->report.tensors.size())
    throw Refused{404, "not-found", fmt::format("there is no row {}", index)};
  const ballast::TensorDiff& item = compared->report.tensors[static_cast<std::size_t>(index)];
  const bool in_both = item.change != ballast::Change::only_a && item.change != ballast::Change::only_b;
  if (!in_both) throw Refused{400, "invalid-argument", "the tensor is in one of the two files alone"};
  const ballast::Tensor a = compared->a.tensor(item.name);
  const ballast::Tensor b =
      compared->b.tensor(item.change == ballast::Change::renamed ? item.other : item.name);
  const ballast::Plane plane(a, b, delta_of(stat), call.query.numbers("axes"), call.query.numbers("at"));
  return {plane, a, b,
          fmt::format("diff {} {} {} axes {} at {} of {}", call.query.number("a", 0, 0, INT32_MAX),
                      call.query.number("b", 1, 0, INT32_MAX), static_cast<int>(delta_of(stat)),
                      fmt::join(plane.axes(), ","), fmt::join(plane.at(), ","), item.name)};
}

std::string delta_stat(const Call& call) {
  return call.query.one_of("stat", {"delta", "ratio", "sign", "absmax", "mean", "nan"});
}

Response geometry(const ballast::Plane& plane) {
  return json_response({{"rows", plane.rows()},
                        {"cols", plane.cols()},
                        {"levels", plane.levels()},
                        {"axes", plane.axes()},
                        {"at", plane.at()},
                        {"fold", plane.fold() ? Json(*plane.fold()) : Json(nullptr)}});
}

template <class Number>
void append(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

// Head and cells, little-endian as every machine this is built for.
std::string tile_bytes(const ballast::Tile& tile, int level) {
  std::string out;
  out.reserve(32 + tile.cells.size() * sizeof(float));
  append(out, std::uint32_t{1});
  append(out, static_cast<std::uint32_t>(level));
  append(out, static_cast<std::uint32_t>(tile.width));
  append(out, static_cast<std::uint32_t>(tile.height));
  append(out, tile.min);
  append(out, tile.max);
  append(out, static_cast<std::uint32_t>(tile.exact ? 1 : 0));
  append(out, static_cast<std::uint32_t>(tile.nan));
  out.append(reinterpret_cast<const char*>(tile.cells.data()), tile.cells.size() * sizeof(float));
  return out;
}

Response kept_response(std::shared_ptr<const std::string> bytes) {
  return {.type = "application/octet-stream", .kept = std::move(bytes)};
}

// From what is kept, or made and kept. `made_of` changes when better tiles can be had.
template <class Make>
Response kept_or_made(const Call& call, std::string_view made_of, Make make) {
  const std::string key = fmt::format("{} {}?{}", made_of, call.request.path, call.request.query);
  if (auto kept = call.app.tiles.find(key)) return kept_response(std::move(kept));
  if (call.gone()) throw Refused{410, "gone", "nobody waits for it"};
  auto bytes = std::make_shared<const std::string>(make());
  call.app.tiles.keep(key, bytes);
  return kept_response(std::move(bytes));
}

struct TilePlace {
  int level;
  std::int64_t x;
  std::int64_t y;
};

TilePlace place_of(const Query& query) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40U;
  return {static_cast<int>(query.number("level", 0, 0, 62)), query.number("x", 0, 0, kFar),
          query.number("y", 0, 0, kFar)};
}

std::string lines_bytes(const ballast::Lines& lines) {
  std::string out;
  append(out, std::uint32_t{1});
  append(out, static_cast<std::uint32_t>(lines.points.size()));
  append(out, static_cast<std::uint32_t>(lines.exact ? 1 : 0));
  append(out, static_cast<std::uint32_t>(lines.step));
  out.append(reinterpret_cast<const char*>(lines.points.data()), lines.points.size() * sizeof(float));
  return out;
}

struct Window {
  std::int64_t x;
  std::int64_t y;
  std::int64_t width;
  std::int64_t height;
};

Window window_of(const Call& call) {
  return {call.query.number("x", 0, 0, INT64_MAX / 2), call.query.number("y", 0, 0, INT64_MAX / 2),
          call.query.number("w", 16, 1, kMostValues), call.query.number("h", 16, 1, kMostValues)};
}

// A folded vector's last row may be shorter than the others: what is missing has no text.
Json texts_of_window(const ballast::Plane& plane, std::int64_t count, const Window& window,
                     const std::vector<std::string>& texts, std::int64_t width) {
  Json rows = Json::array();
  for (std::size_t first = 0; first < texts.size(); first += static_cast<std::size_t>(width)) {
    Json row = Json::array();
    const std::int64_t y = window.y + static_cast<std::int64_t>(rows.size());
    for (std::int64_t i = 0; i < width; ++i) {
      if (plane.fold() && y * *plane.fold() + window.x + i >= count) break;
      row.push_back(texts[first + static_cast<std::size_t>(i)]);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

Response get_plane(const Call& call) {
  return geometry(plane_of(call));
}

Response get_values(const Call& call) {
  const ballast::Plane plane = plane_of(call);
  const Window window = window_of(call);
  const ballast::Tensor block = plane.elements(window.y, window.x, window.height, window.width);
  const std::int64_t width = block.rank() == 2 ? block.size(1) : 0;
  return json_response(
      {{"x", window.x},
       {"y", window.y},
       {"rows", texts_of_window(plane, call.tensor().numel(), window, value_texts(block), width)}});
}

Response get_tile(const Call& call) {
  const ballast::Plane plane = plane_of(call);
  const TilePlace place = place_of(call.query);
  const std::string stat = call.query.one_of("stat", {"absmax", "mean", "value", "nan"});
  const auto exact = exact_pyramid(call, plane);
  return kept_or_made(call, exact == nullptr ? "sample" : "exact", [&] {
    return tile_bytes(exact == nullptr ? plane.tile(place.level, place.x, place.y, cell_stat(stat))
                                       : exact->tile(place.level, place.x, place.y, cell_stat(stat)),
                      place.level);
  });
}

Response get_lines(const Call& call) {
  const ballast::Plane plane = plane_of(call);
  const auto axis = static_cast<int>(call.query.number("axis", 0, 0, 1));
  const auto of = call.query.one_of("of", {"norm", "absmax"}) == "norm" ? ballast::LineStat::norm
                                                                        : ballast::LineStat::absmax;
  const auto exact = exact_pyramid(call, plane);
  return kept_or_made(call, exact == nullptr ? "sample" : "exact", [&] {
    return lines_bytes(exact == nullptr ? plane.lines(axis, of) : exact->lines(axis, of));
  });
}

Response get_delta_plane(const Call& call) {
  return geometry(delta_plane(call, "delta").plane);
}

Response get_delta_tile(const Call& call) {
  const TilePlace place = place_of(call.query);
  const std::string stat = delta_stat(call);
  const DeltaPlane both = delta_plane(call, stat);
  const auto exact = call.app.exact.find(both.key);
  return kept_or_made(call, exact == nullptr ? "delta" : "exact delta", [&] {
    return tile_bytes(exact == nullptr ? both.plane.tile(place.level, place.x, place.y, cell_stat(stat))
                                       : exact->pyramid.tile(place.level, place.x, place.y, cell_stat(stat)),
                      place.level);
  });
}

Response get_delta_lines(const Call& call) {
  const auto axis = static_cast<int>(call.query.number("axis", 0, 0, 1));
  const auto of = call.query.one_of("of", {"norm", "absmax"}) == "norm" ? ballast::LineStat::norm
                                                                        : ballast::LineStat::absmax;
  const DeltaPlane both = delta_plane(call, "delta");
  const auto exact = call.app.exact.find(both.key);
  return kept_or_made(call, exact == nullptr ? "delta" : "exact delta", [&] {
    return lines_bytes(exact == nullptr ? both.plane.lines(axis, of) : exact->pyramid.lines(axis, of));
  });
}

Response post_delta_exact(const Call& call) {
  const DeltaPlane both = delta_plane(call, delta_stat(call));
  App& app = call.app;
  if (const auto done = app.exact.find(both.key)) return json_response({{"job", done->job}});
  const std::uint64_t job = app.jobs.start(
      "exact", "exact " + both.key, [&app, both](std::uint64_t number, const ballast::Progress& progress) {
        auto pass = std::make_shared<ExactPasses::Pass>();
        pass->job = number;
        pass->pyramid = ballast::pyramid(both.plane, progress);
        pass->bytes = ExactPasses::bytes_of(both.plane);
        app.exact.keep(both.key, std::move(pass));
      });
  return json_response({{"job", job}});
}

Response get_delta_values(const Call& call) {
  const DeltaPlane both = delta_plane(call, "delta");
  const Window window = window_of(call);
  const auto block_of = [&](const ballast::Tensor& tensor) {
    return ballast::Plane(tensor, both.plane.axes(), both.plane.at())
        .elements(window.y, window.x, window.height, window.width);
  };
  const ballast::Tensor a = block_of(both.a);
  const std::int64_t width = a.rank() == 2 ? a.size(1) : 0;
  const std::vector<std::string> texts = difference_texts(a, block_of(both.b));
  return json_response({{"x", window.x},
                        {"y", window.y},
                        {"rows", texts_of_window(both.plane, both.a.numel(), window, texts, width)}});
}

}  // namespace tool::view
