// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1.1 request, as far as the page of `ballast view` needs it. No sockets: bytes in, a
// request or a refusal out. What two readers could read differently is refused, not guessed at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tool::view {

inline constexpr std::size_t kMostHead = 16U << 10U;  ///< bytes of a head with its empty line
inline constexpr std::size_t kMostBody = 64U << 10U;
inline constexpr std::size_t kMostFields = 64;

enum class Method : std::uint8_t { get, head, post, remove };

struct Request {
  Method method = Method::get;
  std::string path;           ///< "/api/1/files", as it was sent: nothing is decoded
  std::string query;          ///< what stands behind '?', as it was sent
  std::string host;           ///< in lower case
  std::string origin;         ///< empty: none was sent
  std::string fetch_site;     ///< Sec-Fetch-Site; empty: none was sent
  std::string authorization;  ///< empty: none was sent
  std::size_t body_bytes = 0;
  bool keep_alive = true;
  std::string body = {};  ///< filled in by whoever reads it
};

struct ParsedHead {
  int status = 0;          ///< 0: `request` holds; else the answer to give, after which nothing more is read
  std::string_view why{};  ///< a sentence, when it is refused
  Request request{};
};

/// Where the head ends, its empty line included; npos: not yet, or never.
[[nodiscard]] std::size_t end_of_head(std::string_view received) noexcept;

/// `head` ends with an empty line, as end_of_head() says.
[[nodiscard]] ParsedHead parse_head(std::string_view head);

}  // namespace tool::view
