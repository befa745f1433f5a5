// SPDX-License-Identifier: Apache-2.0
// Positions of vector members: which number in the file is which in the model. For every vector the model's
// positions are looked for in the file as they are; only when one of them is not there, the file's numbers
// are taken in order instead. Vectors inside vectors are decided one by one. What an empty member would hold
// need not be there, so it alone asks for no move.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ballast/load.h"
#include "base/hash.h"
#include "checkpoint/pattern.h"

namespace ballast {

class Positions {
 public:
  /// `reindex` and `keep` as in LoadOptions.
  Positions(const Slots& slots, const Checkpoint& checkpoint, const std::vector<std::string>& reindex,
            const std::vector<std::string>& keep);

  /// A path of the model in the file's numbers. `index_segments` as in Slot.
  [[nodiscard]] std::string in_file(std::string_view path, std::uint64_t index_segments);

  struct Moved {
    std::string file;   ///< "layers.4"
    std::string model;  ///< "layers.2"
  };

  /// All positions that were found to differ.
  [[nodiscard]] const std::vector<Moved>& moved() const noexcept { return moved_; }

 private:
  using Numbers = std::set<std::int64_t>;
  const std::map<std::int64_t, std::int64_t>& mapping(const std::string& model_prefix,
                                                      const std::string& file_prefix);

  std::unordered_map<std::string, Numbers> model_;     // prefix ("layers.") → positions
  std::unordered_map<std::string, Numbers> required_;  // those not of empty members alone
  NameMap<Numbers> file_;
  std::unordered_map<std::string, std::map<std::int64_t, std::int64_t>> mappings_;
  bool anywhere_;  // may positions differ
  KeyFilter where_;
  std::vector<Moved> moved_;
};

}  // namespace ballast
