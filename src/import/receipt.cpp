// SPDX-License-Identifier: Apache-2.0
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

namespace ballast {
namespace {

std::string base_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// The file that was opened, and those its tensors lie in: the shards behind an index.
std::set<std::string> files_of(const Checkpoint& checkpoint) {
  std::set<std::string> paths;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(checkpoint.path, ignored)) paths.insert(checkpoint.path);
  for (const Entry& entry : checkpoint) {
    const auto span = entry.tensor().storage() ? entry.tensor().storage()->source_span() : std::nullopt;
    if (span && file_of(*span->source) != nullptr) paths.insert(span->source->name());
  }
  return paths;
}

std::vector<Receipt::File> hashed_files(const Checkpoint& checkpoint) {
  std::vector<Receipt::File> files;
  for (const std::string& path : files_of(checkpoint))
    files.push_back({base_name(path), File::open(path)->size(), hash_file(path)});
  return files;
}

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
  for (const TensorHash& tensor : expected.tensors) known.emplace(tensor.name, &tensor);
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

}  // namespace

Receipt::Side receipt_side(const Checkpoint& checkpoint, const Progress& progress) {
  Manifest manifest = hash(checkpoint, progress);
  return {.format = std::string(checkpoint.format.name()),
          .files = hashed_files(checkpoint),
          .root = std::move(manifest.root),
          .tensors = std::move(manifest.tensors)};
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
                   .pack = {}};
  if (options.pack != Pack::none) receipt.steps.pack = name(options.pack);
  if (!receipt.steps.dtype.empty()) receipt.steps.keep_dtype = options.keep_dtype;
  if (!receipt.steps.dtype.empty()) receipt.steps.keep_statistics = options.keep_statistics;
  for (const RenameRule& rule : options.rename) receipt.steps.rename.push_back({rule.match, rule.to});
  for (const LayerIs& layer : options.layers)
    receipt.steps.layers.push_back(layer.match + "=" + std::string(name(layer.kind)));
  receipt.output = receipt_side(
      open(out, {.io = Io::read, .inert = options.inert, .passphrase_file = options.passphrase_file}));
  return receipt;
}

Receipt read_receipt(const std::string& path) {
  auto receipt = read_config<Receipt>(open_value(path), display(path));
  if (receipt.schema != 1)
    fail(Errc::unsupported, display(path), "is a receipt of schema {}, this Ballast reads 1", receipt.schema);
  return receipt;
}

ReceiptCheck check_receipt(const std::string& path, const Receipt& receipt, const Progress& progress) {
  Checkpoint checkpoint = open(path, {.io = Io::read, .inert = true});
  ReceiptCheck check;
  const std::vector<Receipt::File> files = hashed_files(checkpoint);
  check.is_input = same_files(files, receipt.input.files) && !same_files(files, receipt.output.files);
  if (check.is_input) {
    const Format format = checkpoint.format;
    checkpoint = dequantize(checkpoint);
    if (!receipt.steps.root.empty()) checkpoint = root(checkpoint, receipt.steps.root);
    checkpoint.path = path;
    checkpoint.format = format;
  }
  const Receipt::Side& expected = check.is_input ? receipt.input : receipt.output;
  const Receipt::Side found = receipt_side(checkpoint, progress);
  compare_files(expected, found, check.problems);
  compare_tensors(expected, found, check.problems);
  return check;
}

}  // namespace ballast
