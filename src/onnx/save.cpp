// SPDX-License-Identifier: Apache-2.0
// From a traced model to a file under its name: weights, nodes, checks, bytes.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "ballast/error.h"
#include "ballast/onnx.h"
#include "ballast/safetensors.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/file.h"
#include "formats/one_reading.h"
#include "formats/onnx/external.h"
#include "formats/safetensors/data_copy.h"
#include "onnx/file.h"
#include "onnx/lowering.h"
#include "tensor/blocks.h"

namespace ballast::onnx {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kInlineBytes = 1024;          // smaller initializers stay in the model file
constexpr std::uint64_t kMostInline = 2'000'000'000;  // protobuf ends at 2^31
constexpr std::uint64_t kPage = 4096;                 // so that runtimes can map the data

void check_names(const Options& options, std::span<const std::string> parameters) {
  std::set<std::string> seen(parameters.begin(), parameters.end());
  const auto take = [&](const std::string& name, const char* what) {
    if (name.empty()) fail(Errc::bad_name, "onnx", "an {} has no name", what);
    if (!seen.insert(name).second)
      fail(Errc::duplicate_key, "onnx", "{} {} has the name of another input, output or parameter", what,
           ballast::quoted(name));
  };
  for (const InputSpec& input : options.inputs) take(input.name, "input");
  for (const std::string& output : options.outputs) take(output, "output");
}

Options completed(const Options& given, const Graph& graph) {
  Options options = given;
  if (options.outputs.empty()) {
    for (std::size_t i = 0; i < graph.outputs.size(); ++i)
      options.outputs.push_back(graph.outputs.size() == 1 ? "output" : "output_" + std::to_string(i));
  }
  if (options.outputs.size() != graph.outputs.size())
    fail(Errc::invalid_argument, "onnx", "{} names for the {} results of forward()", options.outputs.size(),
         graph.outputs.size());
  for (const InputSpec& input : options.inputs)
    if (!onnx_dtype(input.dtype))
      fail(Errc::bad_dtype, "onnx", "input {}: ONNX has no {}", ballast::quoted(input.name),
           info(input.dtype).code);
  return options;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  std::vector<std::byte> theirs(kBlockBytes);
  bool same = true;
  for_each_block(a, [&](std::uint64_t at, std::span<const std::byte> ours) {
    if (!same) return;
    b.read(at, std::span(theirs).first(ours.size()));
    same = std::memcmp(ours.data(), theirs.data(), ours.size()) == 0;
  });
  return same;
}

// Where `file` lies, seen from the folder of `path`; it may not lie above it.
std::string location_of(const std::string& file, const std::string& path) {
  const fs::path folder = fs::absolute(path).parent_path();
  const fs::path relative = fs::weakly_canonical(file).lexically_relative(fs::weakly_canonical(folder));
  if (relative.empty() || *relative.begin() == "..")
    fail(Errc::path_escape, path, "the weights {} do not lie in the model's folder or below",
         ballast::quoted(file));
  return relative.generic_string();
}

// Initializers whose bytes the file holds are left there.
void point_into(FileModel& model, const std::string& file, const std::string& path) {
  const std::string location = location_of(file, path);
  const Checkpoint weights = safetensors::open(file);
  const std::string sha1 = ballast::sha1_of(*File::open(file));  // an edited file is noticed
  std::size_t found = 0;
  for (Initializer& one : model.initializers) {
    if (!one.is_weight || !weights.contains(one.name)) continue;
    const Tensor& held = weights.at(one.name).tensor();
    if (held.dtype() != one.tensor.dtype() || !(held.shape() == one.tensor.shape()))
      fail(Errc::shape_mismatch, file, "{} is {} {} there and {} {} in the model", ballast::quoted(one.name),
           info(held.dtype()).code, to_string(held.shape()), info(one.tensor.dtype()).code,
           to_string(one.tensor.shape()));
    if (!same_bytes(held, one.tensor))
      fail(Errc::index_mismatch, file, "{} has other values there than in the model",
           ballast::quoted(one.name));
    const auto span = held.storage()->source_span();
    if (!span) fail(Errc::unsupported, file, "{} does not lie in one piece there", ballast::quoted(one.name));
    one.external = {location, span->offset + held.bit_offset() / 8, sha1};
    ++found;
  }
  if (found == 0) fail(Errc::not_found, file, "holds none of the model's weights by their names");
}

std::uint64_t place_outside(FileModel& model, const std::string& location) {
  std::uint64_t end = 0;
  for (Initializer& one : model.initializers) {
    if (one.external || one.tensor.size_bytes() < kInlineBytes) continue;
    const std::uint64_t offset = (end + kPage - 1) / kPage * kPage;
    one.external = {location, offset, {}};
    end = offset + one.tensor.size_bytes();
  }
  return end;
}

std::map<std::string, std::string> metadata_of(const Options& options) {
  std::map<std::string, std::string> metadata = options.metadata;
  if (!options.source.empty()) {
    metadata.emplace("source", fs::path(options.source).filename().string());
    metadata.emplace("source_sha256", sha256_of(*File::open(options.source)));
  }
  return metadata;
}

std::uint64_t inline_bytes(const FileModel& model) {
  std::uint64_t total = 0;
  for (const Initializer& one : model.initializers)
    if (!one.external) total += one.tensor.size_bytes();
  return total;
}

}  // namespace

void detail::check(const std::string& path, const Options& options) {
  if (options.opset < kOldestOpset || options.opset > newest_opset())
    fail(Errc::unsupported, "onnx", "opset {} is not one of {} to {}", options.opset, kOldestOpset,
         newest_opset());
  if (options.dtype != Precision::keep && options.dtype != Precision::half)
    fail(Errc::unsupported, "onnx", "weights are stored as they are or as F16 (Precision::half)");
  if (options.inputs.empty()) fail(Errc::invalid_argument, "onnx", "no inputs: name them and their shapes");
  check_names(options, {});
  const AtomicFile can_be_written(path, options.overwrite);  // before minutes of work
}

SaveReport detail::save(const Slots& slots, const Graph& graph, const std::string& path,
                        const Options& given) {
  check(path, given);
  const Options options = completed(given, graph);
  Weights weights;
  const ModelCast cast{.dtype = options.dtype};
  weights.tensors = save_and_tell(slots, Adapter::pytorch, cast, weights.saved_as);
  std::vector<std::string> names;
  for (const auto& entry : weights.tensors) names.emplace_back(entry.name);
  check_names(options, names);

  FileModel model = Lowering(graph, weights, options).run();
  model.name = fs::path(path).stem().string();
  model.doc = options.doc;
  model.metadata = metadata_of(options);
  if (!options.weights.empty()) point_into(model, options.weights, path);
  SaveReport report{.nodes = model.nodes.size(), .initializers = model.initializers.size()};
  const std::string data_name = fs::path(path).filename().string() + ".data";
  const bool outside = options.external_data == External::always || inline_bytes(model) > kMostInline;
  if (outside) report.external_bytes = place_outside(model, data_name);
  onnx::check(model, path);

  AtomicFile file(path, options.overwrite);
  std::optional<AtomicFile> data;
  if (report.external_bytes > 0) {
    report.external_file = data_name;
    data.emplace((fs::path(path).parent_path() / data_name).string(), options.overwrite);
    data->reserve(report.external_bytes);
    for (const Initializer& one : model.initializers)
      if (one.external && one.external->location == data_name)
        safetensors::copy_tensor(one.tensor, *data, one.external->offset);
    require_one_reading(*data, Meant::none);
    data->seal();
  }
  const std::string bytes = serialize(model, path);
  file.append(bytes);
  require_one_reading(file, Meant::none);
  file.seal();
  if (data) data->commit();
  file.commit();
  report.bytes = bytes.size();
  return report;
}

}  // namespace ballast::onnx
