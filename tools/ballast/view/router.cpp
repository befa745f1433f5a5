// SPDX-License-Identifier: Apache-2.0
// From a request to the endpoint that answers it, past everybody who may not ask.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "view/app.h"
#include "view/assets.h"

namespace tool::view {
namespace {

struct Route {
  Method method;
  std::string_view pattern;  // '*' is a number
  Response (*answer)(const Call& call);
};

Response post_alive(const Call& /*call*/) {
  return json_response(Json::object());
}

Response post_quit(const Call& call) {
  call.app.quit();
  Response response = json_response(Json::object());
  response.close = true;
  return response;
}

constexpr std::array kRoutes = {
    Route{Method::get, "files", get_files},
    Route{Method::post, "alive", post_alive},
    Route{Method::post, "quit", post_quit},
    Route{Method::get, "files/*/tree", get_tree},
    Route{Method::get, "files/*/find", get_find},
    Route{Method::get, "files/*/treemap", get_treemap},
    Route{Method::get, "files/*/measures", get_measures},
    Route{Method::get, "files/*/t/*", get_tensor},
    Route{Method::get, "files/*/t/*/plane", get_plane},
    Route{Method::get, "files/*/t/*/values", get_values},
    Route{Method::get, "files/*/t/*/tile", get_tile},
    Route{Method::get, "files/*/t/*/lines", get_lines},
    Route{Method::get, "files/*/t/*/summary", get_summary},
    Route{Method::post, "files/*/t/*/exact", post_exact},
    Route{Method::get, "files/*/t/*/npy", get_npy},
    Route{Method::get, "files/*/t/*/csv", get_csv},
    Route{Method::get, "files/*/objects", get_objects},
    Route{Method::get, "files/*/scan", get_scan},
    Route{Method::get, "files/*/pickle", get_pickle},
    Route{Method::get, "files/*/layout", get_layout},
    Route{Method::get, "files/*/onnx", get_onnx},
    Route{Method::get, "diff", get_diff},
    Route{Method::get, "diff/t/*/plane", get_delta_plane},
    Route{Method::get, "diff/t/*/tile", get_delta_tile},
    Route{Method::get, "diff/t/*/lines", get_delta_lines},
    Route{Method::post, "diff/t/*/exact", post_delta_exact},
    Route{Method::get, "diff/t/*/values", get_delta_values},
    Route{Method::get, "jobs/*", get_job},
    Route{Method::remove, "jobs/*", delete_job},
};

bool is_path_number(std::string_view piece) {
  if (piece.empty() || piece.size() > 15 || (piece.size() > 1 && piece[0] == '0')) return false;
  for (const char c : piece) {
    if (c < '0' || c > '9') return false;
  }
  return true;
}

bool fits_pattern(std::string_view pattern, std::string_view path, std::vector<std::string_view>& numbers) {
  numbers.clear();
  while (true) {
    const std::size_t ours = std::min(pattern.find('/'), pattern.size());
    const std::size_t theirs = std::min(path.find('/'), path.size());
    const std::string_view piece = path.substr(0, theirs);
    if (pattern.substr(0, ours) == "*") {
      if (!is_path_number(piece)) return false;
      numbers.push_back(piece);
    } else if (pattern.substr(0, ours) != piece) {
      return false;
    }
    if (ours == pattern.size() || theirs == path.size())
      return ours == pattern.size() && theirs == path.size();
    pattern.remove_prefix(ours + 1);
    path.remove_prefix(theirs + 1);
  }
}

// The only endpoint without a token: it gives one, once.
Response post_session(App& app, const Request& request) {
  const auto body = Json::parse(request.body, nullptr, false);
  if (!body.is_object() || !body.contains("code") || !body["code"].is_string())
    return error_response(400, "invalid-argument", "a JSON object with \"code\" is expected");
  switch (app.guard.redeem(body["code"].get<std::string>())) {
    case Guard::Redeemed::yes:
      app.see();
      return json_response({{"token", app.guard.token()}});
    case Guard::Redeemed::used_before:
      app.warn("the one-time code of the opened page was used a second time, and refused");
      return error_response(403, "forbidden", "this code was used before");
    case Guard::Redeemed::wrong:
      break;
  }
  return error_response(403, "forbidden", "this is not the code");
}

Response answer_api(App& app, const Request& request, std::string_view path, const Gone& gone) {
  if (path == "session" && request.method == Method::post) return post_session(app, request);
  if (!app.guard.knows(request))
    return error_response(403, "forbidden", "the token is missing or wrong; use the URL the command printed");
  app.see();
  const Method method = request.method == Method::head ? Method::get : request.method;
  bool is_known = false;
  for (const Route& route : kRoutes) {
    std::vector<std::string_view> numbers;
    if (!fits_pattern(route.pattern, path, numbers)) continue;
    is_known = true;
    if (route.method != method) continue;
    const Query query(request.query);
    return route.answer({app, request, query, gone, std::move(numbers)});
  }
  return is_known ? error_response(405, "invalid-argument", "not with this method")
                  : error_response(404, "not-found", "there is nothing of this name");
}

Response answer_asset(const Request& request) {
  if (request.method != Method::get && request.method != Method::head)
    return error_response(405, "invalid-argument", "not with this method");
  const std::string_view name =
      request.path == "/" ? std::string_view("index.html") : std::string_view(request.path).substr(1);
  for (const Asset& asset : assets()) {
    if (asset.name == name) return {.type = media_type(name), .fixed = asset.bytes};
  }
  return error_response(404, "not-found", "there is nothing of this name");
}

}  // namespace

std::uint64_t Call::number(std::size_t index) const {
  std::uint64_t value = 0;
  std::from_chars(rest[index].data(), rest[index].data() + rest[index].size(), value);
  return value;
}

Document& Call::document() const {
  const std::uint64_t file = number(0);
  if (file >= app.documents.size()) throw Refused{404, "not-found", fmt::format("there is no file {}", file)};
  return *app.documents[static_cast<std::size_t>(file)];
}

std::size_t Call::tensor_number() const {
  const auto tensor = static_cast<std::size_t>(number(1));
  static_cast<void>(document().tensor(tensor));  // refused when there is none
  return tensor;
}

Response get_job(const Call& call) {
  return json_response(call.app.jobs.describe(call.number(0)));
}

Response delete_job(const Call& call) {
  call.app.jobs.cancel(call.number(0));
  return get_job(call);
}

Response answer(App& app, const Request& request, const Gone& gone) {
  if (!is_from_here(request))
    return error_response(403, "forbidden", "only the page itself, on this machine, may ask");
  constexpr std::string_view kApi = "/api/1/";
  if (request.path.starts_with(kApi))
    return answer_api(app, request, std::string_view(request.path).substr(kApi.size()), gone);
  return answer_asset(request);
}

}  // namespace tool::view
