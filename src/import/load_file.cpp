// SPDX-License-Identifier: Apache-2.0
#include "ballast/load_file.h"

namespace ballast::detail {

std::vector<Checkpoint> open_all(const std::vector<std::string>& paths) {
  std::vector<Checkpoint> parts;
  parts.reserve(paths.size());
  for (const std::string& path : paths) parts.push_back(open(path));
  return parts;
}

}  // namespace ballast::detail
