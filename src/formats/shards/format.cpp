// SPDX-License-Identifier: Apache-2.0
// The row of checkpoints in several files, of which the index is opened. save_shards() writes them.
#include "ballast/format.h"

#include "base/fail.h"
#include "base/file.h"
#include "containers/magic.h"
#include "formats/shards/shards.h"

namespace ballast {
namespace {

// Text that begins with a brace. The eight bytes of a Safetensors file's length never look like that: it
// would be far beyond the format's limit.
Likeness recognise_index(const FileHead& head) {
  const bool is_object =
      containers::is_json_text(head.bytes) && head.text().find('{') < head.text().find('[');
  return is_object && !head.name.ends_with(".safetensors") ? Likeness::certain : Likeness::none;
}

Checkpoint open_index(const ByteSource& source, const OpenOptions& options) {
  if (file_of(source) == nullptr)
    fail(Errc::unsupported, source.where(), "is JSON text: a list of shards must be a file in their folder");
  return shards::open_index(source.name(), source, options);
}

}  // namespace

constinit const FormatRow formats::sharded = {
    .name = "sharded", .recognise = recognise_index, .open = open_index, .holds_layout = true};

}  // namespace ballast
