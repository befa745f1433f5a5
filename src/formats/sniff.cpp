// SPDX-License-Identifier: Apache-2.0
#include "formats/sniff.h"

#include <algorithm>

#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/magic.h"
#include "formats/burn/burn.h"
#include "formats/npy/npy.h"
#include "formats/onnx/onnx.h"
#include "formats/torch/pickle.h"
#include "formats/zip_records.h"

namespace ballast {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// A length that fits and a brace behind it. What nothing else could be, but is named like one, is handed over
// too: its own reader says best what is wrong with it.
bool is_safetensors(std::span<const std::byte> head, std::uint64_t size, std::string_view path) {
  if (head.size() >= 9) {
    const auto length = load_le<std::uint64_t>(head.data());
    const auto text = as_text(head.subspan(8));
    const std::size_t first = text.find_first_not_of(kSpace);
    const bool is_object = first != std::string_view::npos && text[first] == '{';
    if (is_object && (length <= size - 8 || length > safetensors::kMaxHeaderBytes)) return true;
    if (is_object && !torch::may_be_pickle(head)) return true;
  }
  const bool is_other = !what_is_it(head).empty() || as_text(head).starts_with("PK\3\4") ||
                        (!head.empty() && head[0] == std::byte{0x80});
  return path.ends_with(".safetensors") && !is_other;
}

// Text that begins with a brace. The eight bytes of a Safetensors file's length never look like that: it
// would be far beyond the format's limit.
bool is_json_object(std::span<const std::byte> head) {
  return is_json_text(head) && as_text(head).find('{') < as_text(head).find('[');
}

}  // namespace

std::size_t telling_bytes(std::span<const std::byte> head) noexcept {
  if (!as_text(head).starts_with("PK\3\4") || head.size() < zip::kLocalSize) return head.size();
  return std::max(head.size(), zip::kLocalSize + load_le<std::uint16_t>(head.data() + 26));
}

Family family_of(const ByteSource& source) {
  auto head = source.read(0, std::min<std::uint64_t>(source.size(), kMagicBytes));
  if (const std::size_t telling = telling_bytes(head); telling > head.size())
    head = source.read(0, std::min<std::uint64_t>(source.size(), telling));
  return family_of(head, source.size(), source.name());
}

Family family_of(std::span<const std::byte> head, std::uint64_t size, std::string_view path) {
  if (burn::is_bpk(head)) return Family::bpk;
  if (npy::is_npy(head)) return Family::npy;
  if (burn::is_mpk(head)) return Family::mpk;
  if (npy::is_npz(head)) return Family::npz;
  const bool has_no_magic = what_is_it(head).empty();
  if (has_no_magic && onnx_file::is_onnx(head)) return Family::onnx;
  if (is_json_object(head) && !path.ends_with(".safetensors")) return Family::index;
  if (is_safetensors(head, size, path)) return Family::safetensors;
  if (as_text(head).starts_with("\x1F\x8B")) return Family::gzip;
  // Like Safetensors files: by name what could be nothing else.
  const bool may_be_onnx = has_no_magic && !head.empty() && !torch::may_be_pickle(head);
  if (may_be_onnx && path.ends_with(".onnx")) return Family::onnx;
  return Family::torch;
}

}  // namespace ballast
