// SPDX-License-Identifier: Apache-2.0
// Shards as one Checkpoint: headers read side by side, data left where it is.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "ballast/error.h"
#include "base/budget.h"
#include "base/fail.h"
#include "base/thread_pool.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "containers/confine.h"
#include "containers/expansion.h"
#include "formats/format_table.h"
#include "formats/open.h"
#include "formats/shards/shards.h"

namespace ballast::shards {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesInAMessage = 5;

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesInAMessage); ++i)
    text += (i == 0 ? "" : ", ") + ballast::quoted(names[i]);
  if (names.size() > kNamesInAMessage) text += fmt::format(" and {} more", names.size() - kNamesInAMessage);
  return text;
}

class ShardReader {
 public:
  ShardReader(const std::string& path, const ByteSource& content, OpenOptions options)
      : path_(path), where_(display(path)), options_(std::move(options)), index_(read_index(content)) {}

  Checkpoint read() {
    open_shards();
    count_names();
    out_.format = formats::sharded;
    out_.path = path_;
    out_.reserve(index_.map.size());
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) add(shard);
    require_honest_size();
    if (out_.size() != index_.map.size()) report_absent();
    add_metadata();
    if (!unmapped_.empty())
      out_.notes.push_back(fmt::format("left out, as the index does not know them: {}", list_of(unmapped_)));
    if (index_.total_size != 0 && index_.total_size != out_.total_bytes())
      out_.notes.push_back(fmt::format("the index says {} bytes in all, the tensors have {}",
                                       index_.total_size, out_.total_bytes()));
    return std::move(out_);
  }

 private:
  void open_shards() {
    const std::vector<std::string> paths = locate_all(path_, index_);
    shards_.resize(paths.size());
    if (paths.empty()) return;
    const SharedBudget here(paths.size());
    // A passphrase that is wrong for the first is not tried on the others: each try may take seconds.
    shards_[0] = open_single(paths[0], options_);
    parallel_for(paths.size() - 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
      const SharedBudget there(paths.size());
      for (std::uint64_t i = begin + 1; i <= end; ++i) shards_[i] = open_single(paths[i], options_);
    });
  }

  // Each shard may unfold to 64 MiB whatever its size; not all of ten thousand.
  void require_honest_size() const {
    std::uint64_t held = 0;
    for (const Checkpoint& part : shards_) {
      std::error_code ignored;
      const std::uintmax_t size = fs::file_size(part.path, ignored);
      if (!ignored) held += size;
    }
    const double most = std::max(
        static_cast<double>(containers::expansion_limit(held)),
        static_cast<double>(containers::kPlainlyHonest) + options_.expansion * static_cast<double>(held));
    if (static_cast<double>(out_.total_bytes()) > most)
      fail(Errc::expanded_view, where_,
           "its shards have {} bytes and their tensors {} (made to exhaust its reader? open it with a larger "
           "expansion if it is meant to be)",
           held, out_.total_bytes());
  }

  // Which shard a name belongs to; none when the index does not know it.
  [[nodiscard]] const std::pair<std::string, std::uint32_t>* entry_of(std::string_view name) const {
    const auto found =
        std::lower_bound(index_.map.begin(), index_.map.end(), name,
                         [](const auto& entry, std::string_view key) { return entry.first < key; });
    return found == index_.map.end() || found->first != name ? nullptr : &*found;
  }

  // A tensor in two files: which of them is meant is anybody's guess, whatever the index says.
  void count_names() {
    std::vector<std::pair<std::string_view, std::size_t>> names;
    for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
      for (const Entry& entry : shards_[shard]) names.emplace_back(entry.name, shard);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end(),
                                          [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twice == names.end()) return;
    fail(Errc::duplicate_key, where_, "tensor {} is in two shards, {} and {}", ballast::quoted(twice->first),
         ballast::quoted(index_.files[twice->second]), ballast::quoted(index_.files[(twice + 1)->second]));
  }

  void add(std::size_t shard) {
    const Checkpoint& part = shards_[shard];
    for (const Entry& entry : part) {
      const auto* known = entry_of(entry.name);
      if (known == nullptr) {
        unmapped_.emplace_back(entry.name);
      } else if (known->second != shard) {
        fail(Errc::index_mismatch, where_, "tensor {} is in shard {}, the index says {}",
             ballast::quoted(entry.name), ballast::quoted(index_.files[shard]),
             ballast::quoted(index_.files[known->second]));
      } else {
        out_.add(entry.name, entry.tensor());
      }
    }
    for (const std::string& note : part.notes)
      out_.notes.push_back(display(index_.files[shard]) + ": " + note);
  }

  // What the shards say together is what a merged file would say. huggingface_hub puts second names
  // ("lm_head.weight": "wte.weight") into the index, and not into the shards.
  void add_metadata() {
    marks::Ties ties;
    if (!index_.texts.empty()) unite(std::move(index_.texts), ties);
    for (Checkpoint& part : shards_) {
      if (!part.metadata) continue;
      unite(*part.metadata, ties);
      part.metadata->erase(marks::kTiesKey);
      std::erase_if(*part.metadata, [&](const auto& pair) {
        const auto tie = ties.find(pair.first);
        return tie != ties.end() && tie->second == pair.second && !marks::is_reserved(pair.first);
      });
    }
    marks::merge_metadata(shards_, out_);
    // What a single file says by its format.
    if (std::all_of(shards_.begin(), shards_.end(),
                    [](const Checkpoint& part) { return part.format->holds_tree; }))
      layout::label(out_, layout::of(out_));
    if (!ties.empty()) marks::set_ties(out_, ties);
  }

  // A name may be tied to a tensor of another shard, but not to two.
  void unite(Metadata said, marks::Ties& ties) {
    out_.metadata = std::move(said);
    for (const auto& [name, of] : marks::ties_of(out_)) {
      const auto [at, is_new] = ties.emplace(name, of);
      if (!is_new && at->second != of)
        fail(Errc::duplicate_key, where_, "{} is another name of {} and of {}", ballast::quoted(name),
             ballast::quoted(at->second), ballast::quoted(of));
    }
    out_.metadata.reset();
  }

  [[noreturn]] void report_absent() {
    std::vector<std::string> absent;
    std::string file;
    for (const auto& [name, shard] : index_.map) {
      if (out_.contains(name)) continue;
      if (absent.empty()) file = index_.files[shard];
      absent.push_back(name);
    }
    fail(Errc::index_mismatch, where_,
         "{} tensors of the index are in no shard: {} (the first should be in {})", absent.size(),
         list_of(absent), ballast::quoted(file));
  }

  std::string path_;
  std::string where_;
  OpenOptions options_;
  Index index_;
  std::vector<Checkpoint> shards_;
  std::vector<std::string> unmapped_;
  Checkpoint out_;
};

}  // namespace

std::vector<std::string> locate_all(const std::string& path, const Index& index) {
  const std::string folder = containers::folder_of(path);
  std::vector<std::string> missing;
  std::vector<std::string> paths;
  std::map<std::pair<dev_t, ino_t>, std::string_view> taken;
  for (const std::string& file : index.files) {
    paths.push_back(locate(folder, file));
    struct stat status {};
    if (paths.back().empty() || stat(paths.back().c_str(), &status) != 0) {
      missing.push_back(file);
      continue;
    }
    const auto [other, is_new] = taken.emplace(std::pair(status.st_dev, status.st_ino), file);
    if (!is_new)
      fail(Errc::duplicate_key, display(path),
           "shards {} and {} are one file, so its tensors are there twice", quoted(other->second),
           quoted(file));
  }
  if (!missing.empty()) {
    fail(Errc::missing_shard, display(path), "{} of {} shards {} not there: {}", missing.size(),
         index.files.size(), missing.size() == 1 ? "is" : "are", list_of(missing));
  }
  return paths;
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error)) names.push_back(entry.path().filename().string());
  if (error) fail(Errc::io_error, display(folder), "the folder cannot be read: {}", error.message());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

// What training leaves beside its model, under the names the Hugging Face Trainer and Accelerate use.
bool is_of_training(std::string_view file) {
  constexpr std::array<std::string_view, 7> kNames = {
      "optimizer", "optim", "scheduler", "lr_scheduler", "scaler", "rng_state", "training_args"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view name) {
    return file.starts_with(name) && file.size() > name.size() &&
           (file[name.size()] < 'a' || file[name.size()] > 'z');
  });
}

// Where a model lies beside what its training left, it is the model that is meant; what goes is returned.
std::vector<std::string> take_training_out(std::vector<std::string>& files) {
  const auto rest = std::stable_partition(files.begin(), files.end(),
                                          [](const std::string& file) { return !is_of_training(file); });
  if (rest == files.begin()) return {};
  std::vector<std::string> taken(rest, files.end());
  files.erase(rest, files.end());
  return taken;
}

// torch.distributed.checkpoint: .metadata, and a .distcp for each process.
void refuse_dcp(const std::string& folder) {
  const std::vector<std::string> names = files_in(folder);
  const auto parts = std::count_if(names.begin(), names.end(),
                                   [](const std::string& name) { return name.ends_with(".distcp"); });
  if (parts > 0)
    fail(Errc::unsupported, display(folder),
         "is a checkpoint of torch.distributed.checkpoint (DCP) in {} part{}, which Ballast does not read; "
         "python -m "
         "torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt makes one file of it",
         parts, parts == 1 ? "" : "s");
}

}  // namespace

FoundInFolder find_in_folder(const std::string& folder) {
  std::vector<std::string> indices;
  std::vector<std::string> files;
  std::vector<std::string>
      graphs;  // exports of a model that mostly lies beside them: taken when there is nothing else
  for (const std::string& name : files_in(folder)) {
    if (name.starts_with('.')) continue;
    if (name.ends_with(".index.json") || name.ends_with(".index.json.age")) indices.push_back(name);
    if (has_known_extension(name)) files.push_back(name);
    if (name.ends_with(".onnx")) graphs.push_back(name);
  }
  if (indices.empty() && files.empty() && graphs.empty()) refuse_dcp(folder);
  std::vector<std::string> beside;
  if (indices.empty()) beside = take_training_out(files);
  std::vector<std::string>& found = !indices.empty() ? indices : !files.empty() ? files : graphs;
  if (found.empty())
    fail(Errc::file_not_found, display(folder), "is a folder without an index of shards or a model file");
  if (found.size() > 1)
    fail(Errc::invalid_argument, display(folder), "is a folder with several {}: {}; name the one you mean",
         indices.empty() ? "model files and no index" : "indices", list_of(found));
  return {(fs::path(folder) / found.front()).string(), std::move(beside)};
}

Checkpoint open_index(const std::string& path, const ByteSource& content, const OpenOptions& options) {
  return ShardReader(path, content, options).read();
}

Checkpoint open_folder(const std::string& path, const OpenOptions& options) {
  const FoundInFolder found = find_in_folder(path);
  Checkpoint checkpoint = open(found.path, options);
  if (!found.beside.empty())
    checkpoint.notes.push_back(
        fmt::format("of the folder {} is taken; what training left beside it is not: {}",
                    quoted(fs::path(found.path).filename().string()), list_of(found.beside)));
  return checkpoint;
}

}  // namespace ballast::shards
