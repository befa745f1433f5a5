// SPDX-License-Identifier: Apache-2.0
#include "formats/shards/publication.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/file.h"
#include "containers/confine.h"
#include "formats/shards/shards.h"

namespace ballast::shards {
namespace {

namespace fs = std::filesystem;

std::string base_name(const std::string& path) {
  return fs::path(path).filename().string();
}

std::string journal_of(const std::string& index) {
  return (fs::path(containers::folder_of(index)) / fmt::format(".{}.publishing", base_name(index))).string();
}

void remove(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// Which folder it was written in: a journal that came with a download speaks of another one, and deletes
// nothing.
std::string signature_of(const std::string& index) {
  struct stat folder {};

  if (stat(containers::folder_of(index).c_str(), &folder) != 0) return {};
  return fmt::format("publishing in folder {}\n", folder.st_ino);
}

// One line each: "+name" of the new set, "-name" of the old one. Names of shards have no line breaks: they
// are made of the index's name, which is checked below.
std::string text_of(const Publication& what) {
  std::string text = signature_of(what.index);
  for (const std::string& path : what.fresh) text += "+" + base_name(path) + "\n";
  for (const std::string& path : what.old) text += "-" + base_name(path) + "\n";
  return text;
}

using Names = std::set<std::string, std::less<>>;

// Names beside the index.
struct Journal {
  Names fresh;
  Names old;
};

// Nothing where it was not written by us, for this folder. `base` begins the names of the shards.
Journal read_journal(const std::string& journal, const std::string& index, std::string_view base) {
  Journal found;
  const auto file = File::open(journal);
  const std::string text(as_text(file->read(0, std::min<std::uint64_t>(file->size(), kMaxIndexBytes))));
  const std::string signature = signature_of(index);
  if (signature.empty() || !text.starts_with(signature)) return found;
  for (std::size_t at = signature.size(); at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string name = text.substr(at + 1, end - at - 1);
    if (is_shard_of(base, index, name)) (text[at] == '+' ? found.fresh : found.old).insert(name);
    at = end + 1;
  }
  return found;
}

// What the index that stands leads to.
Names files_of(const std::string& index) {
  try {
    const std::vector<std::string> files = read_index(index).files;
    return {files.begin(), files.end()};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void publish(const Publication& what, const std::vector<std::unique_ptr<AtomicFile>>& files,
             AtomicFile& index) {
  const std::string journal = journal_of(what.index);
  const bool has_journal = base_name(what.index).find('\n') == std::string::npos;
  ProvisionalFile journal_in_place(journal);  // goes in the end, whatever the end is
  if (has_journal) {
    AtomicFile out(journal, true, FileMode::usual, Links::replace);
    out.append(text_of(what));
    out.commit();
  }
  std::deque<ProvisionalFile> named;
  for (const auto& file : files) {
    try {
      file->commit();
    } catch (...) {
      if (file->has_final_name()) named.emplace_back(file->path());  // it has its name, and may not keep it
      throw;
    }
    named.emplace_back(file->path());
  }
  try {
    index.commit();
  } catch (...) {
    // With its name in place the new shards are the valid ones, and stay.
    if (index.has_final_name())
      for (ProvisionalFile& file : named) file.keep();
    throw;
  }
  for (ProvisionalFile& file : named) file.keep();
  for (const std::string& path : what.old) {
    if (std::find(what.fresh.begin(), what.fresh.end(), path) == what.fresh.end()) remove(path);
  }
}

void recover(const std::string& stem, const std::string& index) {
  sweep_temporaries(stem);
  const std::string journal = journal_of(index);
  sweep_temporaries(journal);
  std::error_code ignored;
  if (fs::symlink_status(journal, ignored).type() != fs::file_type::regular) return;
  const Journal unfinished = read_journal(journal, index, base_name(stem));
  if (unfinished.fresh.empty()) return;
  const Names standing = files_of(index);
  const bool stands = std::any_of(unfinished.fresh.begin(), unfinished.fresh.end(),
                                  [&](const std::string& name) { return standing.contains(name); });
  const Names& others = stands ? unfinished.fresh : unfinished.old;
  for (const std::string& name : stands ? unfinished.old : unfinished.fresh) {
    if (!others.contains(name) && !standing.contains(name))
      remove((fs::path(containers::folder_of(index)) / name).string());
  }
  remove(journal);
}

}  // namespace ballast::shards
