// SPDX-License-Identifier: Apache-2.0
#include "ballast/load_file.h"

#include "base/fail.h"

namespace ballast::detail {

std::vector<Checkpoint> open_all(const std::vector<std::string>& paths) {
  std::vector<Checkpoint> parts;
  parts.reserve(paths.size());
  for (const std::string& path : paths) parts.push_back(open(path));
  return parts;
}

void save_model(const Slots& slots, const std::string& path, const SaveModelOptions& options) {
  if (options.config.json)
    fail(Errc::invalid_argument, display(path), "a configuration is written by save_record() alone");
  const Adapter adapter = options.adapter == Adapter::automatic
                              ? usual_adapter(format_for(path, options.format))
                              : options.adapter;
  Checkpoint tensors = save(slots, adapter, model_cast(options));
  if (options.quantize == Quantize::int8) tensors = quantize_int8(tensors).checkpoint;
  ballast::save(tensors, path,
                {.format = options.format,
                 .pack = options.pack,
                 .overwrite = options.overwrite,
                 .progress = options.progress});
}

}  // namespace ballast::detail
