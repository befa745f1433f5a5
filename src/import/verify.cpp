// SPDX-License-Identifier: Apache-2.0
#include "ballast/verify.h"

#include <fmt/format.h>

#include <utility>

#include "ballast/convert.h"
#include "ballast/detail/record_file.h"
#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/scan.h"
#include "ballast/stats.h"
#include "ballast/steps.h"
#include "base/enum_names.h"
#include "base/fail.h"
#include "base/largest_first.h"
#include "checkpoint/steps.h"
#include "proof/first_value.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

class Verification {
 public:
  Verification(const std::string& path, const VerifyOptions& options) : path_(path), options_(options) {}

  VerifyReport run() {
    file_ = open(path_, {.io = options_.io,
                         .inert = options_.inert,
                         .expansion = options_.expansion,
                         .formats = options_.formats});
    Steps steps = steps_of(options_);
    steps.quantized = OnQuantized::keep;
    if (!steps.root) steps.root = "";
    Checkpoint whole = file_.format == formats::record ? file_ : std::exchange(file_, without_names(file_));
    Stepped stepped = apply_steps(std::move(whole), steps);
    stepped.taken = {};  // names may be very many
    checkpoint_ = std::move(stepped.checkpoint);
    report_.format = file_.format;
    report_.notes = checkpoint_.notes;
    if (file_.format == formats::record) file_ = looked_at_in_file(stepped.origins);
    collect_tensors();
    note_alignment();
    compare_checksums();
    if (file_.format == formats::record) compare_record();
    compare_packed();
    if (!options_.receipt.empty()) compare_receipt();
    judge_values();
    return std::move(report_);
  }

 private:
  void collect_tensors() {
    std::uint64_t without_data = 0;
    for (const Entry entry : checkpoint_) {
      Tensor tensor = entry.tensor();
      if (!tensor.has_data()) {
        ++without_data;
        continue;
      }
      report_.bytes += entry.bytes;
      names_.push_back(entry.name);
      tensors_.push_back(std::move(tensor));
    }
    report_.tensors = tensors_.size();
    if (without_data > 0) {
      report_.notes.push_back(
          fmt::format("{} without data (shape only)",
                      without_data == 1 ? "1 tensor" : fmt::format("{} tensors", without_data)));
    }
  }

  // Data that begins at an odd place costs a copy wherever it is used; the file is still sound.
  void note_alignment() {
    std::uint64_t misaligned = 0;
    std::string first;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto span = tensors_[i].storage()->source_span();
      const std::uint64_t size = info(tensors_[i].dtype()).bits / 8;
      if (!span || size < 2 || tensors_[i].numel() == 0 ||
          (span->offset + tensors_[i].bit_offset() / 8) % size == 0)
        continue;
      if (misaligned++ == 0) first = quoted(names_[i]);
    }
    if (misaligned == 0) return;
    report_.notes.push_back(fmt::format(
        "{} not aligned to the element size in the file ({}{}): fine, but not usable without a copy",
        misaligned == 1 ? "1 tensor is" : fmt::format("{} tensors are", misaligned), first,
        misaligned == 1 ? "" : ", …"));
  }

  // Zip archives hold checksums, and ONNX models those of their external data; opening compares at most a
  // pickle's.
  void compare_checksums() {
    if (!file_.format->has_checksums) return;
    try {
      const Checksums sums = check_integrity(file_.path);
      // Models hardly ever have any: not worth a word.
      if (sums.without > 0 && (file_.format != formats::onnx || sums.checked > 0))
        report_.notes.push_back(
            fmt::format("the file holds no checksum for {} bytes of its data", sums.without));
    } catch (const Error& error) {
      if (error.code() != Errc::bad_crc) throw;
      add_for_file(Fault::checksum, error.what());
    }
  }

  // A record says what every tensor's bytes were.
  void compare_record() {
    for (const RecordFault& fault : check_record(file_, options_.progress)) {
      VerifyFinding finding{.kind = Fault::checksum, .name = fault.name};
      if (const auto at = file_.position(fault.name)) {
        const Entry entry = file_[*at];
        finding.dtype = entry.dtype;
        finding.shape = entry.shape;
      }
      finding.detail = fault.has_checksum
                           ? fmt::format("XXH3 is {}, the record says {}", fault.found, fault.expected)
                           : "the record has no checksum for it";
      report_.findings.push_back(std::move(finding));
    }
  }

  // A packed tensor has a checksum of what it unpacks to.
  void compare_packed() {
    std::vector<std::uint64_t> sizes;
    for (const Tensor& tensor : tensors_)
      sizes.push_back(tensor.storage()->packed_size() ? tensor.size_bytes() : 0);
    std::vector<std::string> problems(tensors_.size());
    largest_first(sizes, [&](std::size_t i) {
      if (sizes[i] == 0) return;
      try {
        check_sound(tensors_[i], names_[i]);
      } catch (const Error& error) {
        if (error.code() != Errc::bad_crc) throw;
        problems[i] = error.what();
      }
    });
    for (std::size_t i = 0; i < problems.size(); ++i) {
      if (problems[i].empty()) continue;
      add_for_tensor(Fault::checksum, i, 0, 0);
      report_.findings.back().detail = std::move(problems[i]);
    }
  }

  // As they are in the file, before the steps; all of them where an origin is no name of the file.
  [[nodiscard]] Checkpoint looked_at_in_file(const std::vector<std::string>& origins) const {
    Checkpoint some = without_tensors(file_);
    for (const std::string& origin : origins) {
      const auto at = file_.position(origin);
      if (!at) return file_;
      if (!some.contains(origin)) some.add(origin, file_[*at].tensor());
    }
    return some;
  }

  // What is asked of a file that is no record.
  static Checkpoint without_names(const Checkpoint& file) {
    Checkpoint bare;
    bare.format = file.format;
    bare.path = file.path;
    return bare;
  }

  void compare_receipt() {
    const Receipt receipt = read_receipt(options_.receipt);
    const ReceiptCheck check = options_.tensors_only
                                   ? check_receipt_tensors(path_, receipt, options_.progress)
                                   : check_receipt(path_, receipt, options_.progress);
    for (const std::string& problem : check.problems) add_for_file(Fault::receipt, problem);
    receipt_holds_ = check.problems.empty();
    if (!receipt_holds_) return;
    const std::string_view side = check.is_input ? "read" : "wrote";
    report_.notes.push_back(
        options_.tensors_only
            ? fmt::format("it has the tensors that the receipt's {} {}; its own bytes were not compared",
                          work_of(receipt), side)
            : fmt::format("it is what the receipt's {} {}, bit for bit", work_of(receipt), side));
  }

  static std::string work_of(const Receipt& receipt) {
    return receipt.command ? display(*receipt.command) : "conversion";
  }

  void judge_values() {
    const std::vector<TensorStats> all = stats(tensors_, options_.progress);
    std::vector<std::size_t> zero;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const TensorStats& found = all[i];
      if (found.nan > 0) add_for_tensor(Fault::nan, i, found.nan, found.count, first_nan(tensors_[i]));
      if (found.inf > 0) add_for_tensor(Fault::inf, i, found.inf, found.count, first_inf(tensors_[i]));
      if (found.all_zero() && found.count > 1 && !options_.allow_zeros) zero.push_back(i);
      if (!zero.empty() && zero.back() == i && !receipt_holds_)
        add_for_tensor(Fault::zero, i, found.zeros, found.count);
      if (options_.max_abs > 0 && found.absmax() > options_.max_abs) {
        add_for_tensor(Fault::large, i, 1, found.count);
        report_.findings.back().detail = fmt::format("largest magnitude {:.6g}", found.absmax());
      }
    }
    if (receipt_holds_ && !zero.empty()) note_zeros(zero);
  }

  // The receipt claims that the conversion wrote these very values, and it did.
  void note_zeros(const std::vector<std::size_t>& tensors) {
    report_.notes.push_back(
        fmt::format("{} all zero ({}{}), as the receipt says",
                    tensors.size() == 1 ? "1 tensor is" : fmt::format("{} tensors are", tensors.size()),
                    quoted(names_[tensors.front()]), tensors.size() == 1 ? "" : ", …"));
  }

  void add_for_file(Fault kind, std::string detail) {
    report_.findings.push_back({.kind = kind, .detail = std::move(detail)});
  }

  void add_for_tensor(Fault kind, std::size_t tensor, std::uint64_t count, std::uint64_t of,
                      std::optional<std::uint64_t> first = {}) {
    report_.findings.push_back({.kind = kind,
                                .name = std::string(names_[tensor]),
                                .dtype = tensors_[tensor].dtype(),
                                .shape = tensors_[tensor].shape(),
                                .count = count,
                                .of = of,
                                .first = first,
                                .detail = fmt::format("{} of {} values", count, of)});
  }

  const std::string& path_;
  const VerifyOptions& options_;
  Checkpoint file_;              // as far as it is asked for
  Checkpoint checkpoint_;        // what the steps leave, which is looked at
  std::vector<Tensor> tensors_;  // that have data, with their names
  std::vector<std::string_view> names_;
  VerifyReport report_;
  bool receipt_holds_ = false;  // one was asked for, and everything is as it says
};

}  // namespace

std::string_view name(Fault fault) noexcept {
  static constexpr std::string_view kNames[] = {"nan", "inf", "zero", "large", "checksum", "receipt"};
  return name_in<Fault::receipt>(kNames, fault);
}

VerifyReport verify(const std::string& path, const VerifyOptions& options) {
  if (options.tensors_only && options.receipt.empty())
    fail(Errc::invalid_argument, "tensors_only", "is about a receipt, and none is given");
  return Verification(path, options).run();
}

}  // namespace ballast
