// SPDX-License-Identifier: Apache-2.0
// The rows of Burn's formats.
#include "ballast/format.h"

#include <algorithm>

#include "base/fail.h"
#include "containers/gzip.h"
#include "containers/magic.h"
#include "formats/burn/burn.h"
#include "formats/burn/json_record.h"
#include "formats/burn/parts.h"

namespace ballast {
namespace {

Likeness recognise_bpk(const FileHead& head) {
  return burn::is_bpk(head.bytes) ? Likeness::certain : Likeness::none;
}

Likeness recognise_mpk(const FileHead& head) {
  const bool is_record =
      burn::is_mpk(head.bytes) || burn::is_json_record(head.bytes) || burn::is_bin_record(head.bytes);
  return is_record ? Likeness::certain : Likeness::none;
}

// Hopefully with an mpk inside: no other format of ours is packed like that.
Likeness recognise_gzip(const FileHead& head) {
  return head.text().starts_with("\x1F\x8B") ? Likeness::certain : Likeness::none;
}

Checkpoint open_bpk(const ByteSource& source, const OpenOptions&) {
  return burn::open_bpk(source);
}

// By what lies on the disk, not by what it unpacks to.
Budget budget_of(const ByteSource& source) {
  Budget budget(source.where());
  budget.admit(source.size());
  return budget;
}

// By its first bytes, in whatever form a recorder wrote it.
Checkpoint open_record(const ByteSource& source, std::span<const std::byte> head, Budget budget) {
  if (burn::is_bin_record(head))
    fail(Errc::unsupported, source.where(),
         "is a record of Burn's BinFileRecorder, which holds neither names nor types: load it with the Burn "
         "that "
         "wrote it, and save it with NamedMpkFileRecorder");
  if (!burn::is_json_record(head)) return burn::open_mpk(source, std::move(budget));
  const auto json = load_range(source, 0, source.size());
  const auto mpk = burn::mpk_of_json(span_of(*json), source.where(), budget);
  Checkpoint checkpoint = burn::open_mpk(*memory_source(mpk, source.name()), std::move(budget));
  checkpoint.notes.emplace_back("a record in JSON: all of it is held in memory");
  return checkpoint;
}

Checkpoint open_mpk(const ByteSource& source, const OpenOptions&) {
  const auto head = load_range(source, 0, std::min<std::uint64_t>(source.size(), containers::kMagicBytes));
  return open_record(source, span_of(*head), budget_of(source));
}

Checkpoint open_gzip(const ByteSource& source, const OpenOptions&) {
  const std::vector<std::byte> head = containers::gunzip_head(source, containers::kMagicBytes);
  if (!burn::is_mpk(head) && !burn::is_json_record(head) && !burn::is_bin_record(head))
    fail(Errc::unknown_format, source.where(), "is a gzip file, and what is in it is no Burn record");
  const auto bytes = containers::gunzip(source);
  Budget budget = budget_of(source);
  if (burn::is_json_record(head)) budget.take(bytes->size());
  return open_record(*memory_source(bytes, source.name()), head, std::move(budget));
}

template <bool kGzip>
void save_mpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  burn::save_mpk(checkpoint, path, options, kGzip);
}

}  // namespace

constinit const FormatRow formats::bpk = {.name = "bpk",
                                          .extensions = {".bpk"},
                                          .recognise = recognise_bpk,
                                          .open = open_bpk,
                                          .save = burn::save_bpk,
                                          .holds = burn::is_written,
                                          .layout = "burn",
                                          .holds_layout = true};

constinit const FormatRow formats::mpk = {.name = "mpk",
                                          .extensions = {".mpk"},
                                          .recognise = recognise_mpk,
                                          .open = open_mpk,
                                          .save = save_mpk<false>,
                                          .holds = burn::is_written,
                                          .layout = "burn",
                                          .holds_layout = true};

constinit const FormatRow formats::mpk_gz = {.name = "mpk-gz",
                                             .extensions = {".mpk.gz"},
                                             .recognise = recognise_gzip,
                                             .open = open_gzip,
                                             .save = save_mpk<true>,
                                             .holds = burn::is_written,
                                             .layout = "burn",
                                             .holds_layout = true};

}  // namespace ballast
