// SPDX-License-Identifier: Apache-2.0
// ballast::save(): the format by name or by the file's extension.
#include "formats/save.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "ballast/display.h"
#include "ballast/io.h"
#include "ballast/quantized.h"
#include "ballast/record_file.h"
#include "ballast/safetensors.h"
#include "ballast/torch.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "checkpoint/marks.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/require_sound.h"
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
  torch::SaveOptions how{.legacy = kLegacy,
                         .simplify = options.simplify,
                         .overwrite = options.overwrite,
                         .progress = options.progress};
  const std::string layout = record::layout_of(checkpoint);
  if (layout != record::usual_layout("torch-zip")) how.metadata = record::layout_in_tree(layout);
  torch::save(checkpoint, path, how);
}

template <bool kGzip>
void save_mpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  burn::save_mpk(checkpoint, path, options, kGzip);
}

struct Format {
  std::string_view name;
  void (*save)(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options);
  bool says_meanings;  // in its metadata: what is tied, and so there once, and what is quantized
  bool says_layout;    // whose names and layouts the tensors have
  std::array<std::string_view, 6> extensions;
};

constexpr Format kFormats[] = {
    {"safetensors", save_safetensors, true, true, {".safetensors"}},
    {"record", save_as_record, true, true, {".record"}},
    {"torch-zip", save_torch<false>, false, true, {".pt", ".pth", ".bin", ".ckpt", ".th", ".pth.tar"}},
    {"torch-legacy", save_torch<true>, false, true, {}},
    {"bpk", burn::save_bpk, false, true, {".bpk"}},
    {"mpk", save_mpk<false>, false, true, {".mpk"}},
    {"mpk-gz", save_mpk<true>, false, true, {".mpk.gz"}},
    {"npz", npy::save_npz, false, false, {".npz"}},
    {"npy", npy::save_npy, false, false, {".npy"}},
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

namespace {

// What the format has no words for is refused rather than lost.
Checkpoint representable(const Checkpoint& in, const Format& format, const std::string& where) {
  static_cast<void>(dequantize(in));  // what is said to be quantized must be there, with its scales
  if (format.name == "record") {
    Checkpoint out = in;
    record::forget_checksums(out);
    return marks::without_ties(std::move(out));
  }
  Checkpoint bare = record::without_record_metadata(in);
  if (format.says_meanings) return marks::without_ties(std::move(bare));
  if (is_quantized(bare))
    fail(Errc::not_representable, where,
         "{} has no place to say what is quantized; dequantize first, or write safetensors or record",
         format.name);
  if (record::layout_of(bare) == "native" && !format.says_layout)
    fail(Errc::not_representable, where,
         "{} has no place to say that the tensors have Ballast's own layout, and readers would take it for "
         "PyTorch's; "
         "write safetensors or record, or load the model and save that",
         format.name);
  return marks::with_ties(std::move(bare));
}

}  // namespace

void save(const Checkpoint& in, const std::string& path, const SaveOptions& options) {
  const std::string name = format_for(path, options.format);
  for (const Format& format : kFormats) {
    if (format.name != name) continue;
    const Checkpoint out = representable(in, format, display(path));
    if (options.check) require_sound(out);
    sweep_temporaries(path);
    return format.save(out, path, options);
  }
  fail(Errc::invalid_argument, display(path), "{} is no format Ballast writes: {}", quoted(name),
       fmt::join(writable_formats(), ", "));
}

}  // namespace ballast
