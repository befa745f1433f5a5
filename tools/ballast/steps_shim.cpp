// SPDX-License-Identifier: Apache-2.0
#include "steps_shim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "ballast/display.h"
#include "ballast/error.h"
#include "ballast/stats.h"

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

struct Rule {
  std::string text;
  std::unique_ptr<RE2> pattern;
  std::string replacement;  // in RE2's words: \1
  bool matched = false;
};

// $1, ${1}, ${name}, $$ → RE2's \1 and $.
std::string translate(const std::string& to, const RE2& pattern, const std::string& rule) {
  std::string out;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == '\\') out += "\\\\";
    if (to[i] == '\\' || to[i] != '$') {
      if (to[i] != '\\') out += to[i];
      continue;
    }
    if (i + 1 < to.size() && to[i + 1] == '$') {
      out += to[++i];
      continue;
    }
    const bool braces = i + 1 < to.size() && to[i + 1] == '{';
    std::size_t end = i + (braces ? 2 : 1);
    const std::size_t begin = end;
    while (end < to.size() &&
           (braces ? to[end] != '}' : std::isdigit(static_cast<unsigned char>(to[end])) != 0))
      ++end;
    std::string group = to.substr(begin, end - begin);
    if (const auto named = pattern.NamedCapturingGroups().find(group);
        named != pattern.NamedCapturingGroups().end()) {
      group = std::to_string(named->second);
    }
    const bool number = group.size() == 1 && std::isdigit(static_cast<unsigned char>(group[0])) != 0;
    if (!number || group[0] - '0' > pattern.NumberOfCapturingGroups()) {
      throw Error(Errc::invalid_argument, "--rename",
                  fmt::format("{} has no group {}", ballast::quoted(rule), ballast::quoted(group)));
    }
    out += '\\' + group;
    i = braces ? end : end - 1;
  }
  return out;
}

std::vector<Rule> parse_rules(const std::vector<std::string>& texts) {
  std::vector<Rule> rules;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Errc::invalid_argument, "--rename",
                  fmt::format("{} is not PATTERN=REPLACEMENT", ballast::quoted(text)));
    }
    Rule rule{text, compile_pattern(text.substr(0, equals), "--rename"), {}, false};
    rule.replacement = translate(text.substr(equals + 1), *rule.pattern, text);
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string renamed(std::string name, std::vector<Rule>& rules) {
  for (Rule& rule : rules) {
    if (RE2::GlobalReplace(&name, *rule.pattern, rule.replacement) > 0) rule.matched = true;
  }
  return name;
}

ballast::Tensor cast(const ballast::Tensor& tensor, ballast::DType dtype, StepsReport& report) {
  if (!ballast::is_floating(tensor.dtype()) || tensor.dtype() == dtype) return tensor;
  ++report.cast;
  if (!tensor.has_data()) return {dtype, tensor.shape()};
  return ballast::Tensor::contiguous_view(dtype, tensor.shape(),
                                          std::make_shared<CountingCast>(tensor, dtype, report.overflowed));
}

ballast::Checkpoint empty_like(const ballast::Checkpoint& checkpoint) {
  ballast::Checkpoint result;
  result.metadata = checkpoint.metadata;
  result.notes = checkpoint.notes;
  result.format = checkpoint.format;
  result.path = checkpoint.path;
  return result;
}

void add_renamed(ballast::Checkpoint& result, const std::string& name, std::string_view old_name,
                 const ballast::Tensor& tensor) {
  if (name.empty())
    throw Error(Errc::bad_name, "--rename",
                fmt::format("{} would have no name left", ballast::quoted(old_name)));
  if (result.contains(name)) {
    throw Error(Errc::duplicate_key, "--rename",
                fmt::format("{} and another tensor would both be called {}", ballast::quoted(old_name),
                            ballast::quoted(name)));
  }
  result.add(name, tensor);
}

// The tensors below a value of the tree, named by the path from there.
void add_tree(ballast::Checkpoint& result, const ballast::Value& root) {
  std::vector<std::string> paths;  // by depth
  ballast::ValueWalk walk(root);
  while (const auto step = walk.next()) {
    paths.resize(step->depth + 1);
    std::string& here = paths[step->depth];
    const std::string above = step->depth == 0 ? std::string() : paths[step->depth - 1];
    here = above.empty() ? step->label : above + '.' + step->label;
    if (step->value.kind() == ballast::Kind::tensor && !result.contains(here))
      result.add(here, step->value.as_tensor());
  }
}

// A prefix of names, or else a path into the saved objects that were not taken for the state dict.
ballast::Checkpoint under(const ballast::Checkpoint& checkpoint, const std::string& root,
                          StepsReport& report) {
  ballast::Checkpoint result = empty_like(checkpoint);
  const std::string prefix = root + '.';
  for (const ballast::Entry entry : checkpoint) {
    if (entry.name.starts_with(prefix)) result.add(entry.name.substr(prefix.size()), entry.tensor());
  }
  if (result.empty() && checkpoint.tree) {
    if (const auto value = checkpoint.tree->find_path(root)) add_tree(result, *value);
  }
  if (result.empty()) {
    throw Error(Errc::not_found, ballast::display(checkpoint.path),
                fmt::format("has no tensors under {}", ballast::quoted(root)));
  }
  report.dropped += checkpoint.size() - std::min(checkpoint.size(), result.size());
  return result;
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
  const NameFilter filter(steps.selection);
  std::vector<Rule> rules = parse_rules(steps.rename);
  const bool casts = !steps.dtype.empty();
  const ballast::DType dtype = casts ? parse_dtype(steps.dtype) : ballast::DType::f32;
  if (casts && !ballast::is_floating(dtype)) {
    throw Error(Errc::invalid_argument, "--dtype",
                fmt::format("{} is no floating-point dtype", ballast::info(dtype).code));
  }
  if (!steps.root.empty()) checkpoint = under(checkpoint, steps.root, report);
  if (rules.empty() && filter.takes_all() && !casts) return checkpoint;

  ballast::Checkpoint result = empty_like(checkpoint);
  for (const ballast::Entry entry : checkpoint) {
    const std::string name = renamed(std::string(entry.name), rules);
    if (!filter.takes(name)) {
      ++report.dropped;
      continue;
    }
    report.renamed += name == entry.name ? 0 : 1;
    const ballast::Tensor tensor = entry.tensor();
    add_renamed(result, name, entry.name, casts ? cast(tensor, dtype, report) : tensor);
  }
  for (const Rule& rule : rules) {
    if (!rule.matched)
      report.notes.push_back(fmt::format("--rename {} matched nothing", ballast::quoted(rule.text)));
  }
  if (result.empty() && !checkpoint.empty()) {
    throw Error(Errc::not_found, checkpoint.path,
                fmt::format("none of its {} tensors is left after --root, --include and --exclude",
                            checkpoint.size()));
  }
  return result;
}

}  // namespace tool
