// SPDX-License-Identifier: Apache-2.0
// write_cases FOLDER [NAME]: exports every case at every opset (which runs ONNX's checker and strict shape
// inference), and writes the files and cases.json that scripts/check-onnx runs: opsets 11, 13 and 17, every
// case at all its sizes; models with every option too. An operation of the table that no case has is a
// failure.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "onnx/case.h"
#include "ops/operations.h"

namespace {

using namespace onnx_cases;
namespace fs = std::filesystem;

ballast::Checkpoint named(const std::vector<std::string>& names, const Tensors& tensors) {
  ballast::Checkpoint checkpoint;
  for (std::size_t i = 0; i < tensors.size(); ++i) checkpoint.add(names.at(i), tensors[i].contiguous());
  return checkpoint;
}

// Thousands of small files that need not survive a power cut.
void write_tensors(const ballast::Checkpoint& tensors, const std::string& path) {
  const std::vector<std::byte> bytes = ballast::safetensors::serialize(tensors);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void write_run(const Case& one, const Sizes& sizes, const fs::path& base,
               const std::vector<std::string>& outputs) {
  Tensors inputs;
  std::vector<std::string> names;
  for (const CaseInput& input : one.inputs) {
    ballast::Shape shape;
    for (const auto& dim : input.spec.shape)
      shape.push_back(dim.name.empty() ? dim.size : sizes.at(dim.name));
    inputs.push_back(filled(input.spec, shape, input.low, input.high, inputs.size() + 7));
    names.push_back(input.spec.name);
  }
  write_tensors(named(names, inputs), base.string() + ".in");
  write_tensors(named(outputs, one.forward(inputs)), base.string() + ".out");
}

class Writer {
 public:
  explicit Writer(fs::path folder) : folder_(std::move(folder)), json_(folder_ / "cases.json") {}

  ~Writer() { json_ << (first_ ? "[]" : "]") << '\n'; }

  void write(const Case& one) {
    std::vector<std::string> outputs;
    const ballast::Graph graph = one.trace();
    for (const ballast::GraphNode& node : graph.nodes) seen_.insert(node.operation);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back("result_" + std::to_string(i));
    for (std::size_t run = 0; run < one.sizes.size(); ++run)
      write_run(one, one.sizes[run], folder_ / (one.name + "." + std::to_string(run)), outputs);
    for (int opset = ballast::onnx::kOldestOpset; opset <= ballast::onnx::kDefaultOpset; ++opset) {
      const bool run_at = std::find(one.opsets.begin(), one.opsets.end(), opset) != one.opsets.end();
      if (!run_at && !one.all_opsets) continue;
      const std::string model = one.name + "." + std::to_string(opset) + ".onnx";
      one.save(graph, (folder_ / model).string(),
               {.inputs = specs_of(one), .outputs = outputs, .opset = opset, .overwrite = true});
      if (run_at)
        list(one, "opset " + std::to_string(opset), model, one.tolerance);
      else
        fs::remove(folder_ / model);  // the checker has seen it
    }
    if (one.weights && one.all_opsets) write_variants(one, graph, outputs);
  }

  /// Operations that no case has. Those that make other numbers at every call are not exported, and a copy is
  /// its original in a graph.
  [[nodiscard]] std::vector<std::string> unseen() const {
    std::vector<std::string> names;
    for (const ballast::Operation* row : ballast::operations::table()) {
      const bool exported =
          row->kind != ballast::Operation::Kind::random && row != &ballast::operations::clone;
      if (exported && !seen_.contains(row)) names.emplace_back(row->name);
    }
    return names;
  }

 private:
  void write_variants(const Case& one, const ballast::Graph& graph, const std::vector<std::string>& outputs) {
    const std::string weights = (folder_ / (one.name + ".safetensors")).string();
    ballast::safetensors::save(one.weights(), weights, {.overwrite = true});
    const auto write_as = [&](const std::string& what, double tolerance, const auto& change) {
      ballast::onnx::Options options{.inputs = specs_of(one), .outputs = outputs, .overwrite = true};
      change(options);
      const std::string model = one.name + "." + what + ".onnx";
      one.save(graph, (folder_ / model).string(), options);
      list(one, what, model, tolerance);
    };
    using Options = ballast::onnx::Options;
    write_as("external", one.tolerance,
             [](Options& o) { o.external_data = ballast::onnx::External::always; });
    write_as("pointing", one.tolerance, [&](Options& o) { o.weights = weights; });
    write_as("folded", one.tolerance, [](Options& o) { o.fold_batch_norm = true; });
    write_as("unfolded", one.tolerance, [](Options& o) { o.fold_constants = false; });
    write_as("half", 5e-3, [](Options& o) { o.dtype = ballast::Precision::half; });
  }

  void list(const Case& one, const std::string& what, const std::string& model, double tolerance) {
    for (std::size_t run = 0; run < one.sizes.size(); ++run) {
      const std::string base = one.name + "." + std::to_string(run);
      json_ << (first_ ? "[" : ",\n") << R"({"name": ")" << base << " " << what << R"(", "model": ")" << model
            << R"(", "inputs": ")" << base << R"(.in", "expected": ")" << base << R"(.out", "tolerance": )"
            << tolerance << "}";
      first_ = false;
    }
  }

  fs::path folder_;
  std::ofstream json_;
  bool first_ = true;
  std::set<const ballast::Operation*> seen_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: write_cases FOLDER [NAME]\n";
    return 2;
  }
  const fs::path folder = argv[1];
  fs::create_directories(folder);
  std::vector<Case> cases;
  add_operation_cases(cases);
  add_model_cases(cases);
  add_size_cases(cases);
  Writer writer(folder);
  int failures = 0;
  std::size_t written = 0;
  for (const Case& one : cases) {
    if (argc > 2 && one.name.find(argv[2]) == std::string::npos) continue;
    try {
      writer.write(one);
      ++written;
    } catch (const std::exception& error) {
      std::cerr << one.name << ": " << error.what() << '\n';
      ++failures;
    }
  }
  for (const std::string& name : argc > 2 ? std::vector<std::string>() : writer.unseen()) {
    std::cerr << name << ": no case has it\n";
    ++failures;
  }
  std::cout << written << " cases written, " << failures << " failed\n";
  return failures == 0 ? 0 : 1;
}
