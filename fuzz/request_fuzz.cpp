// SPDX-License-Identifier: Apache-2.0
// Any bytes as the head of an HTTP request to `ballast view`. Beyond not crashing: what is accepted is read
// the same by a plain second reader, line by line, and after being written again; what such a reader would
// read differently (two hosts, a length in two ways, another framing) is refused.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "limits.h"
#include "view/request.h"

namespace {

using ballast::fuzzing::complain;
using tool::view::Method;
using tool::view::ParsedHead;
using tool::view::Request;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Name → values, of everything that has a colon; the way a careless reader does it.
std::map<std::string, std::vector<std::string>> fields_of(std::string_view head) {
  std::map<std::string, std::vector<std::string>> fields;
  std::size_t at = head.find('\n');
  while (at != std::string_view::npos) {
    const std::size_t end = head.find('\n', at + 1);
    std::string_view line = head.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      fields[lower(trimmed(line.substr(0, colon)))].push_back(trimmed(line.substr(colon + 1)));
    at = end;
  }
  return fields;
}

std::string word(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    case Method::remove:
      break;
  }
  return "DELETE";
}

void compare_with_careless_reader(const Request& request, std::string_view head) {
  auto fields = fields_of(head);
  const auto only = [&](const std::string& name) -> std::string {
    if (fields[name].size() > 1) complain("accepted with two of " + name);
    return fields[name].empty() ? std::string() : fields[name][0];
  };
  if (!fields["transfer-encoding"].empty()) complain("accepted with a Transfer-Encoding");
  if (lower(only("host")) != request.host || fields["host"].empty()) complain("another host");
  if (only("origin") != request.origin) complain("another origin");
  if (only("sec-fetch-site") != request.fetch_site) complain("another site");
  if (only("authorization") != request.authorization) complain("another token");
  const std::string length = only("content-length");
  if ((length.empty() ? 0 : std::stoull(length)) != request.body_bytes) complain("another length");
}

void compare_with_itself(const Request& request) {
  std::string again = word(request.method) + ' ' + request.path;
  if (!request.query.empty()) again += '?' + request.query;
  again += " HTTP/1.1\r\nHost: " + request.host + "\r\n";
  if (!request.origin.empty()) again += "Origin: " + request.origin + "\r\n";
  if (!request.fetch_site.empty()) again += "Sec-Fetch-Site: " + request.fetch_site + "\r\n";
  if (!request.authorization.empty()) again += "Authorization: " + request.authorization + "\r\n";
  again += "Content-Length: " + std::to_string(request.body_bytes) + "\r\n\r\n";
  if (again.size() > tool::view::kMostHead) return;
  if (tool::view::end_of_head(again) != again.size()) complain("written again, it ends earlier");
  const ParsedHead second = tool::view::parse_head(again);
  if (second.status != 0) complain("written again, it is refused: " + std::string(second.why));
  const Request& b = second.request;
  if (b.path != request.path || b.query != request.query || b.host != request.host ||
      b.origin != request.origin || b.authorization != request.authorization ||
      b.body_bytes != request.body_bytes || b.method != request.method)
    complain("written again, it says something else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view given(reinterpret_cast<const char*>(data), size);
  const std::size_t end = tool::view::end_of_head(given);
  const std::string_view head = given.substr(0, end == std::string_view::npos ? size : end);
  const ParsedHead parsed = tool::view::parse_head(head);
  if (parsed.status != 0) {
    if (parsed.status < 400 || parsed.status > 505 || parsed.why.empty()) complain("refused without words");
    return 0;
  }
  if (end == std::string_view::npos || head.size() > tool::view::kMostHead)
    complain("accepted without an end");
  if (!parsed.request.path.starts_with('/') || parsed.request.body_bytes > tool::view::kMostBody)
    complain("accepted beyond its limits");
  compare_with_careless_reader(parsed.request, head);
  compare_with_itself(parsed.request);
  return 0;
}
