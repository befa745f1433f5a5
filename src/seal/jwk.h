// SPDX-License-Identifier: Apache-2.0
// Keys as JSON (RFC 7517), as CryptoTensors has them: secret ones that open tensors, public ones that check
// who made a file.
#pragma once

#include <string>
#include <vector>

#include "seal/keys.h"
#include "seal/primitives.h"

namespace ballast::seal {

struct JsonKeys {
  struct Symmetric {
    std::string id;  // "kid"; may be empty
    Key key;
    std::size_t size = 0;  // bytes of it
  };
  struct Verifying {
    std::string id;
    Point key{};
  };

  std::vector<Symmetric> symmetric;
  std::vector<Verifying> verifying;
};

/// Those of the identity files that are JSON: one key, a list, or {"keys": […]}. Kinds nobody here needs are
/// passed over. Errc::bad_json, Errc::invalid_argument: nothing of a key is shown.
[[nodiscard]] JsonKeys json_keys_in(const GivenKeys& given);

}  // namespace ballast::seal
