// SPDX-License-Identifier: Apache-2.0
// Lists as `ballast hash` prints them, checked as sha256sum checks its own.
#pragma once

#include <functional>
#include <string>

#include "ballast/hash.h"
#include "session.h"

namespace tool {

/// Reads the file that the list names and gives its hashes.
using HashFile = std::function<ballast::Manifest(const std::string& path)>;

/// One line of a list after the other: OK or FAILED, and a summary. kFound when one failed, kFailed when a
/// file could not be read. Throws when `path` is no list.
int check_list(Session& session, const std::string& path, JsonStream& json, const HashFile& hash_file);

}  // namespace tool
