// SPDX-License-Identifier: Apache-2.0
// ballast::save(): a checkpoint in a format of the table.
#include <algorithm>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/quantized.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "checkpoint/file_options.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/require_sound.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/instead_of.h"
#include "formats/safetensors/header.h"
#include "seal/age_cover.h"

namespace ballast {
namespace {

// What the format has no words for is refused rather than lost.
Checkpoint representable(const Checkpoint& in, Format format, const Metadata& meta,
                         const std::string& where) {
  static_cast<void>(dequantize(in));  // what is said to be quantized must be there, with its scales
  const std::string whose = layout::of(in);
  if (format == formats::record) {
    Checkpoint out = in;
    record::forget_checksums(out);
    layout::set(out, whose);
    marks::add_metadata(out, format, meta, where);
    return marks::without_ties(std::move(out));
  }
  if (!format->holds_layout && whose != format->layout)
    fail(Errc::not_representable, where,
         "{} has no place to say that the tensors have the layout {}, and readers would take it for {}; "
         "convert them (layout: {}), or write safetensors or record",
         format.name(), quoted(whose), quoted(format->layout), format->layout);
  Checkpoint bare = record::without_record_metadata(in);
  if (format == formats::safetensors)
    layout::state_for_safetensors(bare, whose);
  else if (format->layout == "pytorch")
    layout::state(bare, whose);
  else
    layout::set(bare, whose);
  marks::add_metadata(bare, format, meta, where);
  if (format->holds_metadata) return marks::without_ties(std::move(bare));
  if (is_quantized(bare))
    fail(Errc::not_representable, where,
         "{} has no place to say what is quantized; dequantize first, or write safetensors or record",
         format.name());
  return marks::with_ties(std::move(bare));
}

// A row's word counts, also where its writer, a user's, would not look.
void require_held(const Checkpoint& checkpoint, Format format, const std::string& where) {
  if (format->holds == nullptr) return;
  const bool has_scales = format->holds_tree && checkpoint.tree;  // of quantized tensors: its writer looks
  for (const Entry& entry : checkpoint) {
    if (has_scales && info(entry.dtype).kind == DTypeKind::quantized) continue;
    if (!format->holds(entry.dtype))
      fail(Errc::not_representable, where, "tensor {} is {}, which {} does not hold{}", quoted(entry.name),
           info(entry.dtype).code, format.name(), instead_of(entry.dtype));
  }
}

bool is_own(Format format) {
  const auto own = all_formats();
  return std::find(own.begin(), own.end(), format) != own.end();
}

// A writer of somebody else's may put its bytes anywhere.
void require_own_writer(Format format, const std::string& where) {
  if (!is_own(format))
    fail(Errc::unsupported, where, "{} is no format of Ballast's own, and only those are encrypted",
         format.name());
}

// What the format's writer would not look at. One of somebody else's gets them all.
void require_known_by(Format format, const SaveOptions& options, const std::string& where) {
  if (format == formats::torch_zip || format == formats::torch_legacy)
    require_known(options, where,
                  {"format", "plain_dict", "simplify", "extent", "meta", "check", "pack", "recipients",
                   "passphrase_file"});
  else if (format->layout == "burn")
    require_known(options, where,
                  {"format", "burn", "meta", "check", "pack", "recipients", "passphrase_file"});
  else if (is_own(format))
    require_known(options, where,
                  {"format", "meta", "check", "pack", "recipients", "passphrase_file",
                   format == formats::safetensors ? "durable" : "pack"});
}

}  // namespace

void save(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  if (options.shard_bytes != 0) {
    save_shards(in, path, options);
    return;
  }
  const bool encrypts = !options.recipients.empty() || !options.passphrase_file.empty();
  require_encryption_said(path, encrypts);
  const Format format = format_for(path, options.format);
  if (format->save == nullptr)
    fail(Errc::unsupported, display(path), "{} is read and not written; written are {}", format.name(),
         writable_names());
  if (options.pack != Pack::none && format != formats::safetensors && format != formats::record)
    fail(Errc::unsupported, display(path), "only Safetensors files and records are packed, not {}",
         format.name());
  require_known_by(format, options, display(path));
  if (encrypts) require_own_writer(format, display(path));
  const Checkpoint out = representable(in, format, options.meta, display(path));
  safetensors::require_none_of_storage(out.metadata, display(path));
  require_held(out, format, display(path));
  if (options.check) require_sound(out);
  sweep_temporaries(path);
  if (!encrypts) return format->save(out, path, options);
  const CoverScope scope([&] { return seal::age_cover(options.recipients, options.passphrase_file); });
  format->save(out, path, options);
}

}  // namespace ballast
