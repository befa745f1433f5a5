// SPDX-License-Identifier: Apache-2.0
#include "ballast/io_mode.h"

#include "ballast/display.h"
#include "base/fail.h"

namespace ballast {

Io io_from_name(std::string_view name) {
  if (name == "auto") return Io::automatic;
  if (name == "map") return Io::map;
  if (name == "read") return Io::read;
  if (name == "direct") return Io::direct;
  fail(Errc::invalid_argument, "io", R"(there is no {}; "auto", "map", "read" and "direct" are known)",
       quoted(name));
}

}  // namespace ballast
