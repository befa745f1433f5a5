// SPDX-License-Identifier: Apache-2.0
// The rows of Burn's formats.
#include "ballast/format.h"

#include "base/fail.h"
#include "containers/gzip.h"
#include "containers/magic.h"
#include "formats/burn/burn.h"
#include "formats/burn/parts.h"

namespace ballast {
namespace {

Likeness recognise_bpk(const FileHead& head) {
  return burn::is_bpk(head.bytes) ? Likeness::certain : Likeness::none;
}

Likeness recognise_mpk(const FileHead& head) {
  return burn::is_mpk(head.bytes) ? Likeness::certain : Likeness::none;
}

// Hopefully with an mpk inside: no other format of ours is packed like that.
Likeness recognise_gzip(const FileHead& head) {
  return head.text().starts_with("\x1F\x8B") ? Likeness::certain : Likeness::none;
}

Checkpoint open_bpk(const ByteSource& source, const OpenOptions&) {
  return burn::open_bpk(source);
}

Checkpoint open_mpk(const ByteSource& source, const OpenOptions&) {
  return burn::open_mpk(source);
}

Checkpoint open_gzip(const ByteSource& source, const OpenOptions&) {
  if (!burn::is_mpk(containers::gunzip_head(source, containers::kMagicBytes)))
    fail(Errc::unknown_format, source.where(), "is a gzip file, and what is in it is no Burn record");
  return burn::open_mpk(*memory_source(containers::gunzip(source), source.name()));
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
