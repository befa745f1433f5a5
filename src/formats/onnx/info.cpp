// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "ballast/error.h"
#include "ballast/onnx_file.h"
#include "base/fail.h"
#include "containers/magic.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/onnx/external.h"
#include "formats/onnx/model.h"

namespace ballast::onnx_file {

Info read_info(const std::string& path) {
  const auto file = open_content(path, {.io = Io::read}).content;
  if (format_of(*file) != formats::onnx) {
    const auto head = file->read(0, std::min<std::uint64_t>(file->size(), containers::kMagicBytes));
    const std::string_view likely = containers::what_is_it(head);
    fail(Errc::unknown_format, display(path), "is no ONNX model{}{}", likely.empty() ? "" : " but ", likely);
  }
  const TensorSink sink{.tensor = [](const TensorDescription&, Origin) {},
                        .sparse = [](const SparseDescription&, Origin) {}};
  Info info = read_model(*file, sink);
  for (ExternalFile& external : info.external_files) {
    const std::string found = locate(path, external.location);
    std::error_code error;
    const std::uintmax_t size = found.empty() ? 0 : std::filesystem::file_size(found, error);
    if (!found.empty() && !error) external.file_bytes = size;
  }
  return info;
}

}  // namespace ballast::onnx_file
