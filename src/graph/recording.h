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

class Recording final : public tracing::Recorder {
 public:
  explicit Recording(const Slots& slots);
  ~Recording() override;

  /// The graph of forward(tensors of these shapes), without what its results do not need.
  [[nodiscard]] Graph run(const std::vector<InputSpec>& inputs, const std::vector<Shape>& shapes,
                          const ForwardFunction& forward);

  std::vector<Tensor> record(const char* op, std::span<const Tensor> inputs, Attributes attributes,
                             const tracing::Run& run) override;
  void enter(const std::string& path, const char* layer) override;
  void leave() noexcept override;

  /// The next operation recorded is this one.
  void next_is(std::shared_ptr<const CustomOp> op) { custom_ = std::move(op); }

 private:
  struct View;

  [[nodiscard]] std::int64_t value_of(const Tensor& tensor, const char* op);
  [[nodiscard]] std::int64_t leaf(const Tensor& tensor);
  [[nodiscard]] std::int64_t add_constant(const Tensor& tensor);
  [[nodiscard]] Tensor wrapped(const Tensor& plain, std::int64_t value, std::string made_by);
  [[nodiscard]] std::string place_of(const std::vector<std::int64_t>& inputs) const;

  const Slots& slots_;
  Graph graph_;
  std::vector<View> views_;  // of each value, how its tensor lies in its storage
  std::shared_ptr<Session> session_ = std::make_shared<Session>();
  std::unordered_multimap<const Storage*, std::size_t> slots_by_storage_;
  std::unordered_multimap<const Storage*, std::int64_t> leaves_by_storage_;
  std::unordered_map<const std::string*, std::string> layer_paths_;
  std::vector<std::string> places_;
  std::shared_ptr<const CustomOp> custom_;
};

}  // namespace ballast::graph
