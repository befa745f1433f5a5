// SPDX-License-Identifier: Apache-2.0
// ballast::scan(): the reader's own run, with everything it meets written down.
#include "ballast/scan.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <unordered_set>

#include "ballast/error.h"
#include "ballast/io.h"
#include "base/ascii.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "base/enum_names.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/hash.h"
#include "containers/confine.h"
#include "containers/gzip.h"
#include "containers/magic.h"
#include "containers/zip.h"
#include "formats/beside.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/onnx/onnx.h"
#include "formats/pickle_listing.h"
#include "formats/polyglot.h"
#include "formats/shards/shards.h"
#include "formats/torch/reader.h"

namespace ballast {
namespace {

using containers::ZipArchive;
using containers::ZipMethod;

// What open() refuses is unknown: nobody has looked behind it. A file that is no model's is the caller's
// mistake.
void add_refusal(ScanReport& report, const Error& error, const std::string& entry = {}) {
  if (error.code() == Errc::unknown_format) throw error;
  // What the machine refused while it wrote a finding of its own is not said twice.
  const bool said =
      std::any_of(report.findings.begin(), report.findings.end(), [&](const ScanFinding& finding) {
        return finding.code == error.code() && finding.severity != Severity::note;
      });
  if (!said) {
    const auto severity = error.code() == Errc::forbidden_global ? Severity::danger : Severity::warning;
    report.findings.push_back(
        {.severity = severity, .code = error.code(), .what = error.what(), .offset = 0, .entry = entry});
  }
}

void warn(ScanReport& report, Errc code, std::string what, std::string_view entry = {},
          std::uint64_t offset = 0) {
  report.findings.push_back({.severity = Severity::warning,
                             .code = code,
                             .what = std::move(what),
                             .offset = offset,
                             .entry = std::string(entry)});
}

// One that nobody has read yet. Its storages are not looked up, so tensors in it cannot be made: then what is
// behind them stays unseen, which is said.
void scan_pickle(const containers::ZipArchive& zip, const containers::ZipEntry& entry, ScanReport& report) {
  try {
    if (entry.size > torch::kMaxPickleBytes)
      fail(Errc::header_too_large, zip.where(entry), "a pickle of {} bytes, which nobody has looked into",
           entry.size);
    torch::Objects objects(
        std::make_shared<ValueTree>(),
        {.inert = true, .report = &report, .input_bytes = entry.packed_size, .where = zip.where(entry)});
    objects.load_stream = [&](const std::shared_ptr<const Storage>&, const std::string& where) -> Ref {
      fail(Errc::unsupported, where, "is not looked into here");
    };
    if (entry.method != ZipMethod::stored) objects.budget().take(entry.size);
    const auto bytes = zip.storage(entry, Access::read);
    static_cast<void>(torch::run_whole_pickle(
        objects, bytes,
        {.where = zip.where(entry), .entry = std::string(entry.name), .base = 0, .persistent = [](Ref id) {
           return id;
         }}));
  } catch (const Error& error) {
    warn(report, error.code(), error.what(), entry.name);
  }
}

// Pickles that loading does not need: TorchScript's bytecode and debug records, whatever somebody put beside
// data.pkl.
void scan_other_pickles(const std::shared_ptr<const ByteSource>& source, ScanReport& report) {
  const containers::ZipArchive zip = ZipArchive::open(source);
  std::unordered_set<std::string_view, NameHash> loaded;
  for (const ScanGlobal& global : report.globals) loaded.insert(global.entry);
  std::vector<const containers::ZipEntry*> others;
  for (const containers::ZipEntry& entry : zip.entries()) {
    if (is_called_pickle(entry.name) && entry.size != 0 && !loaded.contains(entry.name))
      others.push_back(&entry);
  }
  loaded.clear();
  for (const containers::ZipEntry* entry : others) scan_pickle(zip, *entry, report);
}

// A storage that begins like an array of NumPy's is one to numpy.load(), which unpickles objects when it is
// asked to.
void find_arrays(const containers::ZipArchive& zip, ScanReport& report) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  for (const containers::ZipEntry& entry : zip.entries()) {
    if (entry.size < kMagic.size()) continue;
    std::array<std::byte, kMagic.size()> head{};
    zip.storage(entry, Access::read)->read(0, head);
    if (as_text(head) != kMagic) continue;
    warn(report, Errc::zip_ambiguous, "is an array to numpy.load()", entry.name);
    return;
  }
}

void scan_torch(const std::shared_ptr<const ByteSource>& source, ScanReport& report) {
  torch::Reader reader(
      source, {.inert = true, .report = &report, .input_bytes = source->size(), .where = source->where()});
  try {
    const torch::Document document = reader.read();
    report.format = document.format;
    if (document.format == formats::torchscript) {
      warn(report, Errc::unsupported,
           "is a TorchScript program: its code, which is run when it is loaded, was not looked at");
    }
    Checkpoint checkpoint;
    checkpoint.path = source->name();
    checkpoint.tree = ValueTree::value(reader.objects().shared_tree(), document.root);
    torch::name_tensors(reader, document, checkpoint);
  } catch (const Error& error) {
    add_refusal(report, error);
  }
}

// A file that somebody else reads as something else has not been looked at as that.
void find_other_readings(const std::shared_ptr<const ByteSource>& source, ScanReport& report) {
  for (const OtherReading& reading : other_readings(*source)) {
    warn(report, reading.code, reading.what, {}, reading.offset);
  }
}

// Whoever does not know age reads what lies on the disk: who writes a file knows its key, and can choose the
// cipher text as well as the text.
void find_readings_of_cipher(const ByteSource& sealed, ScanReport& report) {
  for (const OtherReading& reading : readings_of_bytes(sealed))
    warn(report, reading.code, "encrypted as it is, it " + reading.what, {}, reading.offset);
}

bool is_zip(const ByteSource& source) {
  return source.size() >= 4 && containers::is_zip(source.read(0, 4));
}

Checksums check_zip(const std::shared_ptr<const ByteSource>& source) {
  const containers::ZipArchive zip = ZipArchive::open(source);
  Checksums sums;
  for (const containers::ZipEntry& entry : zip.entries()) {
    static_cast<void>(zip.check_header(entry));
    (zip.check_crc(entry) ? sums.checked : sums.without) += entry.size;
  }
  return sums;
}

}  // namespace

std::string_view name(Severity severity) noexcept {
  static constexpr std::string_view kNames[] = {"note", "warning", "danger"};
  return name_in<Severity::danger>(kNames, severity);
}

std::string_view name(Verdict verdict) noexcept {
  static constexpr std::string_view kNames[] = {"clean", "unknown", "danger"};
  return name_in<Verdict::danger>(kNames, verdict);
}

Verdict ScanReport::verdict() const noexcept {
  Verdict worst = Verdict::clean;
  for (const ScanFinding& finding : findings) {
    if (finding.severity == Severity::warning) worst = std::max(worst, Verdict::unknown);
    if (finding.severity == Severity::danger) worst = Verdict::danger;
  }
  for (const ScanGlobal& global : globals) worst = std::max(worst, global.verdict);
  for (const ScanCall& call : calls) worst = std::max(worst, call.verdict);
  return worst;
}

namespace {

// What was found in a file of several.
void take(ScanReport& report, ScanReport part, const std::string& name) {
  const auto append = [&](auto& to, auto& from) {
    for (auto& item : from) {
      item.entry = item.entry.empty() ? name : name + ": " + item.entry;
      to.push_back(std::move(item));
    }
  };
  append(report.findings, part.findings);
  append(report.globals, part.globals);
  append(report.calls, part.calls);
}

// Each shard by itself; the findings of all, and of the index.
ScanReport scan_shards(const std::string& path, ScanReport report, bool checksums) {
  report.format = formats::sharded;
  try {
    const shards::Index index = shards::read_index(path);
    const std::vector<std::string> paths = shards::locate_all(path, index);
    const SharedBudget together(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const OpenedFile shard = open_content(paths[i], {.io = Io::read});
      if (format_of(*shard.content) == formats::sharded)
        fail(Errc::index_mismatch, display(path), "shard {} is JSON text", quoted(index.files[i]));
      // A link has another name here than where it leads.
      if (std::string runs = what_it_runs(*shard.file, index.files[i]); !runs.empty())
        warn(report, Errc::unsupported, std::move(runs), index.files[i]);
      take(report, scan(paths[i], checksums), index.files[i]);
    }
    // Shards that are sound one by one may not be what the index says they are together.
    if (report.clean()) static_cast<void>(open(path));
  } catch (const Error& error) {
    add_refusal(report, error);
  }
  return report;
}

// Whether a loader would do something with it, whatever it is called.
bool is_loadable(const ByteSource& source) {
  const auto head = head_of(source);
  return containers::is_data(head) || is_called_pickle(source.name()) ||
         !readings_besides(source, Meant::none).empty() ||
         (may_be_packed(head) && containers::is_packed(source));
}

// The regular files of a folder and of those in it, in order.
std::vector<std::string> files_below(const std::string& folder, ScanReport& report) {
  constexpr std::size_t kMost = 10'000;
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().lexically_relative(folder).string();
    if (at->is_regular_file(error)) names.push_back(name);
    if (!error && at->is_other(error))
      warn(report, Errc::unsupported, "is no file and no folder: what is read from it is not known", name);
    if (at->is_symlink(error) && at->is_directory(error))  // which might lead round in circles
      warn(report, Errc::unsupported, "is a link to a folder, which was not looked into", name);
    if (names.size() > kMost) error = std::make_error_code(std::errc::value_too_large);
  }
  if (error) warn(report, Errc::io_error, "not all files of the folder were looked at: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

// One of a folder's files: looked at, or inert by its kind, or unknown.
void scan_beside(const std::string& path, const std::string& name, bool checksums, ScanReport& report) {
  const auto file = File::open(path, {.io = Io::read});
  const bool loadable = is_loadable(*file);
  if (!loadable && is_inert(*file, name)) return;
  // Whoever goes by the name reads it as that, whatever else it is. (Of programs' names scan() speaks.)
  const bool is_said = loadable && !program_by_name(name).empty();
  if (const std::string runs = is_said ? std::string() : what_it_runs(*file, name); !runs.empty()) {
    warn(report, Errc::unsupported, runs, name);
    if (!loadable) return;
  }
  try {
    take(report, scan(path, checksums), name);
  } catch (const Error& error) {
    const bool strange = !loadable && error.code() == Errc::unknown_format;
    warn(report, error.code(),
         strange ? "is of no kind that Ballast knows: nobody has looked at it" : error.what(), name);
  }
}

// A folder is what loaders take from it, and they go by names of their own: every file is looked at that is
// not of a kind which nobody runs, not only the one that open() takes.
ScanReport scan_folder(const std::string& folder, bool checksums) {
  const std::string chosen = shards::find_in_folder(folder).path;
  ScanReport report = scan(chosen, checksums);
  std::set<std::string> known = {std::filesystem::path(chosen).filename().string()};
  if (report.format == formats::sharded) {
    const auto files = shards::read_index(chosen).files;
    known.insert(files.begin(), files.end());
  }
  for (const std::string& name : files_below(folder, report)) {
    if (!known.contains(name))
      scan_beside((std::filesystem::path(folder) / name).string(), name, checksums, report);
  }
  return report;
}

}  // namespace

ScanReport scan(const std::string& path, bool checksums) {
  if (shards::is_folder(path)) return scan_folder(path, checksums);
  ScanReport report;
  const OpenedFile opened = open_content(path, {.io = Io::read});
  const std::shared_ptr<const ByteSource>& source = opened.content;
  const Format format = format_of(*source);
  find_other_readings(source, report);
  if (std::string program = program_by_name(path); !program.empty())
    warn(report, Errc::unsupported, std::move(program));
  if (opened.file != source) find_readings_of_cipher(*opened.file, report);
  if (format == formats::sharded) return scan_shards(path, std::move(report), checksums);
  if (format != formats::torch_zip) {
    try {
      report.format = open(source).format;
    } catch (const Error& error) {
      add_refusal(report, error);
    }
    return report;
  }
  scan_torch(source, report);
  if (!is_zip(*source)) return report;
  try {
    scan_other_pickles(source, report);
    find_arrays(ZipArchive::open(source), report);
    if (checksums) static_cast<void>(check_zip(source));
  } catch (const Error& error) {
    add_refusal(report, error);
  }
  return report;
}

Checksums check_integrity(const std::string& path) {
  const std::shared_ptr<const ByteSource> source = open_content(path, {.io = Io::read}).content;
  if (is_zip(*source)) return check_zip(source);
  if (format_of(*source) == formats::onnx) return onnx_file::check_external(*source);
  return {.checked = 0, .without = open(path).total_bytes()};
}

}  // namespace ballast
