// SPDX-License-Identifier: Apache-2.0
// A Checkpoint as a Safetensors file, in memory or on the disk.
#include "formats/safetensors/writer.h"

#include <cstring>

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/checked.h"
#include "checkpoint/file_options.h"
#include "checkpoint/require_data.h"
#include "formats/one_reading.h"
#include "formats/safetensors/data_copy.h"
#include "formats/safetensors/layout.h"

namespace ballast::safetensors {

void write_file(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress, Pack pack) {
  if (pack != Pack::none) return write_packed(checkpoint, out, progress, pack);
  const std::string where = display(out.path());
  require_data(checkpoint, where);
  const Layout layout = make_layout(declared_by(checkpoint), checkpoint.metadata, where);
  out.reserve(layout.file_size);
  out.append(layout.head);
  copy_data(checkpoint, layout, out, progress);
  require_one_reading(out, Meant::none);
}

void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  require_known(options, "safetensors::save()", {"pack", "durable"});
  AtomicFile out(path, options.overwrite);
  if (!options.durable) out.give_up_durability();
  write_file(checkpoint, out, options.progress, options.pack);
  out.commit();
}

std::vector<std::byte> serialize(const Checkpoint& checkpoint) {
  const std::string where = "bytes in memory";
  require_data(checkpoint, where);
  const Layout layout = make_layout(declared_by(checkpoint), checkpoint.metadata, where);
  std::vector<std::byte> bytes(static_cast<std::size_t>(layout.file_size));
  std::memcpy(bytes.data(), layout.head.data(), layout.head.size());
  for (const Layout::Place& place : layout.places) {
    checkpoint[place.tensor].tensor().read(
        0, std::span(bytes).subspan(static_cast<std::size_t>(place.begin),
                                    static_cast<std::size_t>(place.end - place.begin)));
  }
  require_one_reading(*memory_source(Storage::borrow(bytes.data(), bytes.size()), where), Meant::none);
  return bytes;
}

}  // namespace ballast::safetensors
