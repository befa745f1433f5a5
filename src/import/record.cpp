// SPDX-License-Identifier: Apache-2.0
#include "ballast/record.h"

#include <unordered_map>

#include "base/fail.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"

namespace ballast {
namespace {

// The dimension of a weight's output channels in the native layout; nullopt for what stays as it is.
std::optional<std::int64_t> channels_of(LayerKind kind, const Entry& entry) {
  if (!is_floating(entry.dtype) || entry.shape.size() < 2) return std::nullopt;
  switch (kind) {
    case LayerKind::linear:
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::rnn:
    case LayerKind::multihead_attention:
      return static_cast<std::int64_t>(entry.shape.size()) - 1;  // [in, out]
    case LayerKind::conv_transpose:
      return 1;  // [in, out, …]
    case LayerKind::conv:
    case LayerKind::bilinear:
    case LayerKind::embedding:
      return 0;
    default:
      return std::nullopt;
  }
}

std::unordered_map<std::string_view, LayerKind> kinds_of(const Slots& slots) {
  std::unordered_map<std::string_view, LayerKind> kinds;
  for (const Slot& slot : slots.slots) kinds.emplace(slot.path, slot.kind);
  return kinds;
}

void say_of_record(Checkpoint& tensors, const SaveModelOptions& options) {
  Metadata metadata = tensors.metadata.value_or(Metadata{});
  metadata[record::kPrecisionKey] =
      options.dtype == Precision::keep ? "keep" : record::precision_name(target_dtype(options.dtype));
  if (options.config.json) metadata[record::kConfigKey] = *options.config.json;
  if (!options.config.type.empty()) metadata[record::kConfigTypeKey] = options.config.type;
  tensors.metadata = std::move(metadata);
}

}  // namespace

RecordReport detail::save_record(const Slots& slots, const std::string& path,
                                 const SaveModelOptions& options) {
  if (options.adapter != Adapter::automatic && options.adapter != Adapter::none)
    fail(Errc::invalid_argument, display(path), "a record has Ballast's own layout, not that of {}",
         name(options.adapter));
  if (options.format != Format() && options.format != formats::record)
    fail(Errc::invalid_argument, display(path), "a record is no {} file", options.format.name());
  const auto count = std::make_shared<CastCount>();
  ModelCast cast = model_cast(options);
  cast.count = count;
  Checkpoint tensors = save(slots, Adapter::none, cast);
  RecordReport report;
  if (options.quantize == Quantize::int8) {
    const auto kinds = kinds_of(slots);
    Quantized quantized = quantize_int8(
        tensors, {}, [&](const Entry& entry) { return channels_of(kinds.at(entry.name), entry); });
    report.quantized = std::move(quantized.tensors);
    tensors = std::move(quantized.checkpoint);
  }
  // The integers are computed from cast values that are read more than once: what the cast did is counted
  // when the file is written, and only then.
  count->rounded = 0;
  count->overflowed = 0;
  say_of_record(tensors, options);
  ballast::save_record(tensors, path,
                       {.pack = options.pack, .overwrite = options.overwrite, .progress = options.progress});
  report.rounded = count->rounded;
  report.overflowed = count->overflowed;
  return report;
}

}  // namespace ballast
