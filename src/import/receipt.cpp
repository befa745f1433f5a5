// SPDX-License-Identifier: Apache-2.0
#include "import/receipt.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "ballast/config.h"
#include "ballast/convert.h"
#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/version.h"
#include "checkpoint/steps.h"
#include "formats/encrypted.h"
#include "formats/shards/shards.h"
#include "seal/encrypted_source.h"

namespace ballast {

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void require_receipt(const std::string& path, bool overwrite, const std::vector<std::string>& recipients) {
  struct stat status {};

  if (path.empty()) return;
  if (!recipients.empty() && !can_open(recipients))
    fail(Errc::cannot_decrypt, display(path),
         "a receipt is made by reading the output again: give an identity of one of its recipients "
         "(--identity FILE)");
  if (stat(path.c_str(), &status) != 0) return;
  if (!S_ISREG(status.st_mode))
    fail(Errc::not_regular_file, display(path), "is there and is not a regular file");
  if (!overwrite)
    fail(Errc::already_exists, display(path), "is there already (overwriting was not asked for)");
}

namespace {

// The file that was opened, and those its tensors lie in: the shards behind an index.
std::set<std::string> files_of(const Checkpoint& checkpoint) {
  std::set<std::string> paths;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(checkpoint.path, ignored)) paths.insert(checkpoint.path);
  // Tensors that are computed from their shard, packed ones, do not say where it lies; the index does.
  if (checkpoint.format == formats::sharded && !paths.empty()) {
    const auto shards = shards::locate_all(checkpoint.path, shards::read_index(checkpoint.path));
    paths.insert(shards.begin(), shards.end());
  }
  for (const Entry& entry : checkpoint) {
    const auto span = entry.tensor().storage() ? entry.tensor().storage()->source_span() : std::nullopt;
    if (!span) continue;
    const ByteSource& source = seal::outermost(*span->source);
    if (file_of(source) != nullptr) paths.insert(source.name());
  }
  return paths;
}

}  // namespace

std::vector<Receipt::File> hashed_files(const Checkpoint& checkpoint, const Progress& progress) {
  std::vector<Receipt::File> files;
  for (const std::string& path : files_of(checkpoint))
    files.push_back({base_name(path), File::open(path)->size(), hash_file(path, progress)});
  return files;
}

namespace {

bool same_files(const std::vector<Receipt::File>& a, const std::vector<Receipt::File>& b) {
  const auto sums = [](const std::vector<Receipt::File>& files) {
    std::multiset<std::string> found;
    for (const Receipt::File& file : files) found.insert(file.sha256);
    return found;
  };
  return sums(a) == sums(b);
}

void compare_files(const Receipt::Side& expected, const Receipt::Side& found,
                   std::vector<std::string>& problems) {
  if (expected.files.size() != found.files.size()) {
    problems.push_back(
        fmt::format("{} files, the receipt speaks of {}", found.files.size(), expected.files.size()));
    return;
  }
  std::map<std::string, std::uint64_t> known;
  for (const Receipt::File& file : expected.files) known.emplace(file.sha256, file.bytes);
  for (const Receipt::File& file : found.files) {
    const auto at = known.find(file.sha256);
    if (at == known.end())
      problems.push_back(fmt::format("{}: the file's SHA-256 is {}, which the receipt does not know",
                                     display(file.name), file.sha256));
    else if (at->second != file.bytes)
      problems.push_back(fmt::format("{}: the file has {} bytes, the receipt says {}", display(file.name),
                                     file.bytes, at->second));
  }
}

void compare_tensors(const Receipt::Side& expected, const Receipt::Side& found,
                     std::vector<std::string>& problems) {
  std::map<std::string_view, const TensorHash*> known;
  for (const TensorHash& tensor : expected.tensors) {
    if (!known.emplace(tensor.name, &tensor).second)
      problems.push_back(fmt::format("the receipt has tensor {} twice", ballast::quoted(tensor.name)));
  }
  for (const TensorHash& tensor : found.tensors) {
    const auto at = known.find(tensor.name);
    if (at == known.end())
      problems.push_back(fmt::format("tensor {} is not in the receipt", ballast::quoted(tensor.name)));
    else if (*at->second != tensor)
      problems.push_back(fmt::format(
          "tensor {} is not the receipt's: {} {} with SHA-256 {}, it says {} {} with {}",
          ballast::quoted(tensor.name), tensor.dtype, fmt::format("[{}]", fmt::join(tensor.shape, ", ")),
          tensor.sha256, display(at->second->dtype), fmt::format("[{}]", fmt::join(at->second->shape, ", ")),
          display(at->second->sha256)));
    if (at != known.end()) known.erase(at);
  }
  for (const auto& [name, tensor] : known)
    problems.push_back(fmt::format("tensor {} of the receipt is not there", ballast::quoted(name)));
  if (expected.root != found.root && problems.empty())
    problems.emplace_back("the receipt's root is not that of its own tensors");
}

Receipt::Side tensors_of(const Checkpoint& checkpoint, const Progress& progress) {
  Manifest manifest = hash(checkpoint, progress);
  return {.format = std::string(checkpoint.format.name()),
          .files = {},
          .root = std::move(manifest.root),
          .tensors = std::move(manifest.tensors)};
}

}  // namespace

Receipt::Side receipt_side(const Checkpoint& checkpoint, const Progress& progress) {
  Receipt::Side side = tensors_of(checkpoint, progress);
  side.files = hashed_files(checkpoint, progress);
  return side;
}

namespace {

std::string world_name(Adapter adapter) {
  return adapter == Adapter::automatic ? "" : std::string(name(adapter));
}

}  // namespace

Receipt make_receipt(Receipt::Side input, const Converted& done, const std::string& out,
                     const ConvertOptions& options) {
  Receipt receipt;
  receipt.producer = std::string("ballast ") + kVersionText;
  receipt.input = std::move(input);
  receipt.steps = {.root = options.root.value_or(done.root),
                   .rules = options.rules.empty() ? "" : rules::to_json(options.rules),
                   .rename = {},
                   .strip_prefixes = options.strip_prefixes ? std::optional(true) : std::nullopt,
                   .include = options.include,
                   .exclude = options.exclude,
                   .reindex = options.reindex,
                   .keep_positions = options.keep_positions,
                   .dtype = options.dtype.dtype() ? std::string(info(*options.dtype.dtype()).code) : "",
                   .keep_statistics = {},
                   .keep_dtype = {},
                   .adapter = world_name(options.adapter),
                   .layout = world_name(options.layout),
                   .layers = {},
                   .quantize = options.quantize == Quantize::int8 ? "int8" : "",
                   .rounded = done.count->rounded,
                   .overflowed = done.count->overflowed,
                   .unchecked = options.check ? std::nullopt : std::optional(true),
                   .meta = options.meta.empty() ? std::nullopt : std::optional(options.meta),
                   .pack = {},
                   .recipients = {},
                   .passphrase = {}};
  if (!options.recipients.empty()) receipt.steps.recipients = options.recipients;
  if (!options.passphrase_file.empty()) receipt.steps.passphrase = true;
  if (options.root && options.root->empty()) receipt.steps.whole = true;
  if (options.format) receipt.steps.format = std::string(options.format.name());
  if (options.shard_bytes != 0) receipt.steps.shard_bytes = options.shard_bytes;
  if (options.simplify) receipt.steps.simplify = true;
  if (!options.burn.empty()) receipt.steps.burn = options.burn;
  if (!options.like.empty()) receipt.steps.like = base_name(options.like);
  if (options.pack != Pack::none) receipt.steps.pack = name(options.pack);
  if (!receipt.steps.dtype.empty()) receipt.steps.keep_dtype = options.keep_dtype;
  if (!receipt.steps.dtype.empty()) receipt.steps.keep_statistics = options.keep_statistics;
  for (const RenameRule& rule : options.rename) receipt.steps.rename.push_back({rule.match, rule.to});
  for (const LayerIs& layer : options.layers)
    receipt.steps.layers.push_back(layer.match + "=" + std::string(name(layer.kind)));
  receipt.output = receipt_side(
      open(out, {.io = Io::read, .inert = options.inert, .passphrase_file = options.passphrase_file}),
      options.progress);
  return receipt;
}

Receipt make_receipt(std::string command, Receipt::Side input, Receipt::Steps steps, const std::string& out,
                     const std::string& passphrase_file) {
  return {
      .producer = std::string("ballast ") + kVersionText,
      .command = std::move(command),
      .input = std::move(input),
      .steps = std::move(steps),
      .output = receipt_side(open(out, {.io = Io::read, .inert = true, .passphrase_file = passphrase_file}))};
}

Receipt read_receipt(const std::string& path) {
  const Value value = open_value(path);
  if (value.kind() != Kind::dict || !value.find("schema") || !value.find("output"))
    fail(Errc::invalid_argument, display(path),
         "is not a receipt, which convert, shard, merge and meta write (--receipt)");
  auto receipt = read_config<Receipt>(value, display(path));
  if (receipt.schema != 1)
    fail(Errc::unsupported, display(path), "is a receipt of schema {}, this Ballast reads 1", receipt.schema);
  return receipt;
}

namespace {

// All of them are among `known`.
bool has_files(const std::vector<Receipt::File>& known, const std::vector<Receipt::File>& files) {
  return std::all_of(files.begin(), files.end(), [&](const Receipt::File& file) {
    return std::any_of(known.begin(), known.end(),
                       [&](const Receipt::File& each) { return each.sha256 == file.sha256; });
  });
}

// What a receipt's input side speaks of: the state dict, as the numbers it stands for.
Checkpoint as_input(const Checkpoint& opened, const Receipt& receipt) {
  Checkpoint taken = dequantize(opened);
  if (!receipt.steps.root.empty())
    taken = root(taken, receipt.steps.root);
  else if (receipt.command == "merge" && !receipt.steps.whole.value_or(false))
    taken = find_root(taken).checkpoint;  // each of its inputs has a root of its own
  taken.path = opened.path;
  taken.format = opened.format;
  return taken;
}

// Of what a merge read, that which is in one of its files.
Receipt::Side part_of_merge(const Receipt::Side& all, const Receipt::Side& found) {
  Receipt::Side part{.format = found.format, .files = found.files, .root = found.root, .tensors = {}};
  std::set<std::string_view> names;
  for (const TensorHash& tensor : found.tensors) names.insert(tensor.name);
  for (const TensorHash& tensor : all.tensors)
    if (names.contains(tensor.name)) part.tensors.push_back(tensor);
  return part;
}

}  // namespace

ReceiptCheck check_receipt(const std::string& path, const Receipt& receipt, const Progress& progress) {
  Checkpoint checkpoint = open(path, {.io = Io::read, .inert = true});
  const bool is_merge = receipt.command == "merge";
  ReceiptCheck check;
  std::vector<Receipt::File> files = hashed_files(checkpoint, progress);
  const bool is_read =
      is_merge ? has_files(receipt.input.files, files) : same_files(files, receipt.input.files);
  check.is_input = is_read && !same_files(files, receipt.output.files);
  if (check.is_input) checkpoint = as_input(checkpoint, receipt);
  Receipt::Side found = tensors_of(checkpoint, progress);
  found.files = std::move(files);
  const Receipt::Side& side = check.is_input ? receipt.input : receipt.output;
  const Receipt::Side expected = check.is_input && is_merge ? part_of_merge(side, found) : side;
  compare_files(expected, found, check.problems);
  check.of_files = check.problems.size();
  compare_tensors(expected, found, check.problems);
  return check;
}

ReceiptCheck check_result(const std::string& path, const Receipt& receipt, const Progress& progress) {
  Receipt claim = receipt;
  claim.input = {};  // a conversion that changes nothing writes what it read, whatever it is said to write
  return check_receipt(path, claim, progress);
}

ReceiptCheck check_receipt_tensors(const std::string& path, const Receipt& receipt,
                                   const Progress& progress) {
  const Checkpoint checkpoint = open(path, {.io = Io::read, .inert = true});
  ReceiptCheck check;
  compare_tensors(receipt.output, tensors_of(checkpoint, progress), check.problems);
  if (check.problems.empty()) return check;
  // No name and no byte says which side it is: it is the other one when that fits.
  try {
    const Receipt::Side seen = tensors_of(as_input(checkpoint, receipt), progress);
    std::vector<std::string> problems;
    compare_tensors(receipt.input, seen, problems);
    if (problems.empty()) return {.is_input = true, .problems = {}};
  } catch (const Error& error) {
    if (error.code() != Errc::not_found && error.code() != Errc::invalid_argument) throw;
  }
  return check;
}

}  // namespace ballast
