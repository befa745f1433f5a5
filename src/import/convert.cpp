// SPDX-License-Identifier: Apache-2.0
#include "ballast/convert.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ballast/config.h"
#include "ballast/error.h"
#include "ballast/scan.h"
#include "base/fail.h"
#include "checkpoint/layout.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "import/receipt.h"
#include "import/saving.h"
#include "import/sharing.h"

namespace ballast {
namespace {

bool casts(const ConvertOptions& options) {
  return options.dtype != Precision::keep;
}

bool asks_for_nothing(const ConvertOptions& options) {
  return !options.root && !options.state_dict && options.rename.empty() && options.rules.empty() &&
         !options.strip_prefixes && options.include.empty() && options.exclude.empty() &&
         options.reindex.empty() && !casts(options) && options.adapter == Adapter::automatic &&
         options.layout == Adapter::automatic && options.quantize == Quantize::none;
}

// Files of Burn's are for Burn: they get its layout unless another one is asked for.
Adapter layout_of_output(Format format, const ConvertOptions& options) {
  const Adapter usual = usual_adapter(format);
  return options.layout != Adapter::automatic || usual == Adapter::pytorch ? options.layout : usual;
}

void adapt(Converted& done, Format format, const ConvertOptions& options) {
  const Adapter to = layout_of_output(format, options);
  if (to == Adapter::automatic && options.adapter == Adapter::automatic && options.like.empty()) {
    if (std::string note = layout::find(done.checkpoint).note; !note.empty())
      done.before.notes.push_back(std::move(note));
    return;
  }
  std::optional<Checkpoint> like;
  if (!options.like.empty()) like = open(options.like, {.io = options.io, .expansion = options.expansion});
  Adapted adapted =
      adapt(done.checkpoint,
            {.from = options.adapter, .to = to, .layers = options.layers, .like = like ? &*like : nullptr});
  std::vector<std::string> origins;
  for (const std::string& name : adapted.origins) {
    const auto at = done.checkpoint.position(name);
    origins.push_back(at ? done.origins[*at] : name);
  }
  done.checkpoint = std::move(adapted.checkpoint);
  done.origins = std::move(origins);
  done.unmatched.insert(done.unmatched.end(), adapted.unmatched.begin(), adapted.unmatched.end());
  for (std::string& note : adapted.notes) done.before.notes.push_back(std::move(note));
}

void quantize(Converted& done) {
  Quantized quantized = quantize_int8(done.checkpoint);
  std::vector<std::string> origins;
  for (const Entry& entry : quantized.checkpoint) {
    const auto at = done.checkpoint.position(entry.name);
    origins.push_back(at ? done.origins[*at] : std::string(entry.name));
  }
  done.quantized = std::move(quantized.tensors);
  done.checkpoint = std::move(quantized.checkpoint);
  done.origins = std::move(origins);
  done.count->rounded = 0;  // what was read so far is read again when it is written
  done.count->overflowed = 0;
}

Format target_format(const std::string& out, const ConvertOptions& options) {
  if (options.shard_bytes == 0) return format_for(out, options.format);
  if (options.format && options.format != formats::safetensors)
    fail(Errc::unsupported, display(out), "shards are Safetensors files, not {}",
         quoted(options.format.name()));
  return formats::safetensors;
}

// What stands beside the tensors and is not written, in a sentence; empty when there is nothing.
std::string left_out(const Checkpoint& file, const Converted& done, const std::optional<std::string>& asked) {
  const std::string path = asked.value_or(done.root);
  const std::optional<Value> root = path.empty() ? file.tree : file.tree->find_path(path);
  if (!root || root->kind() != Kind::dict) return {};
  std::set<std::string_view> names;
  for (const Entry& entry : done.taken) names.insert(entry.name);
  std::string list;
  std::size_t count = 0;
  for (std::size_t i = 0; i < root->size(); ++i) {
    if (root->value(i).kind() == Kind::tensor) continue;
    const Value key = root->key(i);
    const std::string label = key.kind() == Kind::string ? std::string(key.as_string()) : key.summary();
    const auto below = names.lower_bound(label + ".");
    if (below != names.end() && below->starts_with(label + ".")) continue;
    if (++count <= 3) list += (count == 1 ? "" : ", ") + quoted(label);
  }
  if (count == 0) return {};
  return fmt::format("{} left out, which no tensor is: {}{}",
                     count == 1 ? "1 value is" : fmt::format("{} values are", count), list,
                     count > 3 ? ", …" : "");
}

}  // namespace

Converted plan_conversion(const std::string& in, const std::string& out, const ConvertOptions& options) {
  const Format format = target_format(out, options);
  if (options.state_dict && options.root)
    fail(Errc::invalid_argument, "state_dict", "root says already which part is taken: {}",
         quoted(*options.root));
  if (options.quantize != Quantize::none && !format->holds_metadata) {
    fail(Errc::not_representable, display(out),
         "{} has no place to say what is quantized; write safetensors or record", format.name());
  }
  const Checkpoint file = open(
      in,
      {.io = options.io, .inert = options.inert, .expansion = options.expansion, .formats = options.formats});
  record::require_readable(file);
  Steps steps = steps_of(options);
  // A PyTorch file that becomes another one, with no step asked for, keeps all that it holds, tensors or not.
  if (format->holds_tree && asks_for_nothing(options)) steps.root = "";
  Converted done{apply_steps(file, steps), file};
  adapt(done, format, options);
  if (options.quantize == Quantize::int8) quantize(done);
  const bool keeps_tree = format->holds_tree && asks_for_nothing(options);
  if (file.tree && !keeps_tree) {
    if (std::string note = left_out(file, done, steps.root); !note.empty())
      done.before.notes.push_back(std::move(note));
  }
  if (options.quantize == Quantize::none && is_quantized(file))
    done.before.notes.emplace_back("quantized tensors become numbers, and their scales are left out");
  if (!options.burn.empty() && usual_adapter(format) != Adapter::burn)
    fail(Errc::invalid_argument, "burn", "{} is no format of Burn's, and has no versions of it",
         format.name());
  const bool has_booleans = std::any_of(done.checkpoint.begin(), done.checkpoint.end(),
                                        [](const Entry& entry) { return entry.dtype == DType::boolean; });
  if (has_booleans && usual_adapter(format) == Adapter::burn && options.burn.empty())
    done.before.notes.emplace_back(
        "booleans are written as Burn 0.21 and later read them (burn: 0.20 for older ones)");
  marks::add_metadata(done.checkpoint, format, options.meta, display(out));
  for (std::string& note : sharing_notes(done, format)) done.before.notes.push_back(std::move(note));
  if (format == formats::record && casts(options)) {
    done.checkpoint = record::without_record_metadata(done.checkpoint);
    if (!done.checkpoint.metadata) done.checkpoint.metadata.emplace();
    (*done.checkpoint.metadata)[record::kPrecisionKey] = record::precision_name(target_dtype(options.dtype));
  }
  return done;
}

namespace {

void require_apart_files(const std::string& in, const std::string& out, const ConvertOptions& options) {
  static_cast<void>(target_format(out, options));  // what is wrong with the format comes first
  std::vector<std::string> outputs;
  if (options.shard_bytes == 0)
    outputs.push_back(out);
  else
    outputs = shards_in_place(out, !options.recipients.empty() || !options.passphrase_file.empty());
  if (!options.receipt.empty()) outputs.push_back(options.receipt);
  std::vector<std::string> inputs = {in};
  if (!options.like.empty()) inputs.push_back(options.like);
  require_apart(inputs, outputs);
}

}  // namespace

Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options) {
  require_apart_files(in, out, options);
  require_receipt(options.receipt, options.overwrite, options.recipients);
  Converted done = plan_conversion(in, out, options);
  if (options.check && done.before.format == formats::onnx) static_cast<void>(check_integrity(in));
  Receipt::Side input;
  if (!options.receipt.empty()) input = receipt_side(done.taken, options.progress);
  SaveOptions how = saving_of(options);
  if (options.shard_bytes == 0) {
    how.format = options.format;
    how.simplify = options.simplify;
    how.burn = options.burn;
    save(done.checkpoint, out, how);
  } else {
    how.shard_bytes = options.shard_bytes;
    done.shards = save_shards(done.checkpoint, out, how);
  }
  if (!options.receipt.empty())
    save_config(
        make_receipt(std::move(input), done, options.shard_bytes == 0 ? out : done.shards.index, options),
        options.receipt, {.overwrite = options.overwrite});
  return done;
}

}  // namespace ballast
