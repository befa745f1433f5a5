// SPDX-License-Identifier: Apache-2.0
// The row of ONNX models. To write one takes more than weights: onnx::save() of a model.
#include "ballast/format.h"

#include "ballast/io.h"
#include "containers/magic.h"
#include "formats/onnx/onnx.h"

namespace ballast {
namespace {

// There is no magic number: what has one is none.
Likeness recognise_onnx(const FileHead& head) {
  if (head.bytes.empty() || !containers::what_is_it(head.bytes).empty()) return Likeness::none;
  if (onnx_file::is_onnx(head.bytes)) return Likeness::certain;
  return head.name.ends_with(".onnx") ? Likeness::doubtful : Likeness::none;
}

Checkpoint open_onnx(const ByteSource& source, const OpenOptions& options) {
  return onnx_file::open_onnx(source, options.expansion);
}

}  // namespace

constinit const FormatRow formats::onnx = {
    .name = "onnx", .recognise = recognise_onnx, .open = open_onnx, .has_checksums = true};

}  // namespace ballast
