// SPDX-License-Identifier: Apache-2.0
// Files that other files name: shards of an index, the data of an ONNX model. They lie below the folder of
// the file that names them, whatever names and links say.
#pragma once

#include <string>

namespace ballast::containers {

/// The folder a file lies in, as it is named: "." for a bare name.
[[nodiscard]] std::string folder_of(const std::string& path);

/// Where `file`, a relative path, really lies, links followed; empty when there is no such file.
/// Errc::path_escape when that is not below `folder`, except where the Hugging Face Hub's cache leads: from
/// snapshots/<revision>/ to blobs/ beside it. What is found is opened with FileOptions::follow_links false,
/// so that a link put there in between leads nowhere.
[[nodiscard]] std::string confined(const std::string& folder, const std::string& file);

}  // namespace ballast::containers
