// SPDX-License-Identifier: Apache-2.0
// Who may ask. Other pages of the browser, other users of the machine and whoever reads the process list may
// not: a secret in the URL's fragment, which browsers never send, and a one-time code for the browser's
// command line, which anybody can see.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "view/request.h"

namespace tool::view {

/// Whether the request comes from this machine's own names for itself and from the page itself: an address
/// that was made to lead here ("rebinding") and pages of others do not.
[[nodiscard]] bool is_from_here(const Request& request);

class Guard {
 public:
  /// New secrets. Errc::io_error when the system has none to give.
  Guard();

  [[nodiscard]] const std::string& token() const noexcept { return token_; }

  [[nodiscard]] const std::string& code() const noexcept { return code_; }

  [[nodiscard]] bool knows(const Request& request) const;

  enum class Redeemed { yes, used_before, wrong };
  /// Once: whoever comes second is refused.
  [[nodiscard]] Redeemed redeem(std::string_view code);

 private:
  std::string token_;
  std::string code_;
  std::mutex mutex_;
  bool is_redeemed_ = false;
};

}  // namespace tool::view
