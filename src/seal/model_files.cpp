// SPDX-License-Identifier: Apache-2.0
#include "seal/model_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/blocks.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/largest_first.h"
#include "base/shared_progress.h"
#include "base/utf8.h"

namespace ballast::seal {
namespace {

namespace fs = std::filesystem;

bool is_below(std::string_view name, std::string_view folder) {
  if (folder == ".") return true;
  return name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
}

// With the time of the last change of anything, which nobody can set back as the time of writing can.
std::string state_in(const struct stat& status) {
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

class Listing {
 public:
  Listing(const std::string& model, const FileRules& rules) : model_(model), rules_(rules) {}

  ModelFiles all() {
    folders_.emplace_back(".");
    if (look_at(".")) walk();
    return sorted();
  }

  ModelFiles some(const std::vector<SignedFile>& names) {
    for (const SignedFile& file : names) {
      struct stat status {};
      if (::lstat(path_of(file.name).c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
        continue;
      look_at(file.name);
    }
    return sorted();
  }

 private:
  void walk() {
    while (!folders_.empty()) {
      const std::string folder = std::move(folders_.back());
      folders_.pop_back();
      std::error_code error;
      fs::directory_iterator entries(path_of(folder), error);
      for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
        std::string below = folder == "." ? "" : folder + '/';
        below += entries->path().filename().string();
        if (look_at(below)) folders_.push_back(std::move(below));
      }
      if (error) fail_errno(error.value(), display(path_of(folder)), "the folder cannot be listed");
    }
  }

  // Whether it is a folder to go into.
  bool look_at(const std::string& name) {
    const std::string path = path_of(name);
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) fail_errno(errno, display(path), "cannot be looked at");
    const bool is_link = S_ISLNK(status.st_mode);
    if (is_link) follow(path, status);
    if (S_ISDIR(status.st_mode)) {
      if (is_link && name != ".") found_.linked_folders.push_back(name);
      return !is_link || name == ".";
    }
    if (!S_ISREG(status.st_mode))
      fail(Errc::not_regular_file, display(path),
           "is neither a file nor a folder: a model with a pipe, a socket or a device in it is not signed");
    if (!is_ignored(name)) add(name, path, status);
    return false;
  }

  void follow(const std::string& path, struct stat& status) const {
    std::error_code ignored;
    const std::string target = fs::read_symlink(path, ignored).string();
    if (!rules_.allow_symlinks)
      fail(Errc::not_regular_file, display(path),
           "is a symbolic link to {}: links count only where that is asked for (allow_symlinks)",
           quoted(target));
    if (::stat(path.c_str(), &status) != 0)
      fail_errno(errno, display(path), fmt::format("the link to {} leads nowhere", quoted(target)));
  }

  void add(const std::string& name, const std::string& path, const struct stat& status) {
    if (!is_utf8(name)) fail(Errc::bad_name, display(path), "its name is not UTF-8, and cannot be signed");
    found_.files.push_back({name, path, static_cast<std::uint64_t>(status.st_size), state_in(status)});
  }

  [[nodiscard]] bool is_ignored(std::string_view name) const {
    return std::any_of(rules_.ignored.begin(), rules_.ignored.end(),
                       [&](const std::string& path) { return is_below(name, path); });
  }

  [[nodiscard]] std::string path_of(const std::string& name) const {
    return name == "." ? model_ : model_ + '/' + name;
  }

  ModelFiles sorted() {
    std::sort(found_.files.begin(), found_.files.end(),
              [](const ModelFile& a, const ModelFile& b) { return before_path(a.name, b.name); });
    std::sort(found_.linked_folders.begin(), found_.linked_folders.end());
    return std::move(found_);
  }

  const std::string& model_;
  const FileRules& rules_;
  std::vector<std::string> folders_;  // to go into
  ModelFiles found_;
};

// lstat("link/") would follow the link.
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

ModelFiles list_files(const std::string& model, const FileRules& rules) {
  return Listing(without_slashes(model), rules).all();
}

ModelFiles find_files(const std::string& model, const std::vector<SignedFile>& names,
                      const FileRules& rules) {
  return Listing(without_slashes(model), rules).some(names);
}

std::vector<Sha256::Digest> hash_files(const std::vector<ModelFile>& files, const Progress& progress) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t total = 0;
  for (const ModelFile& file : files) total += sizes.emplace_back(file.size);
  SharedProgress shared(progress, total);
  std::vector<Sha256::Digest> digests(files.size());
  largest_first(sizes, [&](std::size_t i) {
    const auto file = File::open(files[i].path, {.io = Io::read});
    if (file->size() != files[i].size)
      fail(Errc::file_changed, display(files[i].path), "has {} bytes, it had {} a moment ago", file->size(),
           files[i].size);
    Sha256 sha;
    for_each_block(*file, 0, file->size(), [&](std::uint64_t, std::span<const std::byte> block) {
      sha.update(block);
      shared.add(block.size());
    });
    file->check_unchanged();
    digests[i] = sha.finish();
  });
  return digests;
}

std::string model_name(const std::string& model) {
  const fs::path path(without_slashes(model));
  std::string last = path.filename().string();
  if (!last.empty() && last != "." && last != "..") return last;
  std::error_code ignored;
  return fs::weakly_canonical(path, ignored).filename().string();
}

std::string place_in_model(const std::string& model, const std::string& path) {
  const auto resolved = [](const std::string& one) {
    std::error_code error;
    fs::path found = fs::weakly_canonical(fs::absolute(one), error);
    if (error) fail_errno(error.value(), display(one), "cannot be looked at");
    return found;
  };
  const fs::path place = resolved(path).lexically_relative(resolved(without_slashes(model)));
  return place.empty() ? "" : plain_path(place.string());
}

}  // namespace ballast::seal
