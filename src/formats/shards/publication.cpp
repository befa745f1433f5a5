// SPDX-License-Identifier: Apache-2.0
#include "formats/shards/publication.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

// Held on the journal as long as names change. It goes with the process that has it, so that a journal nobody
// holds was left behind.
class JournalLock {
 public:
  explicit JournalLock(const std::string& journal)
      : descriptor_(::open(journal.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    if (descriptor_ < 0) return;
    // File systems without locks say other things than EWOULDBLOCK: nothing better can be had there.
    is_taken_ = flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }

  JournalLock(const JournalLock&) = delete;
  JournalLock& operator=(const JournalLock&) = delete;

  ~JournalLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  void require_free(const std::string& index) const {
    if (is_taken_)
      fail(Errc::already_exists, display(index),
           "another process is giving shards their names here; try again when it is done");
  }

 private:
  int descriptor_;
  bool is_taken_ = false;
};

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
  JournalLock(journal).require_free(what.index);
  ProvisionalFile journal_in_place(journal);  // goes in the end, whatever the end is
  if (has_journal) {
    AtomicFile out(journal, true, FileMode::usual, Links::replace);
    out.append(text_of(what));
    out.commit();
  }
  const JournalLock alive(journal);
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
  const JournalLock left_behind(journal);
  left_behind.require_free(index);
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
