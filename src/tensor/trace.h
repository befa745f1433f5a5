// SPDX-License-Identifier: Apache-2.0
// The one hook of a trace: run() (ballast/operation.h), and every view a tensor can make, asks on() first.
// Outside a trace that is one look at a thread's own pointer. Inside one, record() runs the operation with
// the recorder put aside, so that its own pieces are not recorded, and hands out results that know which
// operation made them (docs/decisions/0012). The recorder itself lives in src/graph.
#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ballast/operation.h"

#pragma GCC visibility push(default)  // for libraries of ours that stand on this one

namespace ballast::tracing {

using Run = std::function<std::vector<Tensor>()>;

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  virtual ~Recorder() = default;

  virtual std::vector<Tensor> record(const Operation& op, std::span<const Tensor> inputs,
                                     Attributes attributes, const Run& run) = 0;
  /// Operations up to leave() belong to the layer that keeps its path there.
  virtual void enter(const std::string& path, const char* layer) = 0;
  virtual void leave() noexcept = 0;
};

inline constinit thread_local Recorder* recorder = nullptr;

[[nodiscard]] inline bool on() noexcept {
  return recorder != nullptr;
}

/// Nothing is recorded while it lives.
class Aside {
 public:
  Aside() noexcept : kept_(std::exchange(recorder, nullptr)) {}

  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  ~Aside() { recorder = kept_; }

 private:
  Recorder* kept_;
};

/// What `run` returns, recorded. Only while on(). Undefined inputs are arguments that were left out.
template <class Work>
Tensor record(const Operation& op, std::initializer_list<Tensor> inputs, Attributes attributes,
              const Work& run) {
  return std::move(recorder->record(op, std::span(inputs.begin(), inputs.size()), std::move(attributes),
                                    [&] { return std::vector<Tensor>{run()}; })[0]);
}

}  // namespace ballast::tracing

#pragma GCC visibility pop
