// SPDX-License-Identifier: Apache-2.0
// One call of a model's forward(), recorded.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ballast/graph.h"
#include "graph/traced_storage.h"
#include "tensor/trace.h"

namespace ballast::graph {

/// Large results that follow from parameters alone: computed in one recording, taken over by the next.
struct KnownResults {
  std::unordered_map<std::string, std::vector<Tensor>> results;
  std::unordered_map<std::string, std::string> short_names;  // of what they are made of
};

class Recording final : public tracing::Recorder {
 public:
  /// `number`: of this recording among those of one trace. How many rows an operation has whose values
  /// decide that (nonzero) is made up, another number in each.
  Recording(const Slots& slots, KnownResults& results, std::size_t number);
  ~Recording() override;

  /// The graph of forward(tensors of these shapes), without what its results do not need. Nothing is
  /// computed but what follows from parameters and constants; of the rest, dtypes and shapes are enough.
  [[nodiscard]] Graph run(const std::vector<InputSpec>& inputs, const std::vector<Shape>& shapes,
                          const ForwardFunction& forward);

  std::vector<Tensor> record(const Operation& op, std::span<const Tensor> inputs, Attributes attributes,
                             const tracing::Run& run) override;
  void enter(const std::string& path, const char* layer) override;
  void leave() noexcept override;

  /// Whether there was such an operation.
  [[nodiscard]] bool made_up_counts() const noexcept { return counted_ > 0; }

  /// How many elements were computed.
  [[nodiscard]] std::int64_t work() const noexcept { return work_; }

 private:
  struct View;

  [[nodiscard]] std::vector<Tensor> known_results(const std::string& key, std::span<const Tensor> inputs,
                                                  const tracing::Run& run);
  [[nodiscard]] Tensor counted(const Tensor& form);
  [[nodiscard]] std::string key_of(const GraphNode& node) const;
  [[nodiscard]] std::int64_t value_of(const Tensor& tensor, const char* op);
  [[nodiscard]] std::int64_t leaf(const Tensor& tensor);
  [[nodiscard]] std::int64_t add_constant(const Tensor& tensor);
  [[nodiscard]] Tensor wrapped(const Tensor& plain, std::int64_t value, std::string made_by);
  [[nodiscard]] std::string place_of(const std::vector<std::int64_t>& inputs) const;

  const Slots& slots_;
  KnownResults& known_;
  std::size_t number_;
  std::size_t counted_ = 0;  // operations whose count was made up
  std::int64_t work_ = 0;
  Graph graph_;
  std::vector<std::string> keys_;  // of each value, what it is made of; "" when it cannot be told
  std::vector<View> views_;        // of each value, how its tensor lies in its storage
  std::shared_ptr<Session> session_ = std::make_shared<Session>();
  std::unordered_multimap<const Storage*, std::size_t> slots_by_storage_;
  std::unordered_multimap<const Storage*, std::int64_t> leaves_by_storage_;
  std::unordered_map<const std::string*, std::string> layer_paths_;
  std::vector<std::string> places_;
};

}  // namespace ballast::graph
