// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/require_data.h"

#include "ballast/error.h"
#include "base/fail.h"

namespace ballast {

void require_data(const Checkpoint& checkpoint, const std::string& where) {
  for (const Entry& entry : checkpoint) {
    const Tensor tensor = entry.tensor();
    if (!tensor.has_data())
      fail(Errc::not_representable, where, "tensor {} has a shape but no data (not loaded yet?)",
           quoted(entry.name));
    if (tensor.device().type != DeviceType::cpu)
      fail(Errc::unsupported, where, "tensor {} lies in the memory of another device", quoted(entry.name));
  }
}

}  // namespace ballast
