// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx/external.h"

#include <algorithm>

#include "ballast/error.h"
#include "ballast/shape.h"
#include "base/checked.h"
#include "base/file.h"
#include "containers/confine.h"
#include "containers/expansion.h"

namespace ballast::onnx_file {
namespace {

constexpr std::size_t kMaxFiles = 10'000;

void check_location(const std::string& location, const std::string& where) {
  bool leaves = location.empty() || location.front() == '/' ||
                location.find_first_of(std::string_view("\\\0", 2)) != std::string::npos;
  for (std::size_t at = 0; at < location.size() && !leaves;) {
    const std::size_t end = std::min(location.find('/', at), location.size());
    leaves = std::string_view(location).substr(at, end - at) == "..";
    at = end + 1;
  }
  if (leaves)
    fail(Errc::path_escape, where, "data at {}: it must lie in the model's folder, under a relative path",
         quoted(location));
}

}  // namespace

std::string locate(const std::string& model, const std::string& location) {
  check_location(location, display(model));
  return containers::confined(containers::folder_of(model), location);
}

ExternalFiles::Opened& ExternalFiles::open(const TensorDescription& tensor) {
  const std::string where = source_.where() + ": tensor " + quoted(tensor.name);
  const std::string& location = tensor.external.location;
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  const File* model = file_of(source_);
  if (model == nullptr)
    fail(Errc::unsupported, where, "is in the file {}, and this model is not in a folder", quoted(location));
  if (files_.size() == kMaxFiles)
    fail(Errc::too_many, where, "more than {} files with external data", kMaxFiles);
  const std::string path = locate(model->path(), location);
  if (path.empty())
    fail(Errc::missing_storage, where, "its data should be in {}, which is not there", quoted(location));
  const auto sharing = model->is_writable() ? Sharing::copy_on_write : Sharing::read_only;
  Opened opened;
  opened.file = File::open(path, {.sharing = sharing, .io = model->io(), .follow_links = false});
  opened.file->settle();
  opened.digest = std::make_shared<FileDigest>(path);
  return files_.emplace(location, std::move(opened)).first->second;
}

std::shared_ptr<const Storage> ExternalFiles::storage(const TensorDescription& tensor) {
  Opened& opened = open(tensor);
  const ExternalPlace& place = tensor.external;
  const std::string where = source_.where() + ": tensor " + quoted(tensor.name);
  if (place.length.value_or(tensor.bytes) != tensor.bytes) {
    fail(Errc::size_mismatch, where, "{} {} needs {} bytes, external_data says {}",
         info(*tensor.type->dtype).code, to_string(ShapeView(tensor.shape)), tensor.bytes, *place.length);
  }
  if (!fits(place.offset, tensor.bytes, opened.file->size())) {
    fail(Errc::offset_out_of_range, where, "{} bytes at offset {} of {}, which has {} bytes (cut short?)",
         tensor.bytes, place.offset, quoted(place.location), opened.file->size());
  }
  shown_ = checked_add(shown_, tensor.bytes, where);
  const std::uint64_t item = std::max<std::uint64_t>(info(*tensor.type->dtype).bits / 8, 1);
  if (tensor.bytes == 0) return range_of(*opened.file, 0, 0);
  const Span span{place.offset, place.offset + tensor.bytes, item};
  auto& [bytes, name] = opened.spans[span];
  if (!bytes) {
    bytes = elements_of(*opened.file, span.begin, span.end - span.begin, span.item);
    name = tensor.name;
    // What a program may change in place has no checksum any more.
    if (!place.checksum.empty() && !source_.is_writable())
      bytes = proven(std::move(bytes), opened.digest, where, place);
  }
  return bytes;
}

// Spans are sorted. The same bytes for two tensors are a tied weight; a part of another's is a trick, or a
// mistake.
void ExternalFiles::check_overlaps(double expansion) {
  std::uint64_t held = 0;
  for (const auto& [location, opened] : files_) held += opened.file->size();
  containers::require_shown(shown_, held, expansion, source_.where());
  for (const auto& [location, opened] : files_) {
    const std::pair<const Span, std::pair<std::shared_ptr<const Storage>, std::string>>* last = nullptr;
    for (const auto& span : opened.spans) {
      const bool is_same =
          last != nullptr && last->first.begin == span.first.begin && last->first.end == span.first.end;
      if (last != nullptr && span.first.begin < last->first.end && !is_same) {
        fail(Errc::overlap, source_.where(), "tensors {} and {} lie on the same bytes of {}",
             quoted(last->second.second), quoted(span.second.second), quoted(location));
      }
      last = &span;
    }
  }
}

}  // namespace ballast::onnx_file
