// SPDX-License-Identifier: Apache-2.0
#include "ballast/convert.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ballast/config.h"
#include "ballast/display.h"
#include "ballast/receipt.h"
#include "ballast/root.h"
#include "ballast/scan.h"
#include "base/fail.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "import/sharing.h"

namespace ballast {
namespace {

bool casts(const ConvertOptions& options) {
  const auto* precision = std::get_if<Precision>(&options.dtype);
  return precision == nullptr || *precision != Precision::keep;
}

bool asks_for_nothing(const ConvertOptions& options) {
  return !options.root && options.rename.empty() && options.rules.empty() && options.rules_file.empty() &&
         options.reindex.empty() && options.include.empty() && options.exclude.empty() && !casts(options) &&
         options.quantize == Quantize::none;
}

DType target_of(const TargetDType& target) {
  if (const auto* precision = std::get_if<Precision>(&target)) return dtype_of_precision(*precision);
  return std::get<DType>(target);
}

// A batch norm: the mean and the variance stand beside each other and have one shape [n]. The name alone
// could be anything's.
bool is_batch_norm(const Checkpoint& checkpoint, const std::string& layer) {
  const auto mean = checkpoint.position(layer + "running_mean");
  const auto variance = checkpoint.position(layer + "running_var");
  if (!mean || !variance) return false;
  const Entry a = checkpoint[*mean];
  const Entry b = checkpoint[*variance];
  return a.dtype == b.dtype && a.shape.size() == 1 && std::ranges::equal(a.shape, b.shape);
}

// Which tensors 16 bits and fewer leave as they are: those whose names match, and whole batch norms, as
// load() does.
std::vector<bool> kept_wide(const Checkpoint& in, const ConvertOptions& options) {
  const KeyFilter matching(options.keep_dtype, {});
  std::vector<bool> kept;
  for (const Entry& entry : in) {
    bool keep = !options.keep_dtype.empty() && matching.passes(entry.name);
    const std::size_t dot = entry.name.rfind('.');
    const std::string layer(dot == entry.name.npos ? "" : entry.name.substr(0, dot + 1));
    const std::string_view field = entry.name.substr(layer.size());
    const bool is_field = field == "weight" || field == "bias" || field == "gamma" || field == "beta" ||
                          field == "running_mean" || field == "running_var";
    if (!keep && options.keep_statistics && is_field && is_batch_norm(in, layer))
      keep = std::ranges::equal(entry.shape, in[*in.position(layer + "running_mean")].shape);
    kept.push_back(keep);
  }
  return kept;
}

class Steps {
 public:
  explicit Steps(const Checkpoint& in) {
    now_.before = in;
    now_.checkpoint = dequantize(in);
  }

  Converted run(const ConvertOptions& options) {
    take_root(options.root);
    change(options);
    if (!options.reindex.empty())
      now_.checkpoint = ballast::reindex(now_.checkpoint, options.reindex).checkpoint;
    const std::string first = now_.checkpoint.empty() ? "" : quoted(now_.checkpoint[0].name);
    choose(options.include, options.exclude);
    if (now_.checkpoint.empty() && !now_.before.empty()) {
      fail(Errc::not_found, display(now_.before.path),
           "none of its {} tensors is left after the steps asked for{}", now_.before.size(),
           first.empty() ? "" : "; before include and exclude the first was " + first);
    }
    if (casts(options)) cast(options);
    if (options.quantize == Quantize::int8) quantize();
    return std::move(now_);
  }

 private:
  void take_root(const std::optional<std::string>& path) {
    if (path) {
      if (!path->empty()) now_.checkpoint = ballast::root(now_.checkpoint, *path);
    } else {
      FoundRoot found = find_root(now_.checkpoint);
      now_.checkpoint = std::move(found.checkpoint);
      now_.root = std::move(found.path);
    }
    now_.taken = now_.checkpoint;
    now_.taken.path = now_.before.path;
    now_.taken.format = now_.before.format;
    for (const Entry& entry : now_.checkpoint) now_.origins.emplace_back(entry.name);
  }

  void change(const ConvertOptions& options) {
    std::vector<rules::Rule> all = rules::from_renames(options.rename);
    all.insert(all.end(), options.rules.begin(), options.rules.end());
    if (!options.rules_file.empty()) {
      const std::vector<rules::Rule> read = rules::read(options.rules_file);
      all.insert(all.end(), read.begin(), read.end());
    }
    if (all.empty()) return;
    rules::Applied applied = rules::apply(now_.checkpoint, all, now_.count);
    now_.checkpoint = std::move(applied.checkpoint);
    now_.origins = std::move(applied.origins);
    now_.unmatched = std::move(applied.unmatched);
  }

  void choose(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
    if (include.empty() && exclude.empty()) return;
    Checkpoint kept = filter(now_.checkpoint, include, exclude);
    std::vector<std::string> origins;
    for (const Entry& entry : kept)
      origins.push_back(std::move(now_.origins[*now_.checkpoint.position(entry.name)]));
    now_.checkpoint = std::move(kept);
    now_.origins = std::move(origins);
  }

  void cast(const ConvertOptions& options) {
    const DType dtype = target_of(options.dtype);
    const Checkpoint before = std::move(now_.checkpoint);
    const std::vector<bool> kept = kept_wide(before, options);
    now_.checkpoint = cast_where(
        before, dtype,
        [&](std::size_t i) {
          return !kept[i] || info(dtype).bits > 16 || info(dtype).bits >= info(before[i].dtype).bits;
        },
        now_.count);
    for (std::size_t i = 0; i < before.size(); ++i)
      now_.cast += before[i].dtype != now_.checkpoint[i].dtype ? 1U : 0U;
  }

  void quantize() {
    Quantized quantized = quantize_int8(now_.checkpoint);
    std::vector<std::string> origins;
    for (const Entry& entry : quantized.checkpoint) {
      const auto at = now_.checkpoint.position(entry.name);
      origins.push_back(at ? now_.origins[*at] : std::string(entry.name));
    }
    now_.quantized = std::move(quantized.tensors);
    now_.checkpoint = std::move(quantized.checkpoint);
    now_.origins = std::move(origins);
    now_.count->rounded = 0;  // what was read so far is read again when it is written
    now_.count->overflowed = 0;
  }

  Converted now_;
};

Format target_format(const std::string& out, const ConvertOptions& options) {
  if (options.shard_bytes == 0) return format_for(out, options.format);
  if (options.format && options.format != formats::safetensors)
    fail(Errc::unsupported, display(out), "shards are Safetensors files, not {}",
         quoted(options.format.name()));
  return formats::safetensors;
}

// A side output: what would keep it from being written is said before the work.
void require_writable(const std::string& path, bool overwrite) {
  struct stat status {};

  if (path.empty() || stat(path.c_str(), &status) != 0) return;
  if (!S_ISREG(status.st_mode))
    fail(Errc::not_regular_file, display(path), "is there and is not a regular file");
  if (!overwrite)
    fail(Errc::already_exists, display(path), "is there already (overwriting was not asked for)");
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

Converted apply_steps(const Checkpoint& in, const ConvertOptions& options) {
  return Steps(in).run(options);
}

Converted plan_conversion(const std::string& in, const std::string& out, const ConvertOptions& options) {
  const Format format = target_format(out, options);
  if (options.quantize != Quantize::none && !format->holds_metadata) {
    fail(Errc::not_representable, display(out),
         "{} has no place to say what is quantized; write safetensors or record", format.name());
  }
  const Checkpoint file =
      open(in, {.io = options.io, .inert = options.inert, .expansion = options.expansion});
  record::require_readable(file);
  ConvertOptions steps = options;
  // A PyTorch file that becomes another one, with no step asked for, keeps all that it holds, tensors or not.
  if (format->holds_tree && asks_for_nothing(options)) steps.root = "";
  Converted done = apply_steps(file, steps);
  const bool keeps_tree = format->holds_tree && asks_for_nothing(options);
  if (file.tree && !keeps_tree) {
    if (std::string note = left_out(file, done, steps.root); !note.empty())
      done.before.notes.push_back(std::move(note));
  }
  if (options.quantize == Quantize::none && is_quantized(file))
    done.before.notes.emplace_back("quantized tensors become numbers, and their scales are left out");
  for (std::string& note : sharing_notes(done, format)) done.before.notes.push_back(std::move(note));
  const std::string layout = record::layout_of(done.checkpoint);
  if (!format->holds_layout && layout != format->layout)
    done.before.notes.push_back(fmt::format("{} has no place to say that the tensors have the layout of {}",
                                            format.name(), quoted(layout)));
  if (format == formats::record && casts(options)) {
    done.checkpoint = record::without_record_metadata(done.checkpoint);
    if (!done.checkpoint.metadata) done.checkpoint.metadata.emplace();
    (*done.checkpoint.metadata)[record::kPrecisionKey] = record::precision_name(target_of(options.dtype));
  }
  return done;
}

namespace {

void require_apart_files(const std::string& in, const std::string& out, const ConvertOptions& options) {
  static_cast<void>(target_format(out, options));  // what is wrong with the format comes first
  std::vector<std::string> inputs = {in};
  if (!options.rules_file.empty()) inputs.push_back(options.rules_file);
  std::vector<std::string> outputs;
  if (options.shard_bytes == 0)
    outputs.push_back(out);
  else
    outputs = shards_in_place(out);
  if (!options.receipt.empty()) outputs.push_back(options.receipt);
  require_apart(inputs, outputs);
}

}  // namespace

Converted convert(const std::string& in, const std::string& out, const ConvertOptions& options) {
  require_apart_files(in, out, options);
  require_writable(options.receipt, options.overwrite);
  Converted done = plan_conversion(in, out, options);
  if (options.check && done.before.format == formats::onnx) static_cast<void>(check_integrity(in));
  Receipt::Side input;
  if (!options.receipt.empty()) input = receipt_side(done.taken);
  if (options.shard_bytes == 0) {
    save(done.checkpoint, out,
         {.format = options.format,
          .simplify = options.simplify,
          .check = options.check,
          .overwrite = options.overwrite,
          .progress = options.progress});
  } else {
    done.shards = save_shards(done.checkpoint, out,
                              {.shard_bytes = options.shard_bytes,
                               .check = options.check,
                               .overwrite = options.overwrite,
                               .progress = options.progress});
  }
  if (!options.receipt.empty())
    save_config(
        make_receipt(std::move(input), done, options.shard_bytes == 0 ? out : done.shards.index, options),
        options.receipt, {.overwrite = options.overwrite});
  return done;
}

}  // namespace ballast
