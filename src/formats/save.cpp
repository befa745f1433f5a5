// SPDX-License-Identifier: Apache-2.0
// ballast::save(): the format by name or by the file's extension.
#include "formats/save.h"

#include <array>

#include "ballast/display.h"
#include "ballast/io.h"
#include "ballast/record_file.h"
#include "ballast/torch.h"
#include "base/fail.h"
#include "checkpoint/record_metadata.h"

namespace ballast {
namespace {

struct Extension {
  std::string_view suffix;
  std::string_view format;
};

constexpr std::array<Extension, 8> kExtensions = {{
    {".safetensors", "safetensors"},
    {".record", "record"},
    {".pt", "torch-zip"},
    {".pth", "torch-zip"},
    {".bin", "torch-zip"},
    {".ckpt", "torch-zip"},
    {".th", "torch-zip"},
    {".pth.tar", "torch-zip"},
}};

}  // namespace

std::string_view format_of(const std::string& path, std::string_view format) {
  if (!format.empty()) return format;
  for (const Extension& extension : kExtensions) {
    if (path.ends_with(extension.suffix)) return extension.format;
  }
  fail(Errc::invalid_argument, display(path),
       "no format is known by this name; name one: safetensors, record, torch-zip, torch-legacy");
}

void save(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  const std::string_view format = format_of(path, options.format);
  const Checkpoint checkpoint = record::without_record_metadata(in);
  if (format == "record")
    return save_record(checkpoint, path, {.overwrite = options.overwrite, .progress = options.progress});
  if (format == "safetensors") {
    return safetensors::save(checkpoint, path,
                             {.overwrite = options.overwrite, .progress = options.progress});
  }
  if (format == "torch-zip" || format == "torch-legacy") {
    return torch::save(checkpoint, path,
                       {.legacy = format == "torch-legacy",
                        .simplify = options.simplify,
                        .overwrite = options.overwrite,
                        .progress = options.progress});
  }
  fail(Errc::invalid_argument, display(path),
       "{} is no format Ballast writes: safetensors, record, torch-zip, torch-legacy", quoted(format));
}

}  // namespace ballast
