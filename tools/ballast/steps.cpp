// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/root.h"
#include "ballast/stats.h"
#include "ballast/steps.h"

namespace tool {
namespace {

using ballast::Errc;
using ballast::Error;

// Casts when it is read and counts what turned from finite to not finite on the way.
class CountingCast final : public ballast::Storage {
 public:
  CountingCast(ballast::Tensor source, ballast::DType dtype,
               std::shared_ptr<std::atomic<std::uint64_t>> overflowed)
      : Storage(ballast::Tensor(dtype, source.shape()).size_bytes()),
        source_(std::move(source)),
        dtype_(dtype),
        overflowed_(std::move(overflowed)),
        whole_(Storage::deferred(size(), [this](std::span<std::byte> out) { read(0, out); })) {}

  [[nodiscard]] const std::byte* data() const override { return whole_->data(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    const std::uint64_t to_bits = ballast::info(dtype_).bits;
    const std::uint64_t from_bits = ballast::info(source_.dtype()).bits;
    const auto all = static_cast<std::uint64_t>(source_.numel());
    // Sub-byte elements are taken in groups of eight, which begin and end on whole bytes.
    const std::uint64_t unit = to_bits % 8 == 0 && from_bits % 8 == 0 ? 1 : 8;
    while (!out.empty()) {
      const std::uint64_t first = offset * 8 / to_bits / unit * unit;
      const std::uint64_t last = ((offset + out.size()) * 8 + to_bits - 1) / to_bits;
      const std::uint64_t count = std::min({all - first, kAtOnce, (last - first + unit - 1) / unit * unit});
      std::vector<std::byte> block(static_cast<std::size_t>((count * from_bits + 7) / 8));
      source_.read(first * from_bits / 8, block);
      const ballast::Tensor cast = convert(block, count);
      const std::span converted(cast.data(), static_cast<std::size_t>(cast.size_bytes()));
      const auto skip = static_cast<std::size_t>(offset - first * to_bits / 8);
      const std::size_t take = std::min(out.size(), converted.size() - skip);
      std::copy_n(converted.data() + skip, take, out.data());
      out = out.subspan(take);
      offset += take;
    }
  }

 private:
  static constexpr std::uint64_t kAtOnce = 1U << 18U;

  [[nodiscard]] ballast::Tensor convert(std::span<const std::byte> block, std::uint64_t count) const {
    const auto borrowed = Storage::borrow(static_cast<const void*>(block.data()), block.size());
    const auto piece =
        ballast::Tensor::contiguous_view(source_.dtype(), {static_cast<std::int64_t>(count)}, borrowed);
    const ballast::Tensor cast = piece.to(dtype_);
    const std::uint64_t before = ballast::count_not_finite(piece);
    overflowed_->fetch_add(ballast::count_not_finite(cast) - before);
    return cast;
  }

  ballast::Tensor source_;
  ballast::DType dtype_;
  std::shared_ptr<std::atomic<std::uint64_t>> overflowed_;
  std::shared_ptr<const Storage> whole_;
};

std::vector<ballast::RenameRule> parse_rules(const std::vector<std::string>& texts) {
  std::vector<ballast::RenameRule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Errc::invalid_argument, "--rename",
                  fmt::format("{} is not PATTERN=REPLACEMENT", ballast::quoted(text)));
    }
    rules.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return rules;
}

ballast::Checkpoint take_root(ballast::Checkpoint checkpoint, const Steps& steps, StepsReport& report) {
  if (steps.root) return steps.root->empty() ? checkpoint : ballast::root(checkpoint, *steps.root);
  ballast::FoundRoot found = ballast::find_root(checkpoint);
  report.root = found.path;
  return std::move(found.checkpoint);
}

ballast::DType target_dtype(const std::string& word) {
  const ballast::DType dtype = parse_dtype(word);
  if (!ballast::is_floating(dtype)) {
    throw Error(Errc::invalid_argument, "--dtype",
                fmt::format("{} is no floating-point dtype", ballast::info(dtype).code));
  }
  return dtype;
}

// Tensors on one view are cast to one: tied ones stay tied.
ballast::Checkpoint cast_floating(const ballast::Checkpoint& in, ballast::DType dtype, StepsReport& report) {
  ballast::Checkpoint out;
  out.metadata = in.metadata;
  out.notes = in.notes;
  out.format = in.format;
  out.path = in.path;
  out.reserve(in.size());
  std::unordered_map<const ballast::Storage*, std::vector<std::pair<ballast::Tensor, ballast::Tensor>>> done;
  for (const ballast::Entry entry : in) {
    const ballast::Tensor tensor = entry.tensor();
    if (!ballast::is_floating(entry.dtype) || entry.dtype == dtype) {
      out.add(entry.name, tensor);
      continue;
    }
    ++report.cast;
    auto& earlier = done[tensor.storage().get()];
    const auto same = std::find_if(earlier.begin(), earlier.end(),
                                   [&](const auto& pair) { return pair.first.same_view(tensor); });
    if (same != earlier.end()) {
      out.add(entry.name, same->second);
      continue;
    }
    const ballast::Tensor cast =
        tensor.has_data()
            ? ballast::Tensor::contiguous_view(
                  dtype, tensor.shape(), std::make_shared<CountingCast>(tensor, dtype, report.overflowed))
            : ballast::Tensor(dtype, tensor.shape());
    earlier.emplace_back(tensor, cast);
    out.add(entry.name, cast);
  }
  return out;
}

}  // namespace

ballast::DType parse_dtype(const std::string& word) {
  std::string code = word;
  std::transform(code.begin(), code.end(), code.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (const auto dtype = ballast::dtype_from_code(code)) return *dtype;
  if (const auto dtype = ballast::dtype_from_torch(word)) return *dtype;
  if (word == "half") return ballast::DType::f16;
  throw Error(Errc::invalid_argument, "--dtype",
              fmt::format("{} is no dtype; f32, f16, bf16, f64, f8_e4m3 and f8_e5m2 are the usual ones",
                          ballast::quoted(word)));
}

ballast::Checkpoint apply(ballast::Checkpoint checkpoint, const Steps& steps, StepsReport& report) {
  const std::vector<ballast::RenameRule> renames = parse_rules(steps.rename);
  const std::size_t before = checkpoint.size();
  checkpoint = take_root(std::move(checkpoint), steps, report);
  if (!steps.rules.empty()) {
    ballast::rules::Applied applied = ballast::rules::apply(checkpoint, ballast::rules::read(steps.rules));
    report.idle.insert(report.idle.end(), applied.idle.begin(), applied.idle.end());
    checkpoint = std::move(applied.checkpoint);
  }
  if (!renames.empty()) {
    ballast::Renamed renamed = ballast::rename(checkpoint, renames);
    report.renamed = renamed.changed.size();
    report.idle.insert(report.idle.end(), renamed.idle.begin(), renamed.idle.end());
    checkpoint = std::move(renamed.checkpoint);
  }
  checkpoint = select(std::move(checkpoint), steps.selection);
  report.dropped = before - std::min(before, checkpoint.size());
  if (checkpoint.empty() && before > 0) {
    throw Error(Errc::not_found, ballast::display(checkpoint.path),
                fmt::format("none of its {} tensors is left after the steps asked for", before));
  }
  return steps.dtype.empty() ? checkpoint : cast_floating(checkpoint, target_dtype(steps.dtype), report);
}

}  // namespace tool
