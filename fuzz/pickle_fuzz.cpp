// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pickle. Beyond not crashing, on a small stack and within the budget: what is read can be
// walked and printed and is not deeper than it may be; reading it inertly refuses no more than reading it
// strictly; what is refused as able to run code is a danger to a scan, and what a scan calls clean is read
// and names nothing but what the table of roles calls clean. Persistent ids give storages, so that every
// tensor rebuild is reachable.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <unordered_map>

#include "ballast/error.h"
#include "checkpoint/flatten.h"
#include "formats/torch/reader.h"
#include "pickle_mutator.h"
#include "watched.h"

namespace {

using namespace ballast;
using namespace ballast::torch;
using fuzzing::complain;

// Storages of any size the pickle asks for, up to a few bytes.
Ref storage_of(Objects& objects, Ref id) {
  const StorageId storage = parse_storage_id(objects, id);
  if (storage.bytes > 4096) objects.refuse(Errc::truncated, "a storage of {} bytes", storage.bytes);
  objects.budget().take(storage.bytes + 256);
  const StorageInfo info{.dtype = storage.dtype,
                         .location = storage.location,
                         .numel = storage.numel,
                         .offset = 0,
                         .index = static_cast<std::uint32_t>(objects.tree().storages.size()),
                         .big_endian = storage.key == "big"};
  objects.tree().storages.push_back(Storage::heap(storage.bytes, true));
  return objects.views().storage(info, storage.type);
}

void look_at(const Value& root) {
  ValueWalk walk(root, {.steps = 2000, .depth = 100});
  std::size_t text = 0;
  while (const auto step = walk.next()) {
    text += step->label.size() + step->value.summary().size();
    if (step->value.kind() != Kind::tensor) continue;
    const Tensor tensor = step->value.as_tensor();
    if (!tensor.has_data() || tensor.size_bytes() > 65536) continue;
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
    try {
      tensor.read(0, bytes);
    } catch (const Error&) {
      text += 1;  // sparse parts that do not fit
    }
  }
  if (text == SIZE_MAX) complain("so much text");
}

std::vector<Value> children_of(const Value& value) {
  std::vector<Value> children;
  if (value.kind() == Kind::object) {
    children = {value.args(), value.kwargs(), value.state(), value.items(), value.pairs()};
  } else {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value.kind() == Kind::dict) children.push_back(value.key(i));
      children.push_back(value.kind() == Kind::dict ? value.value(i) : value.element(i));
    }
  }
  children.push_back(value.attributes());
  return children;
}

// The longest way down, with what is shared counted wherever it is; nullopt when something holds itself, so
// that there is none, or when there is too much to look at.
std::optional<std::size_t> depth_of(const Value& root) {
  struct Level {
    std::uint64_t identity;
    std::vector<Value> children;
    std::size_t next = 0;
    std::size_t below = 0;
  };

  std::unordered_map<std::uint64_t, std::optional<std::size_t>> depths;
  std::vector<Level> levels;
  std::size_t seen = 0;
  const auto enter = [&](const Value& value) { levels.push_back({value.identity(), children_of(value)}); };
  enter(root);
  for (;;) {
    Level& top = levels.back();
    if (top.next == 0) {
      depths.try_emplace(top.identity);
      if ((seen += top.children.size() + 1) > 100'000) return std::nullopt;
    }
    if (top.next < top.children.size()) {
      const Value child = top.children[top.next++];
      const bool is_leaf = child.size() == 0 && child.kind() != Kind::object && child.attributes().is_none();
      if (is_leaf) continue;
      const auto known = depths.find(child.identity());
      if (known == depths.end())
        enter(child);
      else if (!known->second)
        return std::nullopt;
      else
        top.below = std::max(top.below, *known->second);
      continue;
    }
    const std::size_t depth = top.below + 1;
    depths[top.identity] = depth;
    levels.pop_back();
    if (levels.empty()) return depth;
    levels.back().below = std::max(levels.back().below, depth);
  }
}

std::optional<Errc> run(std::span<const std::byte> code, bool inert, ScanReport* report) {
  const fuzzing::Limits limits(code.size());
  const auto copy = Storage::heap(code.size());
  if (!code.empty()) std::memcpy(copy->mutable_data(), code.data(), code.size());
  Objects objects(std::make_shared<ValueTree>(),
                  {.inert = inert, .report = report, .input_bytes = code.size()});
  int depth = 0;
  const auto persistent = [&](Ref id) { return storage_of(objects, id); };
  objects.load_stream = [&](const std::shared_ptr<const Storage>& bytes, const std::string& where) {
    if (++depth > 4) fail(Errc::too_deep, where, "streams inside streams");
    const Ref root =
        run_whole_pickle(objects, bytes, {.where = where, .entry = {}, .base = 0, .persistent = persistent});
    --depth;
    return root;
  };
  try {
    const Ref root =
        run_whole_pickle(objects, copy, {.where = "fuzz", .entry = {}, .base = 0, .persistent = persistent});
    objects.finish();
    const Value value = ValueTree::value(objects.shared_tree(), root);
    look_at(value);
    if (const auto deep = depth_of(value); deep && *deep > kMaxDepth) complain("deeper than allowed");
    Checkpoint checkpoint;
    checkpoint.tree = value;
    flatten(value, checkpoint,
            [&](std::uint64_t memory, std::uint64_t /*data*/) { objects.budget().take(memory); });
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

bool is_clean_name(const std::string& name) {
  static const auto* const kNames = [] {
    auto* names = new std::set<std::string>;
    for (const KnownGlobal& known : known_globals()) {
      if (known.verdict == Verdict::clean) names->insert(known.shown);
    }
    return names;
  }();
  return kNames->contains(name);
}

void check_verdict(const ScanReport& report) {
  for (const ScanGlobal& global : report.globals) {
    if (!is_clean_name(global.name)) complain("clean, and it names " + global.name);
  }
  for (const ScanCall& call : report.calls) {
    if (!is_clean_name(call.name)) complain("clean, and it calls " + call.name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> code(reinterpret_cast<const std::byte*>(data), size);
  ScanReport report;
  const auto refused = run(code, false, nullptr);
  const auto refused_inert = run(code, true, &report);
  if (!refused && refused_inert) complain("refused only when it is read inertly");
  if (refused == Errc::forbidden_global && report.verdict() != Verdict::danger)
    complain("able to run code, and no danger to a scan");
  if (!refused_inert && report.verdict() == Verdict::clean) {
    if (refused) complain("clean, and refused when it is read strictly");
    check_verdict(report);
  }
  static_cast<void>(pickle_length(code));
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  fuzzing::PickleMutator mutator(seed, max_size);
  return fuzzing::put(mutator.mutate(fuzzing::as_view(data, size)), data, max_size);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size,
                                                 const std::uint8_t* b, std::size_t b_size, std::uint8_t* out,
                                                 std::size_t max_size, unsigned seed) {
  fuzzing::PickleMutator mutator(seed, max_size);
  return fuzzing::put(mutator.cross(fuzzing::as_view(a, a_size), fuzzing::as_view(b, b_size)), out, max_size);
}
