// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/nn/place.h"

#include <string_view>

#include "ballast/error.h"
#include "base/fail.h"
#include "tensor/trace.h"

namespace ballast::nn {

Place::Entered::Entered(const Place& place, const char* layer) : told_(tracing::on()) {
  if (told_) tracing::recorder->enter(place.path, layer);
}

Place::Entered::~Entered() {
  if (told_ && tracing::on()) tracing::recorder->leave();
}

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
