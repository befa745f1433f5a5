// SPDX-License-Identifier: Apache-2.0
// ballast::scan(): the reader's own run, with everything it meets written down.
#include "ballast/scan.h"

#include <algorithm>

#include "ballast/display.h"
#include "ballast/io.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/magic.h"
#include "formats/confine.h"
#include "formats/onnx/onnx.h"
#include "formats/shards/shards.h"
#include "formats/sniff.h"
#include "formats/torch/reader.h"
#include "formats/zip.h"

namespace ballast {
namespace {

constexpr std::uint64_t kMaxExtraPickle = std::uint64_t{64} << 20U;

void add_refusal(ScanReport& report, const Error& error, const std::string& entry = {}) {
  // What the machine refused while it wrote a finding of its own is not said twice.
  const bool said =
      std::any_of(report.findings.begin(), report.findings.end(), [&](const ScanFinding& finding) {
        return finding.code == error.code() && finding.severity == Severity::danger;
      });
  if (!said)
    report.findings.push_back({.severity = Severity::danger,
                               .code = error.code(),
                               .what = error.what(),
                               .offset = 0,
                               .entry = entry});
}

// Pickles that loading does not need: TorchScript's bytecode and debug records, whatever somebody put beside
// data.pkl.
void scan_other_pickles(const std::shared_ptr<const File>& file, ScanReport& report) {
  const ZipArchive zip = ZipArchive::open(file);
  for (const ZipEntry& entry : zip.entries()) {
    const bool is_named =
        entry.name.ends_with(".pkl") || entry.name.ends_with("_pkl") || entry.name.ends_with(".pickle");
    const bool is_loaded = std::any_of(report.globals.begin(), report.globals.end(),
                                       [&](const ScanGlobal& global) { return global.entry == entry.name; });
    if (!is_named || is_loaded || entry.size == 0 || entry.size > kMaxExtraPickle) continue;
    torch::Objects objects(std::make_shared<ValueTree>(),
                           {.inert = true, .report = &report, .input_bytes = entry.size});
    objects.load_stream = [](const std::shared_ptr<const Storage>&, const std::string&) {
      return Ref::none();
    };
    try {
      const auto bytes = zip.storage(entry, FileAccess::read);
      std::size_t used = 0;
      static_cast<void>(torch::run_pickle(objects, bytes, 0,
                                          {.where = zip.where(entry),
                                           .entry = std::string(entry.name),
                                           .base = 0,
                                           .persistent = [](Ref id) { return id; }},
                                          used));
    } catch (const Error& error) {
      // Its storages are not looked up, so tensors in it cannot be made: only what it named counts.
      if (error.code() != Errc::type_mismatch) {
        report.findings.push_back({.severity = Severity::warning,
                                   .code = error.code(),
                                   .what = error.what(),
                                   .offset = 0,
                                   .entry = std::string(entry.name)});
      }
    }
  }
}

void scan_torch(const std::shared_ptr<const File>& file, ScanReport& report) {
  torch::Reader reader(Source(file, FileAccess::read),
                       {.inert = true, .report = &report, .input_bytes = file->size()});
  torch::Document document;
  try {
    document = reader.read();
    report.format = document.format;
    Checkpoint checkpoint;
    checkpoint.path = file->path();
    const Value root = ValueTree::value(reader.objects().shared_tree(), document.root);
    checkpoint.tree = root;
    flatten(root, document.format == "torchscript" ? &document.script : nullptr, checkpoint);
  } catch (const Error& error) {
    add_refusal(report, error);
  }
}

Family family_of_file(const std::string& path) {
  const auto file = File::open(path);
  return family_of(file->read(0, std::min<std::uint64_t>(file->size(), kMagicBytes)), file->size(), path);
}

bool is_zip(const File& file) {
  return file.size() >= 4 && as_text(file.read(0, 4)) == "PK\3\4";
}

Checksums check_zip(const std::shared_ptr<const File>& file) {
  const ZipArchive zip = ZipArchive::open(file);
  Checksums sums;
  for (const ZipEntry& entry : zip.entries()) {
    static_cast<void>(zip.check_header(entry));
    (zip.check_crc(entry) ? sums.checked : sums.without) += entry.size;
  }
  return sums;
}

}  // namespace

std::string_view name(Severity severity) noexcept {
  switch (severity) {
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::danger:
      return "danger";
  }
  return "unknown";
}

std::string_view name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::known:
      return "known";
    case Verdict::unknown:
      return "unknown";
    case Verdict::forbidden:
      return "forbidden";
  }
  return "unknown";
}

bool ScanReport::clean() const noexcept {
  return std::all_of(findings.begin(), findings.end(),
                     [](const ScanFinding& finding) { return finding.severity == Severity::note; });
}

namespace {

// Each shard by itself; the findings of all.
ScanReport scan_shards(const std::string& path, const ScanOptions& options) {
  ScanReport report;
  report.format = "sharded";
  try {
    const shards::Index index = shards::read_index(path);
    for (const std::string& name : index.files) {
      const std::string shard = shards::locate(folder_of(path), name);
      if (shard.empty()) fail(Errc::missing_shard, display(path), "shard {} is not there", quoted(name));
      if (family_of_file(shard) == Family::index)
        fail(Errc::index_mismatch, display(path), "shard {} is JSON text", quoted(name));
      ScanReport part = scan(shard, options);
      const auto take = [&](auto& to, auto& from) {
        for (auto& item : from) {
          item.entry = item.entry.empty() ? name : name + ": " + item.entry;
          to.push_back(std::move(item));
        }
      };
      take(report.findings, part.findings);
      take(report.globals, part.globals);
      take(report.calls, part.calls);
    }
  } catch (const Error& error) {
    add_refusal(report, error);
  }
  return report;
}

}  // namespace

ScanReport scan(const std::string& path, const ScanOptions& options) {
  if (shards::is_folder(path)) return scan(shards::find_in_folder(path), options);
  ScanReport report;
  const auto file = File::open(path);
  const auto head = file->read(0, std::min<std::uint64_t>(file->size(), kMagicBytes));
  const Family family = family_of(head, file->size(), path);
  if (family == Family::index) return scan_shards(path, options);
  if (family != Family::torch) {
    try {
      report.format = open(path).format;
    } catch (const Error& error) {
      add_refusal(report, error);
    }
    return report;
  }
  scan_torch(file, report);
  if (!is_zip(*file)) return report;
  try {
    scan_other_pickles(file, report);
    if (options.checksums) static_cast<void>(check_zip(file));
  } catch (const Error& error) {
    add_refusal(report, error);
  }
  return report;
}

Checksums check_integrity(const std::string& path) {
  const auto file = File::open(path);
  if (is_zip(*file)) return check_zip(file);
  if (family_of_file(path) == Family::onnx) return onnx_file::check_external(Source(file, FileAccess::read));
  return {.checked = 0, .without = open(path).total_bytes()};
}

}  // namespace ballast
