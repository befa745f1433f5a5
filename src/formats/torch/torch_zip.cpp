// SPDX-License-Identifier: Apache-2.0
// torch.save's zip archives (since 1.6) and TorchScript archives: pickles and storages as records below one
// folder.
//
//   <folder>/data.pkl       the object; storages are persistent ids ('storage', class, key, location, count)
//   <folder>/data/<key>     a storage's bytes, stored, on a multiple of 64 in the file
//   <folder>/byteorder      "little" or "big"; little when absent
//   <folder>/constants.pkl  TorchScript only, with code/**.py and storages in constants/<key>
#include <algorithm>
#include <deque>
#include <optional>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/lazy.h"
#include "containers/expansion.h"
#include "containers/zip.h"
#include "containers/zip_names.h"
#include "containers/zip_records.h"
#include "formats/torch/reader.h"
#include "formats/torch/script.h"
#include "tensor/forwarding.h"

namespace ballast::torch {
namespace {

using containers::ZipArchive;
using containers::ZipEntry;
using containers::ZipMethod;

constexpr std::uint64_t kDirectoryRow = 46;  // of an entry, without its name
constexpr std::uint64_t kSmallRecord = std::uint64_t{1} << 20U;
constexpr std::uint64_t kExtraHead = 4;          // of an extra field: its kind and its size
constexpr std::uint64_t kLongSize = 0xFFFFFFFF;  // sizes and places from here on take 64 bits

// The content of one record. Thousands of them lie side by side in a pool, and nothing of the archive is read
// before the first is used.
class RecordStorage final : public ForwardingStorage {
 public:
  RecordStorage(const ZipArchive& zip, const ZipEntry& entry, Access access)
      : ForwardingStorage(entry.size), zip_(zip), entry_(entry), access_(access) {}

 private:
  [[nodiscard]] const Storage& content() const override {
    return *content_.get([this] { return zip_.storage(entry_, access_); });
  }

  const ZipArchive& zip_;  // the pool's
  const ZipEntry& entry_;
  Access access_;
  Lazy<std::shared_ptr<const Storage>> content_;
};

// Storages share one allocation and one owner: making 100,000 of them one by one costs as much as reading the
// pickle.
struct RecordPool {
  explicit RecordPool(ZipArchive archive) : zip(std::move(archive)) {}

  ZipArchive zip;
  std::deque<RecordStorage> records;
};

class Archive {
 public:
  Archive(Objects& objects, const ByteSource& source)
      : objects_(objects),
        source_(source),
        pool_(std::make_shared<RecordPool>(ZipArchive::open(source.shared_from_this()))),
        zip_(pool_->zip) {}

  Ref read(Document& document);

 private:
  [[nodiscard]] const ZipEntry* find(std::string_view name) const {
    return zip_.find(prefix_ + std::string(name), true);
  }

  void find_prefix();
  [[noreturn]] void not_a_checkpoint() const;
  [[nodiscard]] std::string text_of(const ZipEntry& entry) const;
  [[nodiscard]] Ref run(const ZipEntry& entry, const char* folder);
  [[nodiscard]] StorageInfo load_storage(const StorageId& storage, const std::string& folder);
  void check_expansion(const ZipEntry& entry) const;
  void read_script(Document& document);
  void find_strangers();
  [[nodiscard]] bool is_numbered(const ZipEntry& entry) const;
  [[nodiscard]] bool is_number(const ZipEntry& entry) const;
  [[nodiscard]] bool keeps_promise() const;

  void note_entries();

  Objects& objects_;
  const ByteSource& source_;
  std::shared_ptr<RecordPool> pool_;
  const ZipArchive& zip_;
  std::string prefix_;  // "archive/", or empty
  bool big_endian_ = false;
  std::vector<std::uint32_t> loaded_;   // by entry: 1 + its storage in the tree
  std::vector<FirstMention> mentions_;  // by entry, of those
  std::string name_;                    // of the record that is looked for
};

// The folder of data.pkl; it is named after the file it was first saved as, and deeper when somebody zipped
// that folder again.
void Archive::find_prefix() {
  constexpr std::string_view kName = "data.pkl";
  const ZipEntry* found = nullptr;
  std::ptrdiff_t depth = 0;
  for (const ZipEntry& entry : zip_.entries()) {
    const std::string_view name = entry.name;
    if (name.size() < kName.size() ||
        !containers::equal_any_case(name.substr(name.size() - kName.size()), kName))
      continue;
    const std::string_view folder = name.substr(0, name.size() - kName.size());
    if (!folder.empty() && folder.back() != '/') continue;
    const std::ptrdiff_t own = std::max<std::ptrdiff_t>(std::count(folder.begin(), folder.end(), '/'),
                                                        1);  // the root counts as a folder
    if (found != nullptr && own > depth) continue;
    if (found != nullptr && own == depth)
      fail(Errc::zip_ambiguous, source_.where(), "two objects: {} and {}", quoted(found->name), quoted(name));
    found = &entry;
    depth = own;
  }
  if (found == nullptr) not_a_checkpoint();
  prefix_ = std::string(found->name.substr(0, found->name.size() - kName.size()));
}

void Archive::not_a_checkpoint() const {
  const auto has = [&](std::string_view tail) {
    return std::any_of(zip_.entries().begin(), zip_.entries().end(),
                       [&](const ZipEntry& entry) { return entry.name.ends_with(tail); });
  };
  const bool is_compiled = std::any_of(
      zip_.entries().begin(), zip_.entries().end(),
      [](const ZipEntry& entry) { return entry.name.find("data/aotinductor/") != std::string_view::npos; });
  if (is_compiled)
    fail(Errc::unsupported, source_.where(),
         "is a compiled program (AOTInductor), code for one kind of machine: what weights it has are in its "
         "library, "
         "which Ballast does not read");
  if (has("/archive_format") || has("serialized_exported_program.json")) {
    fail(Errc::unsupported, source_.where(),
         "is a program of torch.export (PT2), whose weights Ballast does not read yet");
  }
  if (has(".data/extern_modules"))
    fail(Errc::unsupported, source_.where(), "is a torch.package archive, which Ballast does not read");
  if (has("/model.json"))
    fail(Errc::unsupported, source_.where(),
         "is a TorchScript archive of torch 1.0 to 1.2, which Ballast does not read");
  if (has("model.weights.h5"))
    fail(Errc::unknown_format, source_.where(),
         "is a model of Keras (.keras), whose weights are in HDF5, which Ballast does not read");
  fail(Errc::unknown_format, source_.where(), "is a zip archive without data.pkl: no PyTorch file");
}

std::string Archive::text_of(const ZipEntry& entry) const {
  const auto bytes = zip_.read(entry, kSmallRecord);
  return std::string(as_text(bytes));
}

void Archive::check_expansion(const ZipEntry& entry) const {
  if (entry.method == ZipMethod::stored || entry.size <= containers::expansion_limit(entry.packed_size))
    return;
  fail(Errc::expansion_limit, zip_.where(entry), "{} bytes that inflate to {}", entry.packed_size,
       entry.size);
}

Ref Archive::run(const ZipEntry& entry, const char* folder) {
  check_expansion(entry);
  if (entry.size > kMaxPickleBytes)
    fail(Errc::header_too_large, zip_.where(entry), "a pickle of {} bytes", entry.size);
  if (entry.method != ZipMethod::stored) objects_.budget().take(entry.size);
  const auto bytes = zip_.storage(entry, Access::read);
  if (entry.has_crc() && crc32(0, span_of(*bytes)) != entry.crc) {
    objects_.ledger().find(Severity::warning, Errc::bad_crc, "the pickle is not what its checksum says", 0,
                           entry.name);
    if (!objects_.settings().inert)
      fail(Errc::bad_crc, zip_.where(entry),
           "the pickle is not what its checksum says (damaged, or changed by hand?)");
  }
  const auto load = [this, name = prefix_ + folder](const StorageId& id) { return load_storage(id, name); };
  return run_whole_pickle(objects_, bytes,
                          {.where = zip_.where(entry),
                           .entry = std::string(entry.name),
                           .base = 0,
                           .persistent =
                               [this, load](Ref id) {
                                 const StorageId storage = parse_storage_id(objects_, id);
                                 return objects_.views().storage(load(storage), storage.type);
                               },
                           .storage = load});
}

// A number as keys are written: digits without a leading zero.
std::optional<std::size_t> key_number(std::string_view key) {
  if (key.empty() || key.size() > 8 || (key.size() > 1 && key[0] == '0')) return std::nullopt;
  std::size_t number = 0;
  for (const char digit : key) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<std::size_t>(digit - '0');
  }
  return number;
}

void Archive::note_entries() {
  const auto entries = zip_.entries();
  for (const ZipEntry& entry : entries) objects_.budget().admit(kDirectoryRow + entry.name.size());
  loaded_.assign(entries.size(), 0);
  mentions_.assign(entries.size(), {});
}

StorageInfo Archive::load_storage(const StorageId& storage, const std::string& folder) {
  name_.assign(folder).append(storage.key);
  const ZipEntry* entry = zip_.find(name_, true);
  if (entry == nullptr) {
    objects_.refuse(Errc::missing_storage,
                    "storage {} of {} bytes is not in the archive (there is no record {})",
                    quoted(storage.key), storage.bytes, quoted(name_));
  }
  if (entry->size != storage.bytes) {
    objects_.refuse(Errc::size_mismatch, "storage {} needs {} bytes, {} are in record {}",
                    quoted(storage.key), storage.bytes, entry->size, quoted(entry->name));
  }
  const auto number = static_cast<std::size_t>(entry - zip_.entries().data());
  std::uint32_t& loaded = loaded_[number];
  if (loaded != 0) {
    mentions_[number].check(objects_, storage);
  } else {
    check_expansion(*entry);
    objects_.budget().take(sizeof(RecordStorage) + 64);
    mentions_[number] = FirstMention(storage);
    const RecordStorage& made = pool_->records.emplace_back(zip_, *entry, access_of(source_));
    objects_.tree().storages.emplace_back(pool_, &made);
    loaded = static_cast<std::uint32_t>(objects_.tree().storages.size());
  }
  return {.dtype = storage.dtype,
          .location = storage.location,
          .numel = storage.numel,
          .offset = 0,
          .index = loaded - 1,
          .big_endian = big_endian_};
}

// Where PyTorch's writer puts the content of a record whose header it begins at `cursor`: behind an extra
// field that fills up to the alignment, and one of 64-bit sizes where they are needed.
std::uint64_t written_place(std::uint64_t cursor, const ZipEntry& entry, std::uint64_t alignment) {
  std::uint64_t start = cursor + containers::zip::kLocalSize + entry.name.size() + kExtraHead;
  if (entry.size >= kLongSize || cursor >= kLongSize)
    start += kExtraHead + (entry.size >= kLongSize ? 16 : 0) + (cursor >= kLongSize ? 8 : 0);
  return (start + alignment - 1) / alignment * alignment;
}

// `.format_version` promises that storages lie where PyTorch's writer would have put them, in the order of
// their first use: newer releases may compute their places instead of looking them up.
bool Archive::keeps_promise() const {
  const ZipEntry* version = find(".format_version");
  if (version == nullptr || text_of(*version) < "1") return true;
  const ZipEntry* record = find(".storage_alignment");
  const auto alignment = record == nullptr ? 64 : key_number(text_of(*record)).value_or(0);
  if (alignment == 0) return false;
  std::vector<std::pair<std::uint32_t, const ZipEntry*>> used;
  for (std::size_t i = 0; i < loaded_.size(); ++i) {
    if (loaded_[i] != 0) used.emplace_back(loaded_[i], &zip_.entries()[i]);
  }
  std::sort(used.begin(), used.end());
  for (std::size_t i = 1; i < used.size(); ++i) {
    const ZipEntry& before = *used[i - 1].second;
    const bool is_long = before.header >= kLongSize || before.size >= kLongSize;
    const std::uint64_t descriptor = before.size == 0 ? 0 : is_long ? 24 : 16;
    const ZipEntry& entry = *used[i].second;
    if (entry.data != written_place(before.data + before.size + descriptor, entry, alignment)) return false;
  }
  return true;
}

// torch.save numbers storages. Other loaders of archives go by names: that of AOTInductor runs any
// data/aotinductor/model/*.so, that of torch.package any *.py.
bool Archive::is_numbered(const ZipEntry& entry) const {
  const std::string folder = prefix_ + "data/";
  return entry.name.size() > folder.size() && entry.name.starts_with(folder) &&
         entry.name.find_first_not_of("0123456789", folder.size()) == std::string_view::npos;
}

// What the small records beside the object hold.
bool Archive::is_number(const ZipEntry& entry) const {
  constexpr std::uint64_t kLongest = 64;
  if (entry.size > kLongest) return false;
  const auto bytes = zip_.read(entry, kLongest);
  return as_text(bytes).find_first_not_of("0123456789\n") == std::string_view::npos;
}

// Records that are no part of what torch.save writes may be read by somebody else.
void Archive::find_strangers() {
  if (objects_.settings().report == nullptr) return;
  if (!keeps_promise())
    objects_.ledger().find(
        Severity::warning, Errc::zip_ambiguous,
        "storages in other places than .format_version promises: newer PyTorch may read others", 0,
        find(".format_version")->name);
  constexpr std::string_view kParts[] = {"data.pkl",        "byteorder",          "version",
                                         ".format_version", ".storage_alignment", ".data/serialization_id"};
  for (std::size_t i = 0; i < zip_.entries().size(); ++i) {
    const ZipEntry& entry = zip_.entries()[i];
    const bool is_part = entry.name.starts_with(prefix_) &&
                         std::find(std::begin(kParts), std::end(kParts), entry.name.substr(prefix_.size())) !=
                             std::end(kParts);
    if (loaded_[i] == 0 && !is_part && entry.size != 0)
      objects_.ledger().find(Severity::warning, Errc::trailing_data, "a record that the object does not name",
                             0, entry.name);
    if (loaded_[i] != 0 && !is_numbered(entry))
      objects_.ledger().find(Severity::warning, Errc::zip_ambiguous,
                             "a storage whose name is no number may be something else to other loaders", 0,
                             entry.name);
    if (is_part && entry.name != prefix_ + "data.pkl" && entry.name != prefix_ + "byteorder" &&
        !is_number(entry))
      objects_.ledger().find(Severity::warning, Errc::trailing_data, "holds something else than a number", 0,
                             entry.name);
  }
}

void Archive::read_script(Document& document) {
  document.format = formats::torchscript;
  document.constants = run(*find("constants.pkl"), "constants/");
  const std::string folder = prefix_ + "code/";
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.starts_with(folder) || !entry.name.ends_with(".py") || entry.size > (kSmallRecord << 4U))
      continue;
    const auto source = zip_.read(entry, kSmallRecord << 4U);
    const std::string_view module = entry.name.substr(folder.size(), entry.name.size() - folder.size() - 3);
    read_script_classes(as_text(source), module, document.script);
  }
}

Ref Archive::read(Document& document) {
  find_prefix();
  note_entries();
  document.format = formats::torch_zip;
  for (const std::string& anomaly : zip_.anomalies()) {
    document.notes.push_back(anomaly);
    objects_.ledger().find(Severity::warning, Errc::bad_zip, anomaly, 0, {});
  }
  if (const ZipEntry* order = find("byteorder")) {
    const std::string text = text_of(*order);
    if (text != "little" && text != "big")
      fail(Errc::unsupported, zip_.where(*order), "byte order {}", quoted(text));
    big_endian_ = text == "big";
  }
  if (big_endian_)
    objects_.ledger().find(Severity::note, Errc::unsupported, "big-endian: read so since PyTorch 2.1", 0, {});
  const bool is_script = find("constants.pkl") != nullptr;
  const Ref root = run(*find("data.pkl"), "data/");
  if (is_script)
    read_script(document);
  else
    find_strangers();
  return root;
}

}  // namespace

Ref read_zip(Objects& objects, const ByteSource& source, Document& document) {
  return Archive(objects, source).read(document);
}

}  // namespace ballast::torch
