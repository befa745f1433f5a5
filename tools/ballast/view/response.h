// SPDX-License-Identifier: Apache-2.0
// What is answered, with the header fields that every answer has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "json.h"

namespace tool::view {

/// Where a streamed body goes. Throws when nobody listens any more.
using BodySink = std::function<void(std::string_view bytes)>;

struct Response {
  int status = 200;
  std::string_view type = "application/json";
  std::string body = {};
  std::string_view fixed = {};                   ///< in place of `body`: bytes of the program itself
  std::shared_ptr<const std::string> kept = {};  ///< in place of `body`: bytes that are kept here
  std::string attachment = {};                   ///< a file's name: the browser saves it
  std::uint64_t stream_bytes = 0;                ///< of what `stream` gives
  std::function<void(const BodySink&)> stream = {};
  bool close = false;  ///< the connection, after it

  [[nodiscard]] std::string_view content() const noexcept {
    return kept != nullptr ? std::string_view(*kept) : body.empty() ? fixed : std::string_view(body);
  }
};

[[nodiscard]] Response json_response(const Json& object, int status = 200);
[[nodiscard]] Response binary_response(std::string bytes);
/// {"error":{"code","where","message"}}
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message,
                                      std::string_view where = {});

/// Status line and all header fields, with the empty line behind them.
[[nodiscard]] std::string head_of(const Response& response, bool keep_alive);

/// Thrown by whoever answers: becomes an error_response().
struct Refused {
  int status;
  std::string code;
  std::string message;
};

/// The exception being handled, as an answer.
[[nodiscard]] Response current_exception_response();

}  // namespace tool::view
