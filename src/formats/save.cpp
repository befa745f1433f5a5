// SPDX-License-Identifier: Apache-2.0
// ballast::save(): the format by name or by the file's extension.
#include "formats/save.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "ballast/display.h"
#include "ballast/io.h"
#include "ballast/record_file.h"
#include "ballast/safetensors.h"
#include "ballast/torch.h"
#include "base/fail.h"
#include "checkpoint/record_metadata.h"
#include "formats/burn/burn.h"
#include "formats/npy/npy.h"

namespace ballast {
namespace {

void save_safetensors(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  safetensors::save(checkpoint, path, {.overwrite = options.overwrite, .progress = options.progress});
}

void save_as_record(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  save_record(checkpoint, path, {.overwrite = options.overwrite, .progress = options.progress});
}

template <bool kLegacy>
void save_torch(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  torch::save(checkpoint, path,
              {.legacy = kLegacy,
               .simplify = options.simplify,
               .overwrite = options.overwrite,
               .progress = options.progress});
}

template <bool kGzip>
void save_mpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  burn::save_mpk(checkpoint, path, options, kGzip);
}

struct Format {
  std::string_view name;
  void (*save)(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);
  bool notes_ties;  // the second names of tied tensors are in its metadata; others hold them like any name
  std::array<std::string_view, 6> extensions;
};

constexpr Format kFormats[] = {
    {"safetensors", save_safetensors, true, {".safetensors"}},
    {"record", save_as_record, true, {".record"}},
    {"torch-zip", save_torch<false>, false, {".pt", ".pth", ".bin", ".ckpt", ".th", ".pth.tar"}},
    {"torch-legacy", save_torch<true>, false, {}},
    {"bpk", burn::save_bpk, false, {".bpk"}},
    {"mpk", save_mpk<false>, false, {".mpk"}},
    {"mpk-gz", save_mpk<true>, false, {".mpk.gz"}},
    {"npz", npy::save_npz, false, {".npz"}},
    {"npy", npy::save_npy, false, {".npy"}},
};

bool has_extension(const Format& format, std::string_view path) {
  return std::any_of(format.extensions.begin(), format.extensions.end(), [&](std::string_view extension) {
    return !extension.empty() && path.ends_with(extension);
  });
}

}  // namespace

std::vector<std::string_view> writable_formats() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

bool has_known_extension(std::string_view path) {
  return std::any_of(std::begin(kFormats), std::end(kFormats),
                     [&](const Format& format) { return has_extension(format, path); });
}

std::string format_for(const std::string& path, const std::string& format) {
  if (!format.empty()) return format;
  for (const Format& known : kFormats) {
    if (has_extension(known, path)) return std::string(known.name);
  }
  if (path.ends_with(".onnx"))
    fail(Errc::unsupported, display(path),
         "an ONNX file holds a computation, which weights alone are not: a C++ model is exported by "
         "ballast::onnx::save()");
  fail(Errc::invalid_argument, display(path), "the extension says no format; say it (format, --to): {}",
       fmt::join(writable_formats(), ", "));
}

void save(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  const std::string name = format_for(path, options.format);
  const Checkpoint bare = record::without_record_metadata(in);
  for (const Format& format : kFormats) {
    if (format.name == name)
      return format.save(format.notes_ties ? bare : record::with_aliases(bare), path, options);
  }
  fail(Errc::invalid_argument, display(path), "{} is no format Ballast writes: {}", quoted(name),
       fmt::join(writable_formats(), ", "));
}

}  // namespace ballast
