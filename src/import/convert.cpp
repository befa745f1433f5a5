// SPDX-License-Identifier: Apache-2.0
#include "ballast/convert.h"

#include <algorithm>
#include <filesystem>

#include "ballast/config.h"
#include "ballast/display.h"
#include "ballast/receipt.h"
#include "ballast/root.h"
#include "base/fail.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "formats/save.h"

namespace ballast {
namespace {

bool casts(const ConvertOptions& options) {
  const auto* precision = std::get_if<Precision>(&options.dtype);
  return precision == nullptr || *precision != Precision::keep;
}

bool has_steps(const ConvertOptions& options) {
  return options.root || !options.rules_file.empty() || !options.rules.empty() || !options.rename.empty() ||
         !options.include.empty() || !options.exclude.empty() || casts(options) || options.quantize_int8;
}

DType target_of(const TargetDType& target) {
  if (const auto* precision = std::get_if<Precision>(&target)) return dtype_of_precision(*precision);
  return std::get<DType>(target);
}

Checkpoint take_root(const Checkpoint& in, const ConvertOptions& options, Conversion& done) {
  if (options.root) return options.root->empty() ? in : root(in, *options.root);
  FoundRoot found = find_root(in);
  done.root = found.path;
  return std::move(found.checkpoint);
}

void apply_rules(Checkpoint& checkpoint, const std::vector<rules::Rule>& rules, Conversion& done) {
  if (rules.empty()) return;
  rules::Applied applied = rules::apply(checkpoint, rules);
  done.idle.insert(done.idle.end(), applied.idle.begin(), applied.idle.end());
  checkpoint = std::move(applied.checkpoint);
}

Checkpoint cast_floating(const Checkpoint& in, const ConvertOptions& options, Conversion& done) {
  const DType dtype = target_of(options.dtype);
  // Statistics are only kept from becoming narrower.
  const auto narrows = [&](const Entry& entry) { return info(dtype).bits < info(entry.dtype).bits; };
  CastOptions how{.except = {}, .count = done.count};
  if (std::any_of(in.begin(), in.end(), narrows)) how.except = options.not_narrowed;
  Checkpoint out = cast(in, dtype, how);
  for (std::size_t i = 0; i < in.size(); ++i) done.cast += in[i].dtype != out[i].dtype ? 1U : 0U;
  return out;
}

void require_metadata(const std::string& out, std::string_view format) {
  if (format != "safetensors" && format != "record")
    fail(Errc::not_representable, display(out),
         "{} has no place for what quantized tensors need to be told apart; write safetensors or record",
         format);
}

Checkpoint steps(const Checkpoint& in, const ConvertOptions& options, Conversion& done) {
  Checkpoint checkpoint = take_root(dequantize(in), options, done);
  checkpoint.path = in.path;
  checkpoint.format = in.format;
  done.taken = checkpoint;
  if (!options.rules_file.empty()) apply_rules(checkpoint, rules::read(options.rules_file), done);
  apply_rules(checkpoint, options.rules, done);
  if (!options.rename.empty()) {
    Renamed renamed = rename(checkpoint, options.rename);
    done.renamed = renamed.changed.size();
    done.idle.insert(done.idle.end(), renamed.idle.begin(), renamed.idle.end());
    checkpoint = std::move(renamed.checkpoint);
  }
  if (!options.include.empty() || !options.exclude.empty())
    checkpoint = filter(checkpoint, options.include, options.exclude);
  done.dropped = in.size() - std::min(in.size(), checkpoint.size());
  if (checkpoint.empty() && !in.empty())
    fail(Errc::not_found, display(in.path), "none of its {} tensors is left after the steps asked for",
         in.size());
  if (casts(options)) checkpoint = cast_floating(checkpoint, options, done);
  if (options.quantize_int8) {
    Quantized quantized = quantize_int8(checkpoint);
    done.quantized = std::move(quantized.tensors);
    checkpoint = std::move(quantized.checkpoint);
    done.count->rounded = 0;  // what was read so far is read again when it is written
    done.count->overflowed = 0;
  }
  return checkpoint;
}

}  // namespace

Conversion plan_conversion(const std::string& in, const std::string& out, const ConvertOptions& options) {
  const std::string_view format = format_of(out, options.format);
  if (options.quantize_int8) require_metadata(out, format);
  Conversion done;
  done.before = open(in, {.map = true, .inert = options.inert});
  record::require_readable(done.before);
  // A PyTorch file that only becomes another PyTorch file keeps everything: epoch, optimizer and all.
  done.taken = done.before;
  const bool keeps_everything = format.starts_with("torch") && !has_steps(options);
  done.after = keeps_everything ? done.before : steps(done.before, options, done);
  if (format == "record" && casts(options)) {
    done.after = record::without_record_metadata(done.after);
    if (!done.after.metadata) done.after.metadata.emplace();
    (*done.after.metadata)[record::kPrecisionKey] = record::precision_name(target_of(options.dtype));
  }
  return done;
}

Conversion convert(const std::string& in, const std::string& out, const ConvertOptions& options) {
  if (!options.receipt.empty() && !options.overwrite && std::filesystem::exists(options.receipt))
    fail(Errc::already_exists, display(options.receipt), "is there already (overwriting was not asked for)");
  Conversion done = plan_conversion(in, out, options);
  Receipt::Side input;
  if (!options.receipt.empty()) input = receipt_side(done.taken);
  save(done.after, out,
       {.format = options.format, .overwrite = options.overwrite, .progress = options.progress});
  if (!options.receipt.empty())
    save_config(make_receipt(std::move(input), done, out, options), options.receipt,
                {.overwrite = options.overwrite});
  return done;
}

}  // namespace ballast
