// SPDX-License-Identifier: Apache-2.0
// Which tensors of the file a slot of the model gets, and whether they fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/adapter.h"
#include "model/positions.h"
#include "model/prepare.h"

namespace ballast {

struct Match {
  std::vector<std::size_t> sources;  // positions in the checkpoint; empty: nothing found
  Tensor tensor;                     // in the model's layout, in the file's dtype
  std::string wanted;                // the key that was looked for, in the file's terms
  std::string adapted;               // what the adapter did; empty when nothing
  std::string problem;               // why what was found cannot be used; empty when it can
  Shape file_shape;                  // with a problem: as it stands in the file,
  Shape model_shape;      // and what would fit there, in the file's layout where one tensor makes one
  bool filtered = false;  // found, but include and exclude keep it out

  [[nodiscard]] bool found() const noexcept { return !sources.empty(); }
};

/// A tensor a model can do without: older PyTorch files and other frameworks do not have it.
[[nodiscard]] bool is_optional(const Slot& slot) noexcept;

class Matcher {
 public:
  Matcher(const Slots& slots, const Prepared& source, const LoadOptions& options);

  /// Computed once per slot.
  [[nodiscard]] const Match& match(std::size_t slot);

  [[nodiscard]] const std::vector<Positions::Moved>& moved() const noexcept { return positions_.moved(); }

  /// Positions of the file's tensors at or below a path of the model.
  [[nodiscard]] std::vector<std::size_t> keys_under(std::string_view path, std::uint64_t index_segments);
  /// Whether the file's metadata has another tensor's second name at or below a path of the model.
  [[nodiscard]] bool has_alias_under(std::string_view path, std::uint64_t index_segments);

 private:
  [[nodiscard]] Match compute(const Slot& slot);
  [[nodiscard]] bool try_path(const Slot& slot, const std::string& layer, const AdapterPath& path,
                              Match& match) const;
  [[nodiscard]] bool try_weight_norm(const std::string& layer, std::string_view field, Match& match,
                                     Tensors& tensors) const;
  void explain(const Slot& slot, const AdapterPath& path, Match& match) const;
  [[nodiscard]] std::optional<std::size_t> position(const std::string& key) const;

  const Slots& slots_;
  const Prepared& source_;
  Positions positions_;
  std::vector<std::optional<Match>> matches_;
  std::vector<std::size_t> sorted_;  // positions in the checkpoint by name
};

/// Whether `tensor`, in the model's layout, can be put into the slot.
[[nodiscard]] bool fits(const Slot& slot, const Tensor& tensor);

/// The shape the file's world gives the slot's tensor; nullopt when it is part of a larger one there, or has
/// no shape yet.
[[nodiscard]] std::optional<Shape> foreign_shape(Adapter adapter, const Slot& slot);

}  // namespace ballast
