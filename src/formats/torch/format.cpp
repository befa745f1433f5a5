// SPDX-License-Identifier: Apache-2.0
// The rows of PyTorch's formats. One reader opens them all and finds out which it is; what nothing else
// recognises is left to it, because it says best what a file is not.
#include "ballast/format.h"

#include "ballast/torch.h"
#include "checkpoint/layout.h"
#include "containers/magic.h"
#include "formats/torch/pickle.h"
#include "formats/torch/reader.h"

namespace ballast {
namespace {

Likeness recognise_torch(const FileHead& head) {
  const bool is_archive = containers::is_zip(head.bytes) || containers::is_tar(head.bytes);
  return is_archive || torch::may_be_pickle(head.bytes) ? Likeness::likely : Likeness::last_resort;
}

template <bool kLegacy>
void save_torch(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options) {
  SaveOptions how{.format = kLegacy ? formats::torch_legacy : formats::torch_zip,
                  .plain_dict = options.plain_dict,
                  .simplify = options.simplify,
                  .extent = options.extent,
                  .overwrite = options.overwrite,
                  .progress = options.progress};
  const std::string whose = layout::of(checkpoint);
  if (whose != formats::torch_zip.layout) how.metadata = layout::in_tree(whose);
  torch::save(checkpoint, path, how);
}

// Quantized tensors are in trees alone, with their scales.
bool is_in_zip(DType dtype) {
  return !info(dtype).torch_name.empty() && info(dtype).kind != DTypeKind::quantized;
}

bool is_in_legacy(DType dtype) {
  return is_in_zip(dtype) && info(dtype).torch_storage;
}

}  // namespace

constinit const FormatRow formats::torch_zip = {
    .name = "torch-zip",
    .extensions = {".pt", ".pth", ".bin", ".ckpt", ".th", ".pth.tar"},
    .recognise = recognise_torch,
    .open = torch::open,
    .save = save_torch<false>,
    .holds = is_in_zip,
    .holds_layout = true,
    .holds_ties = true,
    .holds_tree = true,
    .holds_strides = true,
    .has_checksums = true};

constinit const FormatRow formats::torch_legacy = {.name = "torch-legacy",
                                                   .open = torch::open,
                                                   .save = save_torch<true>,
                                                   .holds = is_in_legacy,
                                                   .holds_layout = true,
                                                   .holds_ties = true,
                                                   .holds_tree = true,
                                                   .holds_strides = true};

constinit const FormatRow formats::torch_tar = {
    .name = "torch-tar", .open = torch::open, .holds_ties = true, .holds_tree = true, .holds_strides = true};

constinit const FormatRow formats::torchscript = {.name = "torchscript",
                                                  .open = torch::open,
                                                  .holds_ties = true,
                                                  .holds_tree = true,
                                                  .holds_strides = true,
                                                  .is_program = true,
                                                  .has_checksums = true};

constinit const FormatRow formats::pickle = {
    .name = "pickle", .open = torch::open, .holds_ties = true, .holds_tree = true, .holds_strides = true};

}  // namespace ballast
