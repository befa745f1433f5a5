// SPDX-License-Identifier: Apache-2.0
// LoadReport: what a load did, tensor by tensor, as data; text for people and JSON for programs. A load that
// fails throws LoadError, which carries the same report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "ballast/shape.h"
#include "ballast/steps.h"

namespace ballast {

struct LoadReport {
  /// `source` is the key as it is in the file ("a + b" when several make one tensor), `target` the path in
  /// the model.
  struct Item {
    std::string source;
    std::string target;
    std::string detail = {};
  };

  struct Mismatch {
    std::string source;
    std::string target;
    Shape file_shape;  ///< as it stands in the file
    Shape
        model_shape;  ///< what would fit there, in the file's layout: [out, in] of a Linear in a PyTorch file
    std::string reason;
  };

  std::vector<Item> applied;  ///< of a failed load: what would have been
  std::vector<Item> missing;  ///< source: the key that was looked for; detail: what was near
  std::vector<Item> unused;   ///< no target; detail: dtype and shape
  std::vector<Mismatch>
      mismatched;             ///< wrong shape or dtype; variants that no alternative, or more than one, fits
  std::vector<Item> skipped;  ///< kept out by include and exclude; the model's tensors stay as they were
  std::vector<Item> renamed;  ///< target: the key after rules and removed prefixes
  std::vector<Item> adapted;  ///< detail: what was done, "transposed"
  std::vector<Item> reindexed;  ///< detail: the position in the file
  std::vector<Item> cast;  ///< detail: "F32 → F16", how many values were rounded, how many became infinite
  std::uint64_t rounded = 0;      ///< values that casts changed, of all tensors
  std::uint64_t overflowed = 0;   ///< finite values that are finite no more
  std::vector<Item> initialized;  ///< missing, and filled as OnMissing::init asks
  std::vector<std::string> notes;
  std::vector<RenameRule>
      suggestions;      ///< rules that would give missing tensors a source, to be looked at and pasted
  std::string file;     ///< where the checkpoint came from
  bool failed = false;  ///< nothing was loaded; the model is as it was
  std::string
      debug_keys;  ///< with LoadOptions::debug, what debug_keys() says of the file; not part of text()

  /// Nothing missing, nothing mismatched.
  [[nodiscard]] bool complete() const noexcept { return missing.empty() && mismatched.empty(); }

  /// Several lines; lists longer than `most` are cut with a count of the rest.
  [[nodiscard]] std::string text(std::size_t most = 10) const;
  /// {"schema":1,"failed":false,"applied":[{"source","target","detail"}…],…}
  [[nodiscard]] std::string to_json() const;
};

std::ostream& operator<<(std::ostream& out, const LoadReport& report);

class LoadError : public Error {
 public:
  explicit LoadError(LoadReport report);

  [[nodiscard]] const LoadReport& report() const noexcept { return *report_; }

 private:
  std::shared_ptr<const LoadReport> report_;  // exceptions are copied
};

}  // namespace ballast
