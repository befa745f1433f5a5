// SPDX-License-Identifier: Apache-2.0
#include "view/request.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "view/ascii.h"

namespace tool::view {
namespace {

bool is_token(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

// A header's value: no control characters but the tab.
bool is_value(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

class HeadParser {
 public:
  ParsedHead run(std::string_view head) {
    if (head.size() > kMostHead) return refuse(431, "the head of the request is too long");
    if (!head.ends_with("\r\n\r\n")) return refuse(400, "the head of the request has no end");
    head.remove_suffix(2);
    const std::size_t end = head.find("\r\n");
    if (!take_first_line(head.substr(0, end))) return std::move(result_);
    head.remove_prefix(end + 2);
    for (std::size_t fields = 0; !head.empty(); ++fields) {
      if (fields == kMostFields) return refuse(431, "too many header fields");
      const std::size_t line = head.find("\r\n");
      if (!take_field(head.substr(0, line))) return std::move(result_);
      head.remove_prefix(line + 2);
    }
    if (!host_) return refuse(400, "no Host");
    result_.request.host = std::move(*host_);
    result_.request.origin = origin_.value_or("");
    result_.request.fetch_site = fetch_site_.value_or("");
    result_.request.authorization = authorization_.value_or("");
    return std::move(result_);
  }

 private:
  ParsedHead refuse(int status, std::string_view why) {
    result_.status = status;
    result_.why = why;
    return std::move(result_);
  }

  bool no(int status, std::string_view why) {
    result_.status = status;
    result_.why = why;
    return false;
  }

  bool take_first_line(std::string_view line) {
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == std::string_view::npos || first == last) return no(400, "not a request line");
    const std::string_view method = line.substr(0, first);
    const std::string_view target = line.substr(first + 1, last - first - 1);
    const std::string_view version = line.substr(last + 1);
    if (method.empty() || !std::all_of(method.begin(), method.end(), is_token))
      return no(400, "not a request line");
    if (!version.starts_with("HTTP/")) return no(400, "not a request line");
    if (version != "HTTP/1.1") return no(505, "HTTP/1.1 is spoken here");
    const auto is_visible = [](char c) { return c > 0x20 && c < 0x7F && c != '#'; };
    if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_visible))
      return no(400, "not a path");
    constexpr std::array<std::pair<std::string_view, Method>, 4> kMethods = {
        {{"GET", Method::get}, {"HEAD", Method::head}, {"POST", Method::post}, {"DELETE", Method::remove}}};
    const auto* const known =
        std::find_if(kMethods.begin(), kMethods.end(), [&](const auto& row) { return row.first == method; });
    if (known == kMethods.end()) return no(405, "GET, HEAD, POST and DELETE are answered here");
    result_.request.method = known->second;
    const std::size_t question = target.find('?');
    result_.request.path = target.substr(0, question);
    if (question != std::string_view::npos) result_.request.query = target.substr(question + 1);
    return true;
  }

  bool take_field(std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return no(400, "not a header field");
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (!std::all_of(name.begin(), name.end(), is_token) ||
        !std::all_of(value.begin(), value.end(), is_value))
      return no(400, "not a header field");
    return take_known(lower_case(name), value);
  }

  bool take_known(const std::string& name, std::string_view value) {
    if (name == "transfer-encoding") return no(501, "bodies come with a Content-Length");
    if (name == "expect") return no(417, "nothing is expected here");
    if (name == "host") return once(host_, lower_case(value));
    if (name == "origin") return once(origin_, std::string(value));
    if (name == "sec-fetch-site") return once(fetch_site_, std::string(value));
    if (name == "authorization") return once(authorization_, std::string(value));
    if (name == "content-length") return once(length_, std::string(value)) && take_length(value);
    if (name == "connection" && lower_case(value).find("close") != std::string::npos)
      result_.request.keep_alive = false;
    return true;
  }

  bool once(std::optional<std::string>& into, std::string value) {
    if (into) return no(400, "a header field twice");
    into = std::move(value);
    return true;
  }

  bool take_length(std::string_view digits) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit))
      return no(400, "Content-Length is no number");
    std::size_t length = 0;
    for (const char digit : digits) {
      length = length * 10 + static_cast<std::size_t>(digit - '0');
      if (length > kMostBody) return no(413, "the body is too long");
    }
    result_.request.body_bytes = length;
    return true;
  }

  ParsedHead result_;
  std::optional<std::string> host_;
  std::optional<std::string> origin_;
  std::optional<std::string> fetch_site_;
  std::optional<std::string> authorization_;
  std::optional<std::string> length_;
};

}  // namespace

std::size_t end_of_head(std::string_view received) noexcept {
  const std::size_t end = received.find("\r\n\r\n");
  return end == std::string_view::npos ? end : end + 4;
}

ParsedHead parse_head(std::string_view head) {
  return HeadParser().run(head);
}

}  // namespace tool::view
