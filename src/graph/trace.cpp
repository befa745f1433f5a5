// SPDX-License-Identifier: Apache-2.0
// A model recorded with many sizes: which ones, what to make of those it refuses, whom to blame.
#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <optional>

#include "ballast/error.h"
#include "ballast/graph.h"
#include "base/fail.h"
#include "graph/merge.h"
#include "graph/probe.h"
#include "graph/recording.h"

namespace ballast {
namespace graph {
namespace {

constexpr std::size_t kFewest = 3;             // sizes of a dimension that varies
constexpr std::size_t kTogether = 40;          // traces in which all dimensions change
constexpr std::size_t kCounts = 12;            // traces in which none does, but what values decide
constexpr std::int64_t kMostWork = 4'000'000;  // elements computed in one trace for a large size

struct Trace {
  Sizes sizes;
  std::optional<std::size_t> changed;  // the one symbol that differs from the first trace
};

SizeExpr size_of(const Symbol& symbol) {
  return {0,
          {{1,
            {{static_cast<std::int64_t>(symbol.input), static_cast<std::int64_t>(symbol.axis), symbol.name}},
            {}}},
          1};
}

class Tracer {
 public:
  Tracer(const Slots& slots, const std::vector<InputSpec>& inputs, const ForwardFunction& forward)
      : slots_(slots), inputs_(inputs), forward_(forward), symbols_(symbols_of(inputs)) {}

  Graph run() {
    record_first();
    if (base_.outputs.empty())
      fail(Errc::invalid_argument, "trace", "forward() does not take {} tensors, or returns none",
           inputs_.size());
    if (counts_) vary_counts();
    for (std::size_t s = 0; s < symbols_.size(); ++s) vary(s);
    if (symbols_.size() > 1) vary_together();
    Graph graph = merged();
    name_inputs(graph);
    graph.dynamic = !symbols_.empty();
    return graph;
  }

 private:
  [[nodiscard]] Graph record(const Sizes& sizes) {
    Recording recording(slots_, known_results_, recordings_++);
    Graph graph = recording.run(inputs_, shapes_of(inputs_, symbols_, sizes), forward_);
    work_ = recording.work();
    counts_ = counts_ || recording.made_up_counts();
    return graph;
  }

  // Sizes the model does not take are refused by its operations; others are tried then.
  void record_first() {
    std::unique_ptr<Error> refusal;
    std::exception_ptr thrown;
    for (const Sizes& sizes : symbols_.empty() ? std::vector<Sizes>{{}} : first_sizes(symbols_)) {
      try {
        base_ = record(sizes);
        keep({sizes, {}}, base_);
        return;
      } catch (const Error& error) {
        const bool of_sizes =
            error.code() == Errc::shape_mismatch || error.code() == Errc::offset_out_of_range;
        if (symbols_.empty() || !of_sizes) throw;
        if (!refusal) refusal = std::make_unique<Error>(error);
      } catch (const std::exception&) {  // the model's own
        if (symbols_.empty()) throw;
        if (!thrown) thrown = std::current_exception();
      }
    }
    if (!refusal) std::rethrow_exception(thrown);
    std::string names;
    for (const Symbol& symbol : symbols_) names += (names.empty() ? "" : ", ") + quoted(symbol.name);
    refuse(*refusal, fmt::format("the model takes none of the sizes tried for {}", names));
  }

  [[noreturn]] static void refuse(const Error& error, const std::string& what) {
    std::string_view why = error.what();
    if (!error.where().empty()) why.remove_prefix(error.where().size() + 2);
    fail(
        Errc::baked_dimension, error.where(),
        "{} ({}); a dimension it fixes needs its number, one it divides needs multiple_of, and the rank must "
        "be what it expects",
        what, why);
  }

  void keep(Trace trace, const Graph& graph) {
    numbers_.push_back(numbers_of(base_, graph));
    traces_.push_back(std::move(trace));
  }

  // False when the model refuses these sizes.
  bool try_sizes(const Trace& trace) {
    try {
      keep(trace, record(trace.sizes));
      return true;
    } catch (const Differs& reason) {
      if (trace.sizes == traces_[0].sizes) refuse_count(reason);
      fail(Errc::baked_dimension, reason.place, "dimension {} is baked in: with {} instead of {}, {}",
           quoted(symbols_[guilty(trace)].name), text_of(trace.sizes), text_of(traces_[0].sizes),
           reason.what);
    } catch (const Error& error) {
      if (error.code() == Errc::traced_value) throw;
      refusal_ = std::make_unique<Error>(error);
    } catch (const std::exception&) {
      // The model's own refusal.
    }
    return false;
  }

  // Of a nonzero() or nms() before it.
  [[noreturn]] static void refuse_count(const Differs& reason) {
    fail(Errc::baked_dimension, reason.place, "a number of rows that values decide is baked in: {}",
         reason.what);
  }

  void vary_counts() {
    counted_ = {0};
    for (std::size_t i = 0; i < kCounts; ++i) {
      counted_.push_back(traces_.size());
      if (!try_sizes({traces_[0].sizes, {}})) counted_.pop_back();
    }
  }

  void vary(std::size_t s) {
    const std::int64_t fits = traces_[0].sizes[s];
    std::vector<std::int64_t> taken = {fits};
    std::int64_t least = 0;
    std::int64_t work = 0;  // for a size of about a thousand
    const auto attempt = [&](std::int64_t size) {
      if (size > kLargeSize &&
          static_cast<double>(work) * std::pow(static_cast<double>(size) / kLargeSize, 2) > kMostWork)
        return;
      Trace trace{traces_[0].sizes, s};
      trace.sizes[s] = size;
      if (!try_sizes(trace)) return;
      taken.push_back(size);
      least = least == 0 ? size : std::min(least, size);
      if (size <= kLargeSize) work = work_;
    };
    const Sizes sizes = sizes_to_try(symbols_[s], fits);
    for (const std::int64_t size : sizes)
      if (size != fits) attempt(size);
    // Every size from the smallest that fits, so that no rounding stays hidden.
    for (std::int64_t size = least; least > 0 && size < least + kEverySize; ++size)
      if (symbols_[s].takes(size) && !std::binary_search(sizes.begin(), sizes.end(), size)) attempt(size);
    const bool few = symbols_[s].at_most - symbols_[s].at_least < static_cast<std::int64_t>(kFewest);
    if (taken.size() < kFewest && !few) {
      const std::string what = fmt::format("the model takes {} for {} and hardly another of the sizes tried",
                                           fits, quoted(symbols_[s].name));
      if (!refusal_) fail(Errc::baked_dimension, "trace", "{}", what);
      refuse(*refusal_, what);
    }
    taken_.push_back(std::move(taken));
  }

  // The smallest of all, the same for all, and any.
  void vary_together() {
    const auto together = [&](const auto& size_for) {
      Trace trace;
      for (std::size_t s = 0; s < symbols_.size(); ++s) trace.sizes.push_back(size_for(s));
      static_cast<void>(try_sizes(trace));
    };
    together([&](std::size_t s) { return *std::min_element(taken_[s].begin(), taken_[s].end()); });
    for (const std::int64_t size : {1, 2, 3, 7, 16, 32, 64, 96, 224}) {
      const bool all = std::all_of(taken_.begin(), taken_.end(), [&](const auto& sizes) {
        return std::find(sizes.begin(), sizes.end(), size) != sizes.end();
      });
      if (all) together([&](std::size_t) { return size; });
    }
    std::uint32_t state = 12345;
    for (std::size_t i = 0; i < kTogether; ++i) {
      together([&](std::size_t s) {
        std::vector<std::int64_t> some = taken_[s];
        std::erase_if(some, [](std::int64_t size) { return size > kLargeSize; });
        state = state * 1664525U + 1013904223U;
        return some[(state >> 8U) % some.size()];
      });
    }
  }

  [[nodiscard]] Graph merged() {
    std::vector<Known> symbols;
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      Known known{size_of(symbols_[s]), {}};
      for (const Trace& trace : traces_) known.seen.push_back(trace.sizes[s]);
      symbols.push_back(std::move(known));
    }
    Merger merger(base_, numbers_, symbols);
    try {
      return merger.run();
    } catch (const Differs& reason) {
      if (counts_ && !merger.solver().only(counted_).solve(only(reason.seen, counted_))) refuse_count(reason);
      const std::size_t s = guilty(reason.seen, merger.solver());
      fail(Errc::baked_dimension, reason.place, "dimension {} is baked in: {} ({})", quoted(symbols_[s].name),
           reason.what, examples(reason.seen, s));
    }
  }

  void name_inputs(Graph& graph) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      GraphValue& value = graph.values[static_cast<std::size_t>(graph.inputs[i])];
      value.sizes.clear();
      for (const InputDim& dim : inputs_[i].shape) {
        const auto named = std::find_if(symbols_.begin(), symbols_.end(),
                                        [&](const Symbol& symbol) { return symbol.name == dim.name; });
        value.sizes.push_back(dim.name.empty() ? SizeExpr{dim.size, {}, 1} : size_of(*named));
      }
    }
  }

  // The one that changed, or the first whose change alone has that effect.
  [[nodiscard]] std::size_t guilty(const Trace& trace) const {
    if (trace.changed) return *trace.changed;
    for (std::size_t s = 0; s < symbols_.size(); ++s)
      if (trace.sizes[s] != traces_[0].sizes[s]) return s;
    return 0;
  }

  [[nodiscard]] std::vector<std::size_t> changes_of(std::size_t s) const {
    std::vector<std::size_t> changes = {0};
    for (std::size_t t = 1; t < traces_.size(); ++t)
      if (traces_[t].changed == s) changes.push_back(t);
    return changes;
  }

  [[nodiscard]] std::size_t guilty(const Seen& seen, const Solver& solver) const {
    for (std::size_t s = 0; s < symbols_.size(); ++s) {
      const auto changes = changes_of(s);
      if (!solver.only(changes).solve(only(seen, changes))) return s;
    }
    for (std::size_t s = 0; s < symbols_.size(); ++s)
      if (!only(seen, changes_of(s)).empty() && seen[changes_of(s).back()] != seen[0]) return s;
    return 0;
  }

  [[nodiscard]] std::string examples(const Seen& seen, std::size_t s) const {
    const auto changes = changes_of(s);
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(changes.size(), 6); ++i)
      text += fmt::format("{}{} with {}", i == 0 ? "" : ", ", seen[changes[i]], traces_[changes[i]].sizes[s]);
    return text;
  }

  [[nodiscard]] std::string text_of(const Sizes& sizes) const {
    std::string text;
    for (std::size_t s = 0; s < symbols_.size(); ++s)
      text += fmt::format("{}{} = {}", s == 0 ? "" : ", ", display(symbols_[s].name), sizes[s]);
    return text;
  }

  const Slots& slots_;
  const std::vector<InputSpec>& inputs_;
  const ForwardFunction& forward_;
  std::vector<Symbol> symbols_;
  KnownResults known_results_;
  Graph base_;
  std::vector<Trace> traces_;  // the first is base_'s
  std::vector<Numbers> numbers_;
  std::vector<Sizes> taken_;  // of each symbol, with the others as in the first trace
  std::unique_ptr<Error> refusal_;
  std::size_t recordings_ = 0;
  bool counts_ = false;                    // values decide how many rows something has
  std::vector<std::size_t> counted_ = {};  // traces that differ in nothing else
  std::int64_t work_ = 0;                  // of the last recording
};

}  // namespace
}  // namespace graph

Graph detail::trace(const Slots& slots, const std::vector<InputSpec>& inputs,
                    const ForwardFunction& forward) {
  return graph::Tracer(slots, inputs, forward).run();
}

}  // namespace ballast
