// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/record_metadata.h"

#include <charconv>

#include "ballast/error.h"
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

bool is_of_file(std::string_view key) noexcept {
  return key == kVersionKey || key == kProducerKey || key == kChecksumsKey;
}

void forget_checksums(Checkpoint& checkpoint) {
  if (!checkpoint.metadata) return;
  std::erase_if(*checkpoint.metadata, [](const auto& entry) { return is_of_file(entry.first); });
}

Checkpoint without_record_metadata(const Checkpoint& in) {
  Checkpoint out = in;
  forget_checksums(out);
  if (out.metadata) out.metadata->erase(kPrecisionKey);
  return out;
}

}  // namespace ballast::record
