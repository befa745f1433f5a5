// SPDX-License-Identifier: Apache-2.0
// Which files an input and an output really are, so that no output takes the place of what is being read.
#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "ballast/error.h"
#include "ballast/io.h"
#include "base/fail.h"
#include "containers/confine.h"
#include "formats/shards/shards.h"

namespace ballast {
namespace {

namespace fs = std::filesystem;

// A file that is there: its device and number. One that is not yet: its folder's, and its name.
using Identity = std::tuple<dev_t, ino_t, std::string>;

// Where a name finally leads, also when nothing is there yet.
fs::path followed(const std::string& path) {
  fs::path current = path;
  std::error_code error;
  for (int hops = 0; hops < 40 && fs::is_symlink(fs::symlink_status(current, error)); ++hops) {
    const fs::path next = fs::read_symlink(current, error);
    if (error) break;
    current = next.is_absolute() ? next : current.parent_path() / next;
  }
  return current;
}

std::optional<Identity> identity_of(const std::string& path) {
  struct stat status {};

  if (path.find('\0') != std::string::npos) return std::nullopt;
  if (stat(path.c_str(), &status) == 0) return Identity(status.st_dev, status.st_ino, "");
  const fs::path target = followed(path);
  if (stat(containers::folder_of(target.string()).c_str(), &status) != 0) return std::nullopt;
  return Identity(status.st_dev, status.st_ino, target.filename().string());
}

// An index or a folder stands for all files it leads to; what cannot be read is for the reader to say.
std::vector<std::string> files_behind(const std::string& path) {
  std::vector<std::string> files = {path};
  try {
    if (shards::is_folder(path)) files.push_back(shards::find_in_folder(path).path);
    if (!files.back().ends_with(".json") && !files.back().ends_with(".json.age")) return files;
    const std::string index = files.back();
    for (const std::string& shard : shards::read_index(index).files) {
      if (std::string found = shards::locate(containers::folder_of(index), shard); !found.empty())
        files.push_back(std::move(found));
    }
  } catch (const Error&) {  // no index after all
  }
  return files;
}

void require_place(const std::string& path) {
  const fs::path target = followed(path);
  const std::string folder = containers::folder_of(target.string());
  if (!shards::is_folder(folder))
    fail(Errc::file_not_found, display(path), "its folder {} is not there; make it first",
         ballast::quoted(folder));
  if (target.filename().string().size() > NAME_MAX)
    fail(Errc::invalid_argument, display(path), "a name of {} bytes; the system takes {}",
         target.filename().string().size(), NAME_MAX);
}

}  // namespace

void require_apart(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::map<Identity, std::string> taken;
  for (const std::string& input : inputs) {
    for (const std::string& file : files_behind(input)) {
      if (auto identity = identity_of(file)) taken.emplace(*std::move(identity), "read");
    }
  }
  for (const std::string& output : outputs) {
    require_place(output);
    auto identity = identity_of(output);
    if (!identity) continue;
    const auto [at, is_new] = taken.emplace(*std::move(identity), "written, too");
    if (!is_new)
      fail(Errc::invalid_argument, display(output),
           "is {} in the same run: input and outputs must be different files", at->second);
  }
}

}  // namespace ballast
