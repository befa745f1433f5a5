// SPDX-License-Identifier: Apache-2.0
#include "ballast/format.h"

#include <ostream>

namespace ballast {

std::ostream& operator<<(std::ostream& out, Format format) {
  return out << format.name();
}

}  // namespace ballast
