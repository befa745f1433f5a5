// SPDX-License-Identifier: Apache-2.0
// pickle_probe: what our pickle machine makes of pickles from elsewhere, for scripts that know the right
// answer. stdin: pickles, each behind its length (4 bytes, little-endian). stdout, a line for each:
//
//   ! <error code>                                     refused
//   <verdict> <bytes used> <globals> <calls> <value>   read; globals: all that are named; calls: those that
//   are
//                                                      not clean; name*count,name*count sorted, "-" for none
//
// pickle_probe --roles: the table of roles instead, a line "module name verdict" for each.
//
// Names are escaped (escaped_name), the value is CanonicalText. A persistent id stands for an inert object
// of class "persistent" with the id for its argument.
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "ballast/error.h"
#include "base/bytes.h"
#include "formats/torch/objects.h"
#include "formats/torch/pickle.h"
#include "formats/torch/roles.h"
#include "oracle/canonical_text.h"

namespace {

using namespace ballast;

using Counts = std::map<std::string, std::uint64_t>;

Counts counts_of(const std::vector<ScanGlobal>& globals) {
  Counts counts;
  for (const ScanGlobal& global : globals) counts[testing::escaped_name(global.name)] += global.count;
  return counts;
}

Counts counts_of_unclean(const std::vector<ScanCall>& calls) {
  Counts counts;
  for (const ScanCall& call : calls) {
    if (call.verdict != Verdict::clean) counts[testing::escaped_name(call.name)] += call.offsets.size();
  }
  return counts;
}

std::string text_of(const Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    if (!text.empty()) text += ',';
    text += name + '*' + std::to_string(count);
  }
  return text.empty() ? "-" : text;
}

// All that knows the machine. `pickle` outlives what is returned here.
std::string probe(const std::string& pickle) {
  ScanReport report;
  const auto tree = std::make_shared<ValueTree>();
  torch::Objects objects(tree, {.inert = true, .report = &report, .input_bytes = pickle.size()});
  objects.load_stream = [](const std::shared_ptr<const Storage>&, const std::string&) { return Ref::none(); };
  torch::Stream stream{
      .where = "pickle", .entry = {}, .base = 0, .persistent = [&](Ref id) {
        return tree->object(tree->type_id("persistent"), tree->sequence(NodeKind::tuple, {&id, 1}));
      }};
  torch::Machine machine(objects, as_bytes(std::string_view(pickle)), std::move(stream));
  const Ref root = machine.run();
  objects.finish();
  return std::string(name(report.verdict())) + ' ' + std::to_string(machine.position()) + ' ' +
         text_of(counts_of(report.globals)) + ' ' + text_of(counts_of_unclean(report.calls)) + ' ' +
         testing::CanonicalText::of(ValueTree::value(tree, root));
}

bool next(std::string& pickle) {
  unsigned char size[4];
  if (std::fread(size, 1, sizeof size, stdin) != sizeof size) return false;
  pickle.resize(std::size_t{size[0]} | std::size_t{size[1]} << 8U | std::size_t{size[2]} << 16U |
                std::size_t{size[3]} << 24U);
  return std::fread(pickle.data(), 1, pickle.size(), stdin) == pickle.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--roles") {
    for (const torch::KnownGlobal& known : torch::known_globals())
      std::cout << known.module << ' ' << known.name << ' ' << name(known.verdict) << '\n';
    return 0;
  }
  std::string pickle;
  while (next(pickle)) {
    std::string line;
    try {
      line = probe(pickle);
    } catch (const Error& error) {
      line = "! " + std::string(name(error.code()));
    }
    std::cout << line << std::endl;  // at once: whoever kills us knows at which pickle
  }
  return 0;
}
