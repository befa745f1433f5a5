// SPDX-License-Identifier: Apache-2.0
// ONNX models as checkpoints: their initializers and constants. docs/formats/onnx.md has the rules.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ballast/checkpoint.h"
#include "ballast/scan.h"
#include "tensor/source_storage.h"

namespace ballast::onnx_file {

/// ONNX has no magic number: the first fields of a model, with nothing in them that a model would not have.
/// Never true for a file of another format Ballast reads.
[[nodiscard]] bool is_onnx(std::span<const std::byte> head) noexcept;

/// Why a program that knows other messages of protobuf may read the model as one of those, in a sentence;
/// empty when it is ONNX's alone.
[[nodiscard]] std::string as_another_message(const ByteSource& source);

[[nodiscard]] Checkpoint open_onnx(const ByteSource& source, double expansion);

/// Compares the SHA-1 of every external file that has one in the model: Errc::bad_crc.
[[nodiscard]] Checksums check_external(const ByteSource& source);

}  // namespace ballast::onnx_file
