// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ballast/error.h"
#include "ballast/io.h"
#include "base/fail.h"
#include "checkpoint/value_json.h"
#include "checkpoint/value_tree.h"
#include "containers/magic.h"
#include "formats/encrypted.h"

namespace ballast {
namespace {

bool is_json(const std::string& path) {
  const auto file = open_content(path, {}).content;
  return containers::is_json_text(
      file->read(0, std::min<std::uint64_t>(file->size(), containers::kMagicBytes)));
}

}  // namespace

Value open_value(const std::string& path, std::string_view dotted) {
  Value root;
  if (is_json(path)) {
    root = read_json(path);
  } else {
    const Checkpoint checkpoint = open(path);
    if (!checkpoint.tree)
      fail(Errc::not_found, display(path), "a file of format {} holds no objects besides its tensors",
           checkpoint.format.name());
    root = *checkpoint.tree;
  }
  return value_at(root, dotted, display(path));
}

}  // namespace ballast
