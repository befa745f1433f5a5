// SPDX-License-Identifier: Apache-2.0
#include "ballast/nn/place.h"

#include <string_view>

#include "ballast/display.h"
#include "base/fail.h"

namespace ballast::nn {

void Place::rethrow(const char* layer, const Error& error) const {
  std::string where = path.empty() ? layer : display(path) + " (" + layer + ")";
  std::string_view what = error.what();
  if (!error.where().empty()) {
    where += ": " + error.where();
    what.remove_prefix(error.where().size() + 2);  // "where: what"
  }
  fail_text(error.code(), std::move(where), std::string(what));
}

}  // namespace ballast::nn
