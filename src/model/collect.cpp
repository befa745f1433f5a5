// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <utility>

#include "ballast/detail/slots.h"
#include "ballast/error.h"
#include "base/fail.h"

namespace ballast {

void Slots::name_layers() const {
  for (const Node& node : nodes) {
    if (node.layer_path != nullptr) *node.layer_path = node.path;
  }
}

}  // namespace ballast

namespace ballast::detail {
namespace {

constexpr std::size_t kDeepest = 64;  // segments; one bit each in index_segments
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

}  // namespace

void Collector::append(std::string_view segment, bool is_index) {
  if (segments_ == kDeepest)
    fail(Errc::too_deep, display(path_), "members are nested more than {} deep (a cycle of pointers?)",
         kDeepest);
  if (!path_.empty()) path_ += '.';
  path_ += segment;
  if (is_index) index_segments_ |= std::uint64_t{1} << segments_;
  ++segments_;
  // A name given with dots ("class.0") is several segments of the path.
  for (const char c : segment) segments_ += c == '.' && segments_ < kDeepest ? 1 : 0;
}

Collector::Scope::Scope(Collector& collector, std::string_view name)
    : collector_(collector),
      path_size_(collector.path_.size()),
      segments_(collector.segments_),
      index_segments_(collector.index_segments_) {
  if (!name.empty()) collector.append(name, false);
}

Collector::Scope::Scope(Collector& collector, std::size_t index)
    : collector_(collector),
      path_size_(collector.path_.size()),
      segments_(collector.segments_),
      index_segments_(collector.index_segments_) {
  char digits[24];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), index).ptr;
  collector.append({digits, static_cast<std::size_t>(end - digits)}, true);
}

Collector::Scope::~Scope() {
  collector_.path_.resize(path_size_);
  collector_.segments_ = segments_;
  collector_.index_segments_ = index_segments_;
}

Collector::Collector(Alternatives which, FileHas file_has)
    : all_alternatives_(which == Alternatives::all), file_has_(std::move(file_has)) {}

Slots Collector::take() {
  return std::move(slots_);
}

Collector::LayerScope::LayerScope(Collector& collector, LayerKind kind)
    : collector_(collector),
      kind_(std::exchange(collector.kind_, kind)),
      size_(std::exchange(collector.layer_size_, static_cast<std::uint32_t>(collector.path_.size()))) {}

Collector::LayerScope::~LayerScope() {
  collector_.kind_ = kind_;
  collector_.layer_size_ = size_;
}

void Collector::tensor(Tensor& tensor) {
  slots_.slots.push_back({.path = path_,
                          .kind = kind_,
                          .layer_size = kind_ == LayerKind::none ? 0 : layer_size_,
                          .alternative = alternative_,
                          .index_segments = index_segments_,
                          .tensor = &tensor});
}

void Collector::node(Node node) {
  node.path = path_;
  node.first_slot = slots_.slots.size();
  slots_.nodes.push_back(std::move(node));
}

bool Collector::file_may_have_this() const {
  // Inside a layer the file's world may have other names.
  return file_has_ && file_has_(kind_ == LayerKind::none ? std::string_view(path_)
                                                         : std::string_view(path_).substr(0, layer_size_));
}

std::uint32_t Collector::begin_choice(bool optional) {
  slots_.choices.push_back({.path = path_,
                            .index_segments = index_segments_,
                            .parent = alternative_,
                            .optional = optional,
                            .held = kNone,
                            .alternatives = {}});
  return static_cast<std::uint32_t>(slots_.choices.size() - 1);
}

void Collector::begin_alternative(std::uint32_t choice, std::string_view type, Function<void()> commit,
                                  Function<bool(std::span<const Shape>)> take_sizes) {
  if (++alternatives_deep_ > kDeepest)
    fail(Errc::too_deep, display(path_),
         "alternatives are nested more than {} deep (a {} that holds itself?)", kDeepest, display(type));
  alternative_ = static_cast<std::uint32_t>(slots_.alternatives.size());
  Choice& its_choice = slots_.choices[choice];
  if (!commit) its_choice.held = its_choice.alternatives.size();
  its_choice.alternatives.push_back(alternative_);
  slots_.alternatives.push_back({.type = std::string(type),
                                 .choice = choice,
                                 .can_be_built = true,
                                 .commit = std::move(commit),
                                 .take_sizes = std::move(take_sizes)});
}

void Collector::end_alternative(std::uint32_t choice) {
  --alternatives_deep_;
  alternative_ = slots_.choices[choice].parent;
}

void Collector::alternative_without_default(std::uint32_t choice, std::string_view type) {
  slots_.choices[choice].alternatives.push_back(static_cast<std::uint32_t>(slots_.alternatives.size()));
  slots_.alternatives.push_back(
      {.type = std::string(type), .choice = choice, .can_be_built = false, .commit = {}, .take_sizes = {}});
}

}  // namespace ballast::detail
