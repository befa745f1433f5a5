// SPDX-License-Identifier: Apache-2.0
#include "view/guard.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "fail.h"

namespace tool::view {
namespace {

std::string secret() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(ballast::Errc::io_error, "getrandom", "gives no random bytes for the page's token");
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

// Takes as long for a wrong one as for the right one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// Any port: `ssh -L 9000:127.0.0.1:41234` must work.
bool is_own_name(std::string_view host) {
  for (const std::string_view name : {"127.0.0.1", "localhost", "[::1]"}) {
    if (!host.starts_with(name)) continue;
    const std::string_view rest = host.substr(name.size());
    if (rest.empty()) return true;
    return rest.size() >= 2 && rest.size() <= 6 && rest[0] == ':' &&
           std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; });
  }
  return false;
}

}  // namespace

bool is_from_here(const Request& request) {
  if (!is_own_name(request.host)) return false;
  if (!request.origin.empty() && request.origin != "http://" + request.host) return false;
  return request.fetch_site.empty() || request.fetch_site == "same-origin" || request.fetch_site == "none";
}

Guard::Guard() : token_(secret()), code_(secret()) {}

bool Guard::knows(const Request& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string_view given = request.authorization;
  return given.starts_with(kScheme) && same_secret(given.substr(kScheme.size()), token_);
}

Guard::Redeemed Guard::redeem(std::string_view code) {
  if (!same_secret(code, code_)) return Redeemed::wrong;
  const std::lock_guard lock(mutex_);
  if (is_redeemed_) return Redeemed::used_before;
  is_redeemed_ = true;
  return Redeemed::yes;
}

}  // namespace tool::view
