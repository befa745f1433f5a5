// SPDX-License-Identifier: Apache-2.0
#include "model/adapter.h"

#include <algorithm>
#include <iterator>

#include "ballast/error.h"
#include "base/fail.h"
#include "checkpoint/layout.h"
#include "tensor/concat.h"

namespace ballast {
namespace {

std::span<const AdapterRow> no_table() {
  return {};
}

// Its loader is strict, and refuses what the model has no place for.
bool burn_lacks(LayerKind kind, std::string_view field) {
  return kind == LayerKind::batch_norm && field == "num_batches_tracked";
}

constexpr World kWorlds[] = {
    {Adapter::pytorch, "pytorch", "pytorch", pytorch_table, nullptr},
    {Adapter::none, "none", "native", no_table, nullptr},
    {Adapter::burn, "burn", "burn", burn_table, nullptr, burn_lacks},
    {Adapter::flax, "flax", "flax", flax_table, plain_flax_key},
    {Adapter::keras, "keras", "keras", keras_table, plain_flax_key},
};

const World* find_world(std::string_view layout) {
  const auto* const found = std::find_if(std::begin(kWorlds), std::end(kWorlds),
                                         [&](const World& world) { return world.layout == layout; });
  return found == std::end(kWorlds) ? nullptr : found;
}

}  // namespace

const World& world_of(Adapter adapter) {
  for (const World& world : kWorlds) {
    if (world.adapter == adapter) return world;
  }
  fail(Errc::invalid_argument, "adapter", "{} is no world of its own", name(adapter));
}

const World& world_of(const Checkpoint& checkpoint) {
  return world_of(layout::of(checkpoint), checkpoint);
}

Adapter adapter_of(const Checkpoint& checkpoint) {
  return world_of(checkpoint).adapter;
}

const World& world_of(std::string_view layout, const Checkpoint& checkpoint) {
  if (const World* world = find_world(layout)) return *world;
  fail(Errc::unsupported, display(checkpoint.path), "says that its layout is {}, which is not known here",
       quoted(layout));
}

Adapter usual_adapter(Format format) {
  return find_world(format ? format->layout : FormatRow{}.layout)->adapter;
}

std::string_view name(Adapter adapter) noexcept {
  for (const World& world : kWorlds) {
    if (world.adapter == adapter) return world.name;
  }
  return "automatic";
}

Adapter adapter_named(std::string_view text) {
  if (text == "automatic") return Adapter::automatic;
  for (const World& world : kWorlds) {
    if (world.name == text || world.layout == text) return world.adapter;
  }
  fail(Errc::invalid_argument, "layout", "{} is no layout; there are pytorch, burn, native, flax and keras",
       quoted(text));
}

LayerKind layer_kind_named(std::string_view text) {
  for (std::size_t i = 0; i < kLayerKindCount; ++i) {
    if (name(static_cast<LayerKind>(i)) == text) return static_cast<LayerKind>(i);
  }
  fail(Errc::invalid_argument, "layers",
       "{} is no kind of layer; linear, embedding, rms_norm, prelu and none are the usual ones",
       quoted(text));
}

std::size_t AdapterRow::count(const Names& names) noexcept {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), std::string_view()) - names.begin());
}

std::optional<std::string_view> match_star(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (name.size() < before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  return name.substr(before.size(), name.size() - before.size() - after.size());
}

std::string fill_star(std::string_view pattern, std::string_view star) {
  std::string text(pattern);
  if (const std::size_t at = text.find('*'); at != text.npos) text.replace(at, 1, star);
  return text;
}

std::vector<AdapterPath> paths_to(Adapter adapter, LayerKind kind, std::string_view field) {
  std::vector<AdapterPath> paths;
  bool own_name_has_a_row = false;
  for (const AdapterRow& row : world_of(adapter).table()) {
    if (row.kind != kind) continue;
    for (std::size_t part = 0; part < AdapterRow::count(row.native); ++part) {
      const auto star = match_star(row.native[part], field);
      if (!star) continue;
      AdapterPath path{&row, part, {}};
      for (std::size_t i = 0; i < AdapterRow::count(row.foreign); ++i)
        path.foreign.push_back(fill_star(row.foreign[i], *star));
      own_name_has_a_row = own_name_has_a_row || (path.foreign.size() == 1 && path.foreign[0] == field);
      paths.push_back(std::move(path));
    }
  }
  if (!own_name_has_a_row) paths.insert(paths.begin(), {nullptr, 0, {std::string(field)}});
  return paths;
}

Tensors as_is(std::span<const Tensor> in) {
  return {in.begin(), in.end()};
}

Tensors transposed(std::span<const Tensor> in) {
  Tensors out;
  for (const Tensor& tensor : in) out.push_back(tensor.rank() < 2 ? tensor : tensor.t());
  return out;
}

Tensors joined_in_last(std::span<const Tensor> in) {
  return {concat_lazy(in, -1)};
}

Tensors split_last(const Tensor& in, std::int64_t parts) {
  if (in.rank() == 0 || in.shape().back() % parts != 0) {
    fail(Errc::shape_mismatch, "adapter", "shape {} cannot be split into {} gates", to_string(in.shape()),
         parts);
  }
  const std::int64_t length = in.shape().back() / parts;
  Tensors out;
  for (std::int64_t i = 0; i < parts; ++i) out.push_back(in.narrow(-1, i * length, length));
  return out;
}

template <std::size_t N>
Tensors split_in_last(std::span<const Tensor> in) {
  return split_last(in[0], static_cast<std::int64_t>(N));
}

template Tensors split_in_last<3>(std::span<const Tensor>);
template Tensors split_in_last<4>(std::span<const Tensor>);

Tensor blank_like(const Tensor& like) {
  return like.has_data() ? Tensor::zeros(like.dtype(), like.shape()) : Tensor(like.dtype(), like.shape());
}

Tensor sum(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape())
    fail(Errc::shape_mismatch, "adapter", "{} and {} cannot be added", to_string(a.shape()),
         to_string(b.shape()));
  if (!a.has_data() || !b.has_data()) return {a.dtype(), a.shape()};
  Tensor total = a.to(DType::f64).clone();
  const Tensor other = b.to(DType::f64).contiguous();
  const auto out = total.mutable_span<double>();
  const auto in = other.span<double>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += in[i];
  return total.to(a.dtype());
}

}  // namespace ballast
