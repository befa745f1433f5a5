// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ballast/config.h"
#include "ballast/convert.h"
#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "import/receipt.h"
#include "import/saving.h"

namespace ballast {
namespace {

class Merge {
 public:
  Merge(const std::vector<std::string>& in, const std::string& out, const MergeOptions& options)
      : in_(in), out_(out), options_(options), format_(format_for(out, options.format)) {}

  Merged run() {
    require_sense();
    read();
    lay_out();
    note_ties();
    SaveOptions how = saving_of(options_);
    how.format = options_.format;
    save(done_.checkpoint, out_, how);
    if (!options_.receipt.empty())
      save_config(make_receipt("merge", std::move(input_), steps(), out_, options_.passphrase_file),
                  options_.receipt, {.overwrite = options_.overwrite});
    return std::move(done_);
  }

 private:
  void require_sense() const {
    if (in_.empty()) fail(Errc::invalid_argument, display(out_), "is to be made of nothing: name a file");
    std::vector<std::string> outputs = {out_};
    if (!options_.receipt.empty()) outputs.push_back(options_.receipt);
    require_apart(in_, outputs);
    require_receipt(options_.receipt, options_.overwrite, options_.recipients);
  }

  void read() {
    std::vector<Checkpoint> parts;
    for (const std::string& path : in_) {
      const Checkpoint opened = open(path, {.io = options_.io,
                                            .inert = options_.inert,
                                            .expansion = options_.expansion,
                                            .formats = options_.formats});
      done_.notes.insert(done_.notes.end(), opened.notes.begin(), opened.notes.end());
      parts.push_back(state_dict(opened));
      if (options_.receipt.empty()) continue;
      names_.push_back(base_name(opened.path));
      for (Receipt::File& file : hashed_files(opened)) input_.files.push_back(std::move(file));
    }
    if (!options_.receipt.empty()) describe(parts);
    for (Checkpoint& part : parts) {
      if (format_->holds_metadata || !is_quantized(part)) continue;
      done_.notes.push_back(fmt::format(
          "{}: quantized tensors become numbers, as the output has no place for scales", display(part.path)));
      part = dequantize(part);
    }
    done_.checkpoint = joined(parts);
  }

  Checkpoint state_dict(const Checkpoint& opened) {
    if (options_.root) {
      done_.roots.push_back(*options_.root);
      return root(opened, *options_.root);
    }
    FoundRoot found = find_root(opened);
    done_.roots.push_back(std::move(found.path));
    return std::move(found.checkpoint);
  }

  static Checkpoint joined(const std::vector<Checkpoint>& parts) {
    return parts.size() == 1 ? parts.front() : merge(parts);
  }

  // What was read, as check_receipt() looks at it: every tensor as the numbers it stands for.
  void describe(const std::vector<Checkpoint>& parts) {
    Manifest manifest = hash(dequantize(joined(parts)));
    input_.format = parts.front().format.name();
    input_.root = std::move(manifest.root);
    input_.tensors = std::move(manifest.tensors);
  }

  // As convert: files of Burn's are for Burn, and get its layout.
  void lay_out() {
    const Adapter usual = usual_adapter(format_);
    if (usual == Adapter::pytorch) return;
    Adapted adapted = adapt(done_.checkpoint, {.to = usual});
    done_.notes.insert(done_.notes.end(), adapted.notes.begin(), adapted.notes.end());
    done_.checkpoint = std::move(adapted.checkpoint);
  }

  void note_ties() {
    const std::size_t tied = format_->holds_ties ? 0 : ties(done_.checkpoint).size();
    if (tied > 0)
      done_.notes.push_back(fmt::format("{} has no ties: {} written again", format_.name(),
                                        tied == 1 ? "1 tensor is" : fmt::format("{} tensors are", tied)));
  }

  [[nodiscard]] Receipt::Steps steps() const {
    Receipt::Steps steps;
    steps.root = options_.root.value_or("");
    if (options_.root && options_.root->empty()) steps.whole = true;
    if (!options_.check) steps.unchecked = true;
    if (options_.format) steps.format = std::string(options_.format.name());
    if (options_.pack != Pack::none) steps.pack = name(options_.pack);
    if (!options_.recipients.empty()) steps.recipients = options_.recipients;
    if (!options_.passphrase_file.empty()) steps.passphrase = true;
    steps.inputs = names_;
    return steps;
  }

  const std::vector<std::string>& in_;
  const std::string& out_;
  const MergeOptions& options_;
  const Format format_;
  Merged done_;
  Receipt::Side input_;             // for the receipt
  std::vector<std::string> names_;  // of the inputs, for the receipt
};

}  // namespace

Merged merge_files(const std::vector<std::string>& in, const std::string& out, const MergeOptions& options) {
  return Merge(in, out, options).run();
}

}  // namespace ballast
