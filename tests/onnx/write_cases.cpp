// SPDX-License-Identifier: Apache-2.0
// write_cases FOLDER [NAME]: exports every case at every opset (which runs ONNX's checker and strict shape
// inference), and writes the files and cases.json that scripts/check-onnx runs: opsets 11, 13 and 17, every
// case at all its sizes.
#include <fstream>
#include <iostream>

#include "onnx/case.h"

namespace {

using namespace onnx_cases;
namespace fs = std::filesystem;

ballast::Checkpoint named(const std::vector<std::string>& names, const Tensors& tensors) {
  ballast::Checkpoint checkpoint;
  for (std::size_t i = 0; i < tensors.size(); ++i) checkpoint.add(names.at(i), tensors[i].contiguous());
  return checkpoint;
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
  ballast::safetensors::save(named(names, inputs), base.string() + ".in", {.overwrite = true});
  ballast::safetensors::save(named(outputs, one.forward(inputs)), base.string() + ".out",
                             {.overwrite = true});
}

void write_case(const Case& one, const fs::path& folder, std::ostream& json, bool& first) {
  std::vector<std::string> outputs;
  const ballast::Graph graph = one.trace();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) outputs.push_back("result_" + std::to_string(i));
  for (std::size_t run = 0; run < one.sizes.size(); ++run)
    write_run(one, one.sizes[run], folder / (one.name + "." + std::to_string(run)), outputs);
  for (int opset = ballast::onnx::kOldestOpset; opset <= ballast::onnx::kDefaultOpset; ++opset) {
    const bool run_at = opset == 11 || opset == 13 || opset == 17;
    if (!run_at && !one.all_opsets) continue;
    const std::string model = one.name + "." + std::to_string(opset) + ".onnx";
    one.save(graph, (folder / model).string(),
             {.inputs = specs_of(one), .outputs = outputs, .opset = opset, .overwrite = true});
    if (!run_at) {
      fs::remove(folder / model);  // the checker has seen it
      continue;
    }
    for (std::size_t run = 0; run < one.sizes.size(); ++run) {
      const std::string base = one.name + "." + std::to_string(run);
      json << (first ? "[" : ",\n") << R"({"name": ")" << base << " opset " << opset << R"(", "model": ")"
           << model << R"(", "inputs": ")" << base << R"(.in", "expected": ")" << base
           << R"(.out", "tolerance": )" << one.tolerance << "}";
      first = false;
    }
  }
}

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
  std::ofstream json(folder / "cases.json");
  bool first = true;
  int failures = 0;
  std::size_t written = 0;
  for (const Case& one : cases) {
    if (argc > 2 && one.name.find(argv[2]) == std::string::npos) continue;
    try {
      write_case(one, folder, json, first);
      ++written;
    } catch (const std::exception& error) {
      std::cerr << one.name << ": " << error.what() << '\n';
      ++failures;
    }
  }
  json << (first ? "[]" : "]") << '\n';
  std::cout << written << " cases written, " << failures << " failed\n";
  return failures == 0 ? 0 : 1;
}
