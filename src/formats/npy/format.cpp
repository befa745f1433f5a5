// SPDX-License-Identifier: Apache-2.0
// The rows of NumPy's formats.
#include "ballast/format.h"

#include "formats/npy/npy.h"

namespace ballast {
namespace {

Likeness recognise_npy(const FileHead& head) {
  return npy::is_npy(head.bytes) ? Likeness::certain : Likeness::none;
}

Likeness recognise_npz(const FileHead& head) {
  return npy::is_npz(head.bytes) ? Likeness::certain : Likeness::none;
}

Checkpoint open_npy(const ByteSource& source, const OpenOptions&) {
  return npy::open_npy(source);
}

Checkpoint open_npz(const ByteSource& source, const OpenOptions&) {
  return npy::open_npz(source);
}

bool is_in_numpy(DType dtype) {
  return !info(dtype).numpy.empty();
}

}  // namespace

constinit const FormatRow formats::npy = {.name = "npy",
                                          .extensions = {".npy"},
                                          .recognise = recognise_npy,
                                          .open = open_npy,
                                          .save = npy::save_npy,
                                          .holds = is_in_numpy};

constinit const FormatRow formats::npz = {.name = "npz",
                                          .extensions = {".npz"},
                                          .recognise = recognise_npz,
                                          .open = open_npz,
                                          .save = npy::save_npz,
                                          .holds = is_in_numpy,
                                          .has_checksums = true};

}  // namespace ballast
