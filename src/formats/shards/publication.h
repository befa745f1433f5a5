// SPDX-License-Identifier: Apache-2.0
// A set of shards gets its names: all of it, or nothing, also when the process is killed on the way. A
// journal beside the index, ".NAME.publishing", says which files are the new set and which the old one while
// names change; whoever writes the next set finishes or undoes what it speaks of.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace ballast::shards {

struct Publication {
  std::string index;               ///< its path
  std::vector<std::string> fresh;  ///< paths of the new shards
  std::vector<std::string> old;    ///< paths of shards that go when the new index stands
};

/// `files` are the new shards in order, `index` what leads to them; all sealed.
void publish(const Publication& what, const std::vector<std::unique_ptr<AtomicFile>>& files,
             AtomicFile& index);

/// What a killed run left: when the index leads to its set, the old one goes; else its set goes. Temporaries,
/// too.
void recover(const std::string& stem, const std::string& index);

}  // namespace ballast::shards
