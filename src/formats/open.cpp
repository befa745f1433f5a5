// SPDX-License-Identifier: Apache-2.0
// ballast::open(): what a file is, by its content.
#include "formats/open.h"

#include <cstring>

#include "ballast/display.h"
#include "ballast/io.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/magic.h"
#include "formats/torch/reader.h"

namespace ballast {

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

Checkpoint open(const std::string& path, const OpenOptions& options) {
  const auto file = File::open(path);
  const auto head = file->read(0, std::min<std::uint64_t>(file->size(), kMagicBytes));
  if (is_safetensors(head, file->size(), path))
    return safetensors::open(path, {.mode = safetensors::Mode::strict, .map = options.map});
  Checkpoint checkpoint =
      torch::open(torch::Source(file, options.map ? FileAccess::map : FileAccess::read), options.inert);
  checkpoint.path = path;
  return checkpoint;
}

Checkpoint open_bytes(std::shared_ptr<const Storage> bytes, const OpenOptions& options) {
  const std::span<const std::byte> head(
      bytes->data(), static_cast<std::size_t>(std::min<std::uint64_t>(bytes->size(), kMagicBytes)));
  if (is_safetensors(head, bytes->size(), {})) return safetensors::parse(std::move(bytes));
  return torch::open(torch::Source(std::move(bytes), "bytes"), options.inert);
}

}  // namespace ballast
