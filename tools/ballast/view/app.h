// SPDX-License-Identifier: Apache-2.0
// What `ballast view` holds while it runs, and the endpoints that answer from it: each in the file of its
// noun. Files and tensors are asked for by their numbers, never by paths or names: nothing outside the files
// of the command line can be reached.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "view/compare.h"
#include "view/document.h"
#include "view/exact.h"
#include "view/guard.h"
#include "view/jobs.h"
#include "view/lru.h"
#include "view/measures.h"
#include "view/query.h"
#include "view/request.h"
#include "view/response.h"
#include "view/server.h"

namespace tool::view {

struct App {
  std::vector<std::unique_ptr<Document>> documents;
  Guard guard;
  Lru tiles{64U << 20U};
  ExactPasses exact;
  Measures measures;
  Comparison comparison;
  std::function<void()> quit;
  std::function<void(const std::string&)> warn;
  std::atomic<std::chrono::steady_clock::rep> last_seen{0};  ///< when somebody with the token asked last
  Jobs jobs;                                                 ///< the last member: what runs uses the others

  void see() { last_seen.store(std::chrono::steady_clock::now().time_since_epoch().count()); }
};

/// One request to an endpoint.
struct Call {
  App& app;
  const Request& request;
  const Query& query;
  const Gone& gone;
  std::vector<std::string_view> rest;  ///< the pieces of the path that are numbers, in order

  /// Of the path: files/F. Refused (404) when there is none.
  [[nodiscard]] Document& document() const;
  /// Number `index` of the path.
  [[nodiscard]] std::uint64_t number(std::size_t index) const;
  /// files/F/t/N
  [[nodiscard]] std::size_t tensor_number() const;
  [[nodiscard]] ballast::Tensor tensor() const { return document().tensor(tensor_number()); }
};

[[nodiscard]] Response answer(App& app, const Request& request, const Gone& gone);

// The endpoints.
[[nodiscard]] Response get_files(const Call& call);
[[nodiscard]] Response get_tree(const Call& call);
[[nodiscard]] Response get_find(const Call& call);
[[nodiscard]] Response get_treemap(const Call& call);
[[nodiscard]] Response get_measures(const Call& call);
[[nodiscard]] Response get_tensor(const Call& call);
[[nodiscard]] Response get_plane(const Call& call);
[[nodiscard]] Response get_values(const Call& call);
[[nodiscard]] Response get_tile(const Call& call);
[[nodiscard]] Response get_lines(const Call& call);
[[nodiscard]] Response get_summary(const Call& call);
[[nodiscard]] Response post_exact(const Call& call);
[[nodiscard]] Response get_npy(const Call& call);
[[nodiscard]] Response get_csv(const Call& call);
[[nodiscard]] Response get_objects(const Call& call);
[[nodiscard]] Response get_scan(const Call& call);
[[nodiscard]] Response get_pickle(const Call& call);
[[nodiscard]] Response get_layout(const Call& call);
[[nodiscard]] Response get_onnx(const Call& call);
[[nodiscard]] Response get_diff(const Call& call);
[[nodiscard]] Response get_delta_plane(const Call& call);
[[nodiscard]] Response get_delta_tile(const Call& call);
[[nodiscard]] Response post_delta_exact(const Call& call);
[[nodiscard]] Response get_delta_lines(const Call& call);
[[nodiscard]] Response get_delta_values(const Call& call);
[[nodiscard]] Response get_job(const Call& call);
[[nodiscard]] Response delete_job(const Call& call);

/// What ?a=&b= ask for (0 and 1 where they do not say), the best there is; null as long as there is nothing.
[[nodiscard]] std::shared_ptr<const Compared> compared_files(const Call& call);

/// A tensor's row, as tree and find give it.
[[nodiscard]] Json tensor_row(Document& document, std::size_t number, const std::string& label);

}  // namespace tool::view
