// SPDX-License-Identifier: Apache-2.0
// ballast::save(): the format by name or by the file's extension.
#include <array>

#include "ballast/display.h"
#include "ballast/io.h"
#include "ballast/torch.h"
#include "base/fail.h"

namespace ballast {
namespace {

struct Extension {
  std::string_view suffix;
  std::string_view format;
};

constexpr std::array<Extension, 7> kExtensions = {{
    {".safetensors", "safetensors"},
    {".pt", "torch-zip"},
    {".pth", "torch-zip"},
    {".bin", "torch-zip"},
    {".ckpt", "torch-zip"},
    {".th", "torch-zip"},
    {".pth.tar", "torch-zip"},
}};

std::string_view format_of(const std::string& path, const SaveOptions& options) {
  if (!options.format.empty()) return options.format;
  for (const Extension& extension : kExtensions) {
    if (path.ends_with(extension.suffix)) return extension.format;
  }
  fail(Errc::invalid_argument, display(path),
       "no format is known by this name; name one: safetensors, torch-zip, torch-legacy");
}

}  // namespace

void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  const std::string_view format = format_of(path, options);
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
       "{} is no format Ballast writes: safetensors, torch-zip, torch-legacy", quoted(format));
}

}  // namespace ballast
