// SPDX-License-Identifier: Apache-2.0
#include "view/response.h"

#include <fmt/format.h>

#include <exception>
#include <new>

#include "ballast/error.h"

namespace tool::view {
namespace {

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

// No other origin may read, frame or script any of it, and nothing of it is kept.
constexpr std::string_view kEveryAnswer =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cache-Control: no-store\r\n";

// A file that is not what it was is gone; what was asked wrongly is the asker's; the rest is ours.
int status_of(ballast::Errc code) {
  switch (code) {
    case ballast::Errc::file_changed:
    case ballast::Errc::truncated:
    case ballast::Errc::file_not_found:
      return 410;
    case ballast::Errc::invalid_argument:
    case ballast::Errc::shape_mismatch:
    case ballast::Errc::offset_out_of_range:
    case ballast::Errc::bad_dtype:
    case ballast::Errc::unsupported:
      return 400;
    case ballast::Errc::not_found:
    case ballast::Errc::unknown_format:
      return 404;
    default:
      return 500;
  }
}

}  // namespace

Response json_response(const Json& object, int status) {
  return {.status = status, .body = to_text(object)};
}

Response binary_response(std::string bytes) {
  return {.type = "application/octet-stream", .body = std::move(bytes)};
}

Response error_response(int status, std::string_view code, std::string_view message, std::string_view where) {
  Json object;
  object["error"] = error_object(code, where, message)["error"];
  return json_response(object, status);
}

std::string head_of(const Response& response, bool keep_alive) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                 response.status, reason_of(response.status), response.type,
                                 response.stream ? response.stream_bytes : response.content().size());
  head += kEveryAnswer;
  if (response.status == 405) head += "Allow: GET, HEAD, POST, DELETE\r\n";
  if (!response.attachment.empty())
    head += fmt::format("Content-Disposition: attachment; filename=\"{}\"\r\n", response.attachment);
  head += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return head;
}

Response current_exception_response() {
  try {
    throw;
  } catch (const Refused& refused) {
    return error_response(refused.status, refused.code, refused.message);
  } catch (const ballast::Error& error) {
    return error_response(status_of(error.code()), name(error.code()), error.what(), error.where());
  } catch (const std::bad_alloc&) {
    return error_response(500, "out-of-memory", "not enough memory");
  } catch (const std::exception& error) {
    return error_response(500, "internal", std::string("unexpected: ") + error.what());
  }
}

}  // namespace tool::view
