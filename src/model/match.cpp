// SPDX-License-Identifier: Apache-2.0
#include "model/match.h"

#include <algorithm>
#include <numeric>

#include "base/fail.h"
#include "base/key_path.h"
#include "model/weight_norm.h"

namespace ballast {
namespace {

// Of a layer that is a tensor itself the field has no name.
std::string join_path(std::string_view layer, std::string_view field) {
  return field.empty() ? std::string(layer) : key_path::joined(layer, field);
}

enum class Family : std::uint8_t { floating, integer, other };

Family family_of(DType dtype) {
  switch (info(dtype).kind) {
    case DTypeKind::floating:
      return Family::floating;
    case DTypeKind::boolean:
    case DTypeKind::unsigned_integer:
    case DTypeKind::signed_integer:
      return Family::integer;
    case DTypeKind::complex:
    case DTypeKind::quantized:
    case DTypeKind::opaque:
      break;
  }
  return Family::other;
}

std::string difference(const Shape& theirs, const Shape& ours) {
  if (theirs.size() == 2 && ours.size() == 2 && ours[0] == theirs[1] && ours[1] == theirs[0])
    return "the shape is the transpose of the model's (the file's layout, see adapter?)";
  const bool only_rows = ours.size() == theirs.size() && !ours.empty() &&
                         std::equal(ours.begin() + 1, ours.end(), theirs.begin() + 1);
  if (only_rows)
    return "only the first dimension differs; parts of a tensor are never loaded (resize the model, or "
           "slice with a rule)";
  return "the shapes differ";
}

}  // namespace

bool is_optional(const Slot& slot) noexcept {
  return (slot.kind == LayerKind::batch_norm || slot.kind == LayerKind::instance_norm) &&
         slot.field() == "num_batches_tracked";
}

bool fits(const Slot& slot, const Tensor& tensor) {
  if (!slot.tensor->defined()) return true;
  const DType wanted = slot.tensor->dtype();
  if (slot.tensor->shape() != tensor.shape()) return false;
  return wanted == tensor.dtype() ||
         (family_of(wanted) == family_of(tensor.dtype()) && family_of(wanted) != Family::other);
}

std::optional<Shape> foreign_shape(Adapter adapter, const Slot& slot) {
  if (!slot.tensor->defined()) return std::nullopt;
  const Tensor ours(slot.tensor->dtype(), slot.tensor->shape());
  for (const AdapterPath& path : paths_to(adapter, slot.kind, slot.field())) {
    if (path.row == nullptr) continue;
    if (AdapterRow::count(path.row->native) != 1 || path.foreign.size() != 1) return std::nullopt;
    return path.row->to(Tensors{ours}).at(0).shape();
  }
  return ours.shape();
}

Matcher::Matcher(const Slots& slots, const Prepared& source, const LoadOptions& options)
    : slots_(slots),
      source_(source),
      positions_(slots, source.checkpoint, options.reindex, options.keep_positions),
      matches_(slots.slots.size()),
      sorted_(source.checkpoint.size()) {
  std::iota(sorted_.begin(), sorted_.end(), std::size_t{0});
  std::sort(sorted_.begin(), sorted_.end(), [&](std::size_t a, std::size_t b) {
    return source_.checkpoint[a].name < source_.checkpoint[b].name;
  });
}

std::vector<std::size_t> Matcher::keys_under(std::string_view path, std::uint64_t index_segments) {
  const std::string prefix = positions_.in_file(path, index_segments);
  if (prefix.empty()) return sorted_;
  std::vector<std::size_t> found;
  if (const auto exact = source_.checkpoint.position(prefix)) found.push_back(*exact);
  const std::string below = prefix + ".";
  const auto name = [&](std::size_t i) { return source_.checkpoint[i].name; };
  auto at = std::lower_bound(sorted_.begin(), sorted_.end(), below,
                             [&](std::size_t i, const std::string& text) { return name(i) < text; });
  for (; at != sorted_.end() && name(*at).starts_with(below); ++at) found.push_back(*at);
  return found;
}

bool Matcher::has_alias_under(std::string_view path, std::uint64_t index_segments) {
  if (!source_.checkpoint.metadata) return false;
  const std::string prefix = positions_.in_file(path, index_segments);
  return std::any_of(source_.checkpoint.metadata->begin(), source_.checkpoint.metadata->end(),
                     [&](const auto& entry) {
                       const auto& [name, other] = entry;
                       const bool is_under = name == prefix || name.starts_with(prefix + ".");
                       return is_under && source_.checkpoint.position(other).has_value();
                     });
}

// A name may also be an alias that the file's metadata explains: tied tensors are saved once.
std::optional<std::size_t> Matcher::position(const std::string& key) const {
  if (const auto found = source_.checkpoint.position(key)) return found;
  if (!source_.checkpoint.metadata) return std::nullopt;
  const auto alias = source_.checkpoint.metadata->find(key);
  return alias == source_.checkpoint.metadata->end() ? std::nullopt
                                                     : source_.checkpoint.position(alias->second);
}

bool Matcher::try_weight_norm(const std::string& layer, std::string_view field, Match& match,
                              Tensors& tensors) const {
  const std::string key = join_path(layer, field);
  const std::string parametrization =
      fmt::format("{}parametrizations.{}", key_path::before_last(key), key_path::last(key));
  for (const auto& [g, v] : {std::pair(key + "_g", key + "_v"),
                             std::pair(parametrization + ".original0", parametrization + ".original1")}) {
    const auto length = position(g);
    const auto direction = position(v);
    if (!length || !direction) continue;
    tensors.push_back(
        weight_norm(source_.checkpoint[*length].tensor(), source_.checkpoint[*direction].tensor()));
    match.sources = {*length, *direction};
    match.adapted = "weight_norm";
    return true;
  }
  return false;
}

bool Matcher::try_path(const Slot& slot, const std::string& layer, const AdapterPath& path,
                       Match& match) const {
  std::vector<std::size_t> sources;
  for (const std::string& field : path.foreign) {
    if (const auto found = position(join_path(layer, field))) sources.push_back(*found);
  }
  try {
    Tensors tensors;
    if (sources.size() == path.foreign.size()) {
      match.sources = std::move(sources);
      for (const std::size_t source : match.sources) tensors.push_back(source_.checkpoint[source].tensor());
    } else if (source_.adapter != Adapter::pytorch || path.foreign.size() != 1 ||
               !try_weight_norm(layer, path.foreign[0], match, tensors)) {
      return false;
    }
    if (path.row != nullptr) {
      match.adapted += (match.adapted.empty() ? "" : ", ") + std::string(path.row->what);
      tensors = path.row->from(tensors);
    }
    match.tensor = tensors[path.row == nullptr ? 0 : path.part];
    if (!fits(slot, match.tensor)) explain(slot, path, match);
  } catch (const Error& error) {
    // Found, but not what the layer's parameters look like.
    match.problem = error.what();
    match.tensor = source_.checkpoint[match.sources[0]].tensor();
    match.file_shape = match.tensor.shape();
    match.model_shape = foreign_shape(source_.adapter, slot).value_or(slot.tensor->shape());
  }
  return true;
}

// In the file's layout, for that is what its owner knows. Where several tensors make one, or one several, it
// is the shape they make.
void Matcher::explain(const Slot& slot, const AdapterPath& path, Match& match) const {
  const bool one_makes_one =
      match.sources.size() == 1 && (path.row == nullptr || AdapterRow::count(path.row->native) == 1);
  const Tensor ours(slot.tensor->dtype(), slot.tensor->shape());
  match.file_shape = match.tensor.shape();
  match.model_shape = ours.shape();
  if (one_makes_one && path.row != nullptr) {
    match.file_shape = source_.checkpoint[match.sources[0]].tensor().shape();
    match.model_shape = path.row->to(Tensors{ours}).at(0).shape();
  }
  const DType wanted = slot.tensor->dtype();
  if (match.tensor.shape() == slot.tensor->shape())
    match.problem =
        fmt::format("the file holds {}, the model wants {}{}", info(match.tensor.dtype()).code,
                    info(wanted).code, family_of(wanted) == Family::floating ? " (a quantized file?)" : "");
  else
    match.problem = difference(match.file_shape, match.model_shape);
  if (match.model_shape != ours.shape())
    match.problem += fmt::format("; in the model's layout its own is {}", to_string(ours.shape()));
  if (!one_makes_one && !match.adapted.empty()) match.problem += fmt::format(" ({})", match.adapted);
}

Match Matcher::compute(const Slot& slot) {
  const std::string layer =
      slot.kind == LayerKind::none ? "" : positions_.in_file(slot.layer(), slot.index_segments);
  const std::string field = slot.kind == LayerKind::none ? positions_.in_file(slot.path, slot.index_segments)
                                                         : std::string(slot.field());
  Match match;
  const auto paths = paths_to(source_.adapter, slot.kind, field);
  for (const AdapterPath& path : paths) {
    Match candidate;
    if (!try_path(slot, layer, path, candidate)) continue;
    match = std::move(candidate);
    break;
  }
  // What the file's world calls it: the first row's name, else its own.
  const auto foreign =
      std::find_if(paths.begin(), paths.end(), [](const AdapterPath& path) { return path.row != nullptr; });
  match.wanted = join_path(layer, (foreign == paths.end() ? paths.front() : *foreign).foreign[0]);
  match.filtered = std::any_of(match.sources.begin(), match.sources.end(),
                               [&](std::size_t source) { return !source_.wanted[source]; });
  return match;
}

const Match& Matcher::match(std::size_t slot) {
  if (!matches_[slot]) matches_[slot] = compute(slots_.slots[slot]);
  return *matches_[slot];
}

}  // namespace ballast
