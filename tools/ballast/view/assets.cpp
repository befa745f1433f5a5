// SPDX-License-Identifier: Apache-2.0
#include "view/assets.h"

namespace tool::view {

std::string_view media_type(std::string_view name) noexcept {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace tool::view
