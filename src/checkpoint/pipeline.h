// SPDX-License-Identifier: Apache-2.0
// The steps between opening and using, one after another, with the origin of every tensor: what load() and
// apply_steps() are made of.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/steps.h"

namespace ballast {

class Pipeline {
 public:
  /// Second names that `in` has in its metadata are tensors from here on.
  explicit Pipeline(const Checkpoint& in);

  Checkpoint checkpoint;
  std::vector<std::string> origins;    ///< for each tensor the key or keys ("a + b") it comes from
  std::vector<std::string> unmatched;  ///< patterns that matched nothing; the checkpoint's notes say so, too

  void change(const std::vector<RenameRule>& rename, const std::vector<rules::Rule>& rules,
              const std::shared_ptr<CastCount>& count = {});
  /// What was removed from all keys ("module."), or nothing.
  std::string strip_prefixes();
  void rename_each(const std::function<std::string(std::string_view)>& new_name);
  /// Which tensors pass; none is removed.
  [[nodiscard]] std::vector<bool> passing(const std::vector<std::string>& include,
                                          const std::vector<std::string>& exclude);
  /// Errc::not_found when none is left.
  void filter(const std::vector<std::string>& include, const std::vector<std::string>& exclude);
  void reindex(const std::vector<std::string>& prefixes, const std::vector<std::string>& keep);
  /// Returns how many tensors have another dtype now.
  std::uint64_t cast(const Steps& steps, const std::shared_ptr<CastCount>& count);

 private:
  void note_unmatched(std::string_view step, const std::vector<std::string>& patterns);
  [[nodiscard]] std::vector<std::string_view> names() const;
};

}  // namespace ballast
