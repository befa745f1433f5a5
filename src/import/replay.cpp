// SPDX-License-Identifier: Apache-2.0
// What a receipt says, done again.
#include <algorithm>

#include "ballast/convert.h"
#include "ballast/error.h"
#include "ballast/safetensors.h"
#include "base/fail.h"
#include "base/scratch_folder.h"
#include "import/receipt.h"

namespace ballast {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";

// A receipt is a file of somebody's: what it spells wrong is refused as every option is.
ConvertOptions convert_options_of(const Receipt& receipt, const ReplayOptions& how) {
  const Receipt::Steps& steps = receipt.steps;
  ConvertOptions options;
  options.inert = how.inert;
  options.check = !steps.unchecked.value_or(false);
  if (!steps.root.empty() || steps.whole.value_or(false)) options.root = steps.root;
  for (const Receipt::Rename& rename : steps.rename) options.rename.push_back({rename.pattern, rename.to});
  if (!steps.rules.empty()) options.rules = rules::parse(steps.rules, "the receipt's rules");
  options.strip_prefixes = steps.strip_prefixes.value_or(false);
  options.include = steps.include;
  options.exclude = steps.exclude;
  options.reindex = steps.reindex;
  options.keep_positions = steps.keep_positions;
  if (!steps.dtype.empty()) {
    const auto dtype = dtype_from_code(steps.dtype);
    if (!dtype) fail(Errc::bad_dtype, "the receipt", "{}: no such dtype", quoted(steps.dtype));
    options.dtype = *dtype;
  }
  options.keep_dtype = steps.keep_dtype;
  options.keep_statistics = steps.keep_statistics.value_or(true);
  if (!steps.adapter.empty()) options.adapter = adapter_named(steps.adapter);
  if (!steps.layout.empty()) options.layout = adapter_named(steps.layout);
  for (const std::string& layer : steps.layers) {
    const std::size_t equals = layer.rfind('=');
    if (equals == std::string::npos)
      fail(Errc::invalid_argument, "the receipt", "{} is not PATTERN=KIND", quoted(layer));
    options.layers.push_back({layer.substr(0, equals), layer_kind_named(layer.substr(equals + 1))});
  }
  if (!steps.quantize.empty() && steps.quantize != "int8")
    fail(Errc::unsupported, "the receipt", "quantizes by {}", quoted(steps.quantize));
  if (steps.quantize == "int8") options.quantize = Quantize::int8;
  if (steps.meta) options.meta = *steps.meta;
  if (steps.pack) options.pack = pack_named(*steps.pack);
  if (steps.format) options.format = format_named(*steps.format);
  options.shard_bytes = steps.shard_bytes.value_or(0);
  options.simplify = steps.simplify.value_or(false);
  options.burn = steps.burn.value_or("");
  if (steps.like && how.like.empty())
    fail(Errc::invalid_argument, "the receipt", "the conversion looked at {}: name that file",
         quoted(*steps.like));
  options.like = how.like;
  options.overwrite = how.overwrite;
  options.progress = how.progress;
  return options;
}

std::string replay_shard(const Receipt& receipt, const std::string& in, const std::string& out,
                         const ReplayOptions& how) {
  const Receipt::Steps& steps = receipt.steps;
  require_apart({in}, shards_in_place(out));
  Checkpoint checkpoint = open(in, {.inert = how.inert});
  if (!steps.root.empty()) checkpoint = root(checkpoint, steps.root);
  return save_shards(checkpoint, out,
                     {.meta = steps.meta.value_or(Metadata()),
                      .shard_bytes = steps.shard_bytes.value_or(0),
                      .check = !steps.unchecked.value_or(false),
                      .pack = steps.pack ? pack_named(*steps.pack) : Pack::none,
                      .overwrite = how.overwrite,
                      .progress = how.progress})
      .index;
}

std::string replay_merge(const Receipt& receipt, const std::vector<std::string>& in, const std::string& out,
                         const ReplayOptions& how) {
  const Receipt::Steps& steps = receipt.steps;
  MergeOptions options;
  options.inert = how.inert;
  options.check = !steps.unchecked.value_or(false);
  if (!steps.root.empty() || steps.whole.value_or(false)) options.root = steps.root;
  if (steps.format) options.format = format_named(*steps.format);
  if (steps.pack) options.pack = pack_named(*steps.pack);
  options.overwrite = how.overwrite;
  options.progress = how.progress;
  static_cast<void>(merge_files(in, out, options));
  return out;
}

// Whoever made the receipt was allowed to change marks, or there are none in it.
std::string replay_meta(const Receipt& receipt, const std::string& in, const std::string& out,
                        const ReplayOptions& how) {
  const EditedMetadata done =
      edit_metadata(in, out,
                    {.set = receipt.steps.meta.value_or(Metadata()),
                     .remove = receipt.steps.removed.value_or(std::vector<std::string>()),
                     .marks = true,
                     .overwrite = how.overwrite,
                     .progress = how.progress});
  return done.file;
}

void require_sources(const std::vector<std::string>& in, const Receipt& receipt) {
  const std::size_t wanted = receipt.steps.inputs ? receipt.steps.inputs->size() : 1;
  if (in.size() != wanted)
    fail(Errc::invalid_argument, "the receipt", "is of {}, and {} given: name them all, in their order",
         wanted == 1 ? "one file" : fmt::format("{} files", wanted),
         in.size() == 1 ? "one is" : fmt::format("{} are", in.size()));
  // Each is read as a whole: a receipt that names one very often would keep everybody busy.
  std::vector<std::string> names = in;
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    fail(Errc::invalid_argument, display(*twice), "is named twice: no file is merged with itself");
  const auto sums = [](const std::vector<Receipt::File>& files) {
    std::vector<std::string> found;
    for (const Receipt::File& file : files) found.push_back(file.sha256);
    return found;
  };
  std::vector<Receipt::File> files;
  for (const std::string& path : in)
    for (Receipt::File& file : hashed_files(open(path, {.io = Io::read, .inert = true})))
      files.push_back(std::move(file));
  std::vector<std::string> found = sums(files);
  std::vector<std::string> expected = sums(receipt.input.files);
  if (wanted == 1) {  // its shards have no order; several inputs have one, which may count
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
  }
  if (found == expected) return;
  const auto differs = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  fail(Errc::invalid_argument, display(in.front()),
       "{} not what the receipt was made of: {} SHA-256 is {}, and the receipt says {}",
       wanted == 1 ? "is" : "and the others are", wanted == 1 ? "its" : "a file's",
       differs.first == found.end() ? "nothing" : *differs.first,
       differs.second == expected.end() ? "nothing" : display(*differs.second));
}

// What else it says of them: a receipt whose two sides have one root claims that nothing was changed.
void require_read_so(const std::vector<std::string>& in, Receipt claim) {
  claim.output = {};
  for (const std::string& path : in) {
    const ReceiptCheck check = check_receipt(path, claim);
    if (!check.problems.empty())
      fail(Errc::invalid_argument, display(path), "is not what the receipt says was read: {}",
           check.problems.front());
  }
}

void require_counted_so(const CastCount& count, const Receipt::Steps& steps) {
  if (count.rounded == steps.rounded && count.overflowed == steps.overflowed) return;
  fail(Errc::invalid_argument, "the receipt",
       "says that the cast rounded {} values and made {} infinite; it rounds {} and makes {} infinite",
       steps.rounded, steps.overflowed, count.rounded.load(), count.overflowed.load());
}

// What the result is called in the folder where it is made again: as the receipt says, whose names are
// somebody's, so that whatever is made of them there is no folder in them, and not one that leads out ("..",
// and "...index.json" as well). Of shards it is the index that gives the name.
std::string name_of_result(const Receipt& receipt) {
  const std::vector<Receipt::File>& files = receipt.output.files;
  std::string name = files.empty() ? "" : files.front().name;
  for (const Receipt::File& file : files)
    if (file.name.ends_with(kIndexEnding)) name = file.name;
  name = base_name(name);
  if (name.ends_with(kIndexEnding)) {
    if (receipt.command == "meta") return {};  // its shards keep their names
    name.resize(name.size() - kIndexEnding.size());
  }
  return name.empty() || name == "." || name == ".." ? "result.safetensors" : name;
}

}  // namespace

std::string replay(const Receipt& receipt, const std::string& in, const std::string& out,
                   const ReplayOptions& options) {
  const std::string command = receipt.command.value_or("convert");
  if (command != "convert" && command != "shard" && command != "merge" && command != "meta")
    fail(Errc::unsupported, "the receipt", "is of {}, which this Ballast cannot do again", quoted(command));
  if (receipt.steps.recipients || receipt.steps.passphrase)
    fail(Errc::unsupported, "the receipt",
         "the output was encrypted, which gives other bytes each time: {} again, then verify --receipt",
         command);
  std::vector<std::string> all = {in};
  all.insert(all.end(), options.others.begin(), options.others.end());
  require_sources(all, receipt);
  require_read_so(all, receipt);
  if (command == "shard") return replay_shard(receipt, in, out, options);
  if (command == "merge") return replay_merge(receipt, all, out, options);
  if (command == "meta") return replay_meta(receipt, in, out, options);
  const Converted done = convert(in, out, convert_options_of(receipt, options));
  require_counted_so(*done.count, receipt.steps);
  return done.shards.index.empty() ? out : done.shards.index;
}

ReceiptCheck check_replay(const Receipt& receipt, const std::string& in, const ReplayOptions& options) {
  const ScratchFolder folder("ballast-replay");
  ReplayOptions kept = options;
  kept.overwrite = false;
  return check_result(replay(receipt, in, folder.path() + name_of_result(receipt), kept), receipt);
}

}  // namespace ballast
