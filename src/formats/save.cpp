// SPDX-License-Identifier: Apache-2.0
// ballast::save(): the format by name or by the file's extension.
#include <array>

#include "ballast/display.h"
#include "ballast/io.h"
#include "ballast/record_file.h"
#include "ballast/torch.h"
#include "base/fail.h"
#include "checkpoint/record_metadata.h"
#include "formats/burn/burn.h"
#include "formats/npy/npy.h"

namespace ballast {
namespace {

struct Extension {
  std::string_view suffix;
  std::string_view format;
};

constexpr std::array<Extension, 13> kExtensions = {{
    {".safetensors", "safetensors"},
    {".record", "record"},
    {".pt", "torch-zip"},
    {".pth", "torch-zip"},
    {".bin", "torch-zip"},
    {".ckpt", "torch-zip"},
    {".th", "torch-zip"},
    {".pth.tar", "torch-zip"},
    {".bpk", "bpk"},
    {".mpk", "mpk"},
    {".mpk.gz", "mpk-gz"},
    {".npz", "npz"},
    {".npy", "npy"},
}};

constexpr std::string_view kFormats =
    "safetensors, record, torch-zip, torch-legacy, bpk, mpk, mpk-gz, npz, npy";

}  // namespace

std::string format_for(const std::string& path, const std::string& format) {
  if (!format.empty()) return format;
  for (const Extension& extension : kExtensions) {
    if (path.ends_with(extension.suffix)) return std::string(extension.format);
  }
  if (path.ends_with(".onnx"))
    fail(Errc::unsupported, display(path),
         "an ONNX file holds a computation, which weights alone are not: a C++ model is exported by "
         "ballast::onnx::save()");
  fail(Errc::invalid_argument, display(path), "the extension says no format; say it (format, --to): {}",
       kFormats);
}

void save(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  const std::string format = format_for(path, options.format);
  // Safetensors files note the second names of tied tensors in their metadata; others hold them like any
  // name.
  const bool notes_ties = format == "safetensors" || format == "record";
  const Checkpoint bare = record::without_record_metadata(in);
  const Checkpoint checkpoint = notes_ties ? bare : record::with_aliases(bare);
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
  if (format == "bpk") return burn::save_bpk(checkpoint, path, options);
  if (format == "mpk" || format == "mpk-gz")
    return burn::save_mpk(checkpoint, path, options, format == "mpk-gz");
  if (format == "npz") return npy::save_npz(checkpoint, path, options);
  if (format == "npy") return npy::save_npy(checkpoint, path, options);
  fail(Errc::invalid_argument, display(path), "{} is no format Ballast writes: {}", quoted(format), kFormats);
}

}  // namespace ballast
