// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "ballast/error.h"
#include "ballast/runtime.h"
#include "base/fail.h"

namespace ballast {
namespace {

constexpr std::pair<std::string_view, Io> kNames[] = {
    {"auto", Io::automatic}, {"map", Io::map}, {"read", Io::read}, {"direct", Io::direct}};

}  // namespace

std::vector<std::string> io_names() {
  std::vector<std::string> names;
  for (const auto& [name, io] : kNames) names.emplace_back(name);
  return names;
}

Io io_from_name(std::string_view name) {
  for (const auto& [known, io] : kNames) {
    if (known == name) return io;
  }
  fail(Errc::invalid_argument, "io", "there is no {}; there are {}", quoted(name),
       fmt::join(io_names(), ", "));
}

}  // namespace ballast
