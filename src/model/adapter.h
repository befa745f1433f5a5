// SPDX-License-Identifier: Apache-2.0
// Adapters: for every world (PyTorch, Burn, Flax, Keras) a table of how its parameters correspond to the
// native ones, per layer kind, both ways. A row says: these native tensors of such a layer are those foreign
// ones, and here is how to get from one to the other. What has no row is the same.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/load.h"

namespace ballast {

using Tensors = std::vector<Tensor>;

struct AdapterRow {
  static constexpr std::size_t kMost = 6;
  using Names = std::array<std::string_view, kMost>;

  LayerKind kind;
  Names native;  // names inside the layer; a '*' stands for the same text on both sides
  Names foreign;
  Tensors (*from)(std::span<const Tensor> foreign);  // → native, in order
  Tensors (*to)(std::span<const Tensor> native);  // → foreign; empty when the row does not suit these tensors
  std::string_view what;                          // for the report: "transposed"

  [[nodiscard]] static std::size_t count(const Names& names) noexcept;
};

/// All that is known of a world.
struct World {
  Adapter adapter;
  std::string_view name;    // in options and messages
  std::string_view layout;  // in a file's metadata: checkpoint/record_metadata.h
  std::span<const AdapterRow> (*table)();
  std::string (*plain_key)(std::string_view key);  // a key as the table's names expect it; null: as it is
  /// Whether it has no such tensor, so that none is written. Null: it has all.
  bool (*lacks)(LayerKind kind, std::string_view field) = nullptr;
};

/// Adapter::automatic is none.
[[nodiscard]] const World& world_of(Adapter adapter);
/// What the file's metadata or format says; PyTorch otherwise. Errc::unsupported for a layout nobody knows.
[[nodiscard]] const World& world_of(const Checkpoint& checkpoint);
[[nodiscard]] const World& world_of(std::string_view layout, const Checkpoint& checkpoint);

// The tables, one file each.
[[nodiscard]] std::span<const AdapterRow> pytorch_table();
[[nodiscard]] std::span<const AdapterRow> burn_table();
[[nodiscard]] std::span<const AdapterRow> flax_table();
[[nodiscard]] std::span<const AdapterRow> keras_table();
/// Flax joins names with '/' or '.', and has collections; Keras ends variables with ":0".
[[nodiscard]] std::string plain_flax_key(std::string_view key);

/// One way to find a native tensor in a foreign file.
struct AdapterPath {
  const AdapterRow* row;             // null: the tensor itself, under its native name
  std::size_t part;                  // which of the row's native tensors it is
  std::vector<std::string> foreign;  // names inside the layer
};

/// All ways for one field of a layer, best first: its own name, then the rows in order.
[[nodiscard]] std::vector<AdapterPath> paths_to(Adapter adapter, LayerKind kind, std::string_view field);

/// The text a '*' in `pattern` stands for; nullopt when `name` does not match.
[[nodiscard]] std::optional<std::string_view> match_star(std::string_view pattern, std::string_view name);
[[nodiscard]] std::string fill_star(std::string_view pattern, std::string_view star);

// What rows are made of.
Tensors as_is(std::span<const Tensor> in);
Tensors transposed(std::span<const Tensor> in);
Tensors joined_in_last(std::span<const Tensor> in);  ///< several into one, along the last dimension
template <std::size_t N>
Tensors split_in_last(std::span<const Tensor> in);           ///< the inverse
[[nodiscard]] Tensor sum(const Tensor& a, const Tensor& b);  ///< small tensors: computed at once
[[nodiscard]] Tensor blank_like(const Tensor& like);
[[nodiscard]] Tensors split_last(const Tensor& in, std::int64_t parts);

extern template Tensors split_in_last<3>(std::span<const Tensor>);
extern template Tensors split_in_last<4>(std::span<const Tensor>);

}  // namespace ballast
