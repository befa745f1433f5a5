// SPDX-License-Identifier: Apache-2.0
// The rows of Safetensors files and of records, which are Safetensors files that say more.
#include "ballast/format.h"

#include "ballast/detail/record_file.h"
#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "containers/magic.h"
#include "formats/safetensors/reader.h"

namespace ballast {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// A length and a brace behind it. What could be nothing else, but is named like one, is handed over too: its
// own reader says best what is wrong with it.
Likeness recognise_safetensors(const FileHead& head) {
  const bool is_named = head.name.ends_with(".safetensors");
  if (containers::is_json_text(head.bytes) && !is_named) return Likeness::none;
  if (head.bytes.size() >= 9) {
    const auto length = load_le<std::uint64_t>(head.bytes.data());
    const auto text = head.text().substr(8);
    const std::size_t first = text.find_first_not_of(kSpace);
    const bool is_object = first != std::string_view::npos && text[first] == '{';
    if (is_object && length <= head.size - 8) return Likeness::certain;
    if (is_object) return length > safetensors::kMaxHeaderBytes ? Likeness::likely : Likeness::doubtful;
  }
  const bool is_other = !containers::what_is_it(head.bytes).empty() || containers::is_zip(head.bytes) ||
                        (!head.bytes.empty() && head.bytes[0] == std::byte{0x80});
  return is_named && !is_other ? Likeness::likely : Likeness::none;
}

Checkpoint open_safetensors(const ByteSource& source, const OpenOptions&) {
  return safetensors::open(source, safetensors::Mode::strict);
}

void save_safetensors(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  safetensors::save(checkpoint, path,
                    {.pack = options.pack,
                     .overwrite = options.overwrite,
                     .durable = options.durable,
                     .progress = options.progress});
}

void save_as_record(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  save_record(checkpoint, path,
              {.pack = options.pack, .overwrite = options.overwrite, .progress = options.progress});
}

bool is_in_safetensors(DType dtype) {
  return info(dtype).in_safetensors;
}

}  // namespace

constinit const FormatRow formats::safetensors = {.name = "safetensors",
                                                  .extensions = {".safetensors"},
                                                  .recognise = recognise_safetensors,
                                                  .open = open_safetensors,
                                                  .save = save_safetensors,
                                                  .holds = is_in_safetensors,
                                                  .holds_metadata = true,
                                                  .holds_layout = true,
                                                  .holds_ties = true};

constinit const FormatRow formats::record = {.name = "record",
                                             .extensions = {".record"},
                                             .open = open_safetensors,
                                             .save = save_as_record,
                                             .holds = is_in_safetensors,
                                             .holds_metadata = true,
                                             .holds_layout = true,
                                             .holds_ties = true};

}  // namespace ballast
