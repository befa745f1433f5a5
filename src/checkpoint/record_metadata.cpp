// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/record_metadata.h"

#include <charconv>

#include "ballast/display.h"
#include "base/fail.h"

namespace ballast::record {

const std::string* find(const Checkpoint& checkpoint, const std::string& key) {
  if (!checkpoint.metadata) return nullptr;
  const auto found = checkpoint.metadata->find(key);
  return found == checkpoint.metadata->end() ? nullptr : &found->second;
}

bool is_record(const Checkpoint& checkpoint) {
  return find(checkpoint, kVersionKey) != nullptr;
}

bool is_readable(const Checkpoint& checkpoint) {
  const std::string* text = find(checkpoint, kVersionKey);
  if (text == nullptr) return true;
  int version = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), version);
  return error == std::errc() && end == text->data() + text->size() && version >= 1 && version <= kVersion;
}

void require_readable(const Checkpoint& checkpoint) {
  if (is_readable(checkpoint)) return;
  const std::string* producer = find(checkpoint, kProducerKey);
  fail(Errc::unsupported, display(checkpoint.path),
       "is a record of version {}, this Ballast reads up to {} (made by {}: a newer Ballast is needed)",
       quoted(*find(checkpoint, kVersionKey)), kVersion,
       producer == nullptr ? "somebody newer" : display(*producer));
}

std::string layout_of(const Checkpoint& checkpoint) {
  if (const std::string* layout = find(checkpoint, kLayoutKey)) return *layout;
  const auto says = [&](const char* key, std::string_view value) {
    const std::string* found = find(checkpoint, key);
    return found != nullptr && *found == value;
  };
  if (checkpoint.format == "mpk" || checkpoint.format == "bpk" || says("producer", "burn")) return "burn";
  if (says("format", "flax")) return "flax";
  if (says("format", "tf") || says("format", "keras")) return "keras";
  return "pytorch";
}

std::string precision_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "full";
    case DType::f16:
      return "half";
    case DType::bf16:
      return "bf16";
    case DType::f64:
      return "double";
    default:
      return std::string(info(dtype).code);
  }
}

Checkpoint without_record_metadata(const Checkpoint& in) {
  if (find(in, kVersionKey) == nullptr) return in;
  Checkpoint out = in;
  for (const char* key : {kVersionKey, kProducerKey, kPrecisionKey, kChecksumsKey}) out.metadata->erase(key);
  return out;
}

Checkpoint with_aliases(const Checkpoint& in) {
  if (!in.metadata) return in;
  Checkpoint out = in;
  for (const auto& [name, target] : *in.metadata) {
    if (in.contains(target) && !in.contains(name)) out.add(name, in.tensor(target));
  }
  return out;
}

}  // namespace ballast::record
