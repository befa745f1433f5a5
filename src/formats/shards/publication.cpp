// SPDX-License-Identifier: Apache-2.0
#include "formats/shards/publication.h"

#include <algorithm>
#include <deque>
#include <filesystem>

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

// One line each: "+name" of the new set, "-name" of the old one. Names of shards have no line breaks: they
// are made of the index's name, which is checked below.
std::string text_of(const Publication& what) {
  std::string text;
  for (const std::string& path : what.fresh) text += "+" + base_name(path) + "\n";
  for (const std::string& path : what.old) text += "-" + base_name(path) + "\n";
  return text;
}

Publication read_journal(const std::string& journal, const std::string& index) {
  Publication found{.index = index, .fresh = {}, .old = {}};
  const auto file = File::open(journal);
  const std::string text(as_text(file->read(0, std::min<std::uint64_t>(file->size(), kMaxIndexBytes))));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string name = text.substr(at + 1, end - at - 1);
    // Plain names of shards beside the index, or it was not written by us.
    const bool is_shard = !name.empty() && name.find('/') == std::string::npos &&
                          name.find("-of-") != std::string::npos && name.ends_with(".safetensors");
    if (is_shard)
      (text[at] == '+' ? found.fresh : found.old)
          .push_back((fs::path(containers::folder_of(index)) / name).string());
    at = end + 1;
  }
  return found;
}

bool leads_to(const std::string& index, const std::vector<std::string>& files) {
  try {
    const std::vector<std::string> known = read_index(index).files;
    return std::any_of(files.begin(), files.end(), [&](const std::string& path) {
      return std::find(known.begin(), known.end(), base_name(path)) != known.end();
    });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void publish(const Publication& what, const std::vector<std::unique_ptr<AtomicFile>>& files,
             AtomicFile& index) {
  const std::string journal = journal_of(what.index);
  const bool has_journal = base_name(what.index).find('\n') == std::string::npos;
  ProvisionalFile journal_in_place(journal);  // goes in the end, whatever the end is
  if (has_journal) {
    AtomicFile out(journal, true);
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
  if (!fs::exists(journal, ignored)) return;
  const Publication unfinished = read_journal(journal, index);
  const bool stands = leads_to(index, unfinished.fresh);
  for (const std::string& path : stands ? unfinished.old : unfinished.fresh) {
    const auto& others = stands ? unfinished.fresh : unfinished.old;
    if (std::find(others.begin(), others.end(), path) == others.end()) remove(path);
  }
  remove(journal);
}

}  // namespace ballast::shards
