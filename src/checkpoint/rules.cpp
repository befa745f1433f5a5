// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/overloaded.h"
#include "checkpoint/marks.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "tensor/concat.h"

namespace ballast::rules {
namespace {

struct Item {
  std::string name;
  Tensor tensor;
  std::string origin;
  std::size_t layers = 0;  // of computed bytes upon each other: each is read through the one below it
};

// More would cost stack when they are read, and mean nothing.
constexpr std::size_t kMostLayers = 64;

std::size_t checked_layers(std::size_t layers) {
  if (layers > kMostLayers)
    fail(Errc::too_deep, "rules", "{} casts and joins upon each other, at most {} are made", layers,
         kMostLayers);
  return layers;
}

std::size_t casts_in(const std::vector<Operation>& operations) {
  return static_cast<std::size_t>(
      std::count_if(operations.begin(), operations.end(),
                    [](const Operation& each) { return std::holds_alternative<Cast>(each.value()); }));
}

Tensor operate(const Tensor& in, const Operation& operation, const std::shared_ptr<CastCount>& count) {
  return std::visit(Overloaded{
                        [&](const Transpose& op) { return in.transpose(op.a, op.b); },
                        [&](const Permute& op) { return in.permute(op.order); },
                        [&](const Reshape& op) { return in.reshape(op.shape); },
                        [&](const Slice& op) {
                          const auto rank = static_cast<std::int64_t>(in.rank());
                          const std::int64_t dim = op.dim < 0 ? op.dim + rank : op.dim;
                          if (dim < 0 || dim >= rank)
                            fail(Errc::shape_mismatch, "slice", "shape {} has no dimension {}",
                                 to_string(in.shape()), op.dim);
                          std::vector<Index> indices(static_cast<std::size_t>(dim), Index(ballast::Slice{}));
                          indices.emplace_back(ballast::Slice{op.start, op.stop, op.step});
                          return in.index(indices);
                        },
                        [&](const Cast& op) { return in.to_lazy(op.dtype, count); },
                    },
                    operation.value());
}

// Runs one rule over the items; true when it matched something.
class Runner {
 public:
  Runner(std::vector<Item>& items, std::shared_ptr<CastCount> count)
      : items_(items), count_(std::move(count)) {}

  /// What the next rule may make.
  void give(const NameRoom& room) { room_ = room; }

  bool operator()(const Rename& rule) {
    const Pattern pattern(rule.match);
    const auto to = pattern.replacement(rule.to);
    bool matched = false;
    for (Item& item : items_) {
      if (auto name = pattern.replace_all(item.name, to, &room_)) {
        item.name = std::move(*name);
        matched = true;
      }
    }
    return matched;
  }

  bool operator()(const Drop& rule) {
    const Pattern pattern(rule.match);
    return std::erase_if(items_, [&](const Item& item) { return pattern.matches(item.name); }) > 0;
  }

  bool operator()(const Alias& rule) {
    return each_match(rule.match, {rule.to},
                      [&](Item& item, const std::vector<std::string>& names, std::vector<Item>& out) {
                        out.push_back({names[0], item.tensor, item.origin, item.layers});
                        out.insert(out.end() - 1, item);
                      });
  }

  bool operator()(const Change& rule) {
    const std::vector<std::string> to =
        rule.to.empty() ? std::vector<std::string>{} : std::vector<std::string>{rule.to};
    std::vector<std::pair<Tensor, Tensor>> done;  // once for each tensor, so that tied ones stay tied
    std::map<std::pair<const Storage*, std::uint64_t>, std::vector<std::size_t>> by_place;
    const auto changed = [&](const Tensor& tensor) {
      std::vector<std::size_t>& here = by_place[{tensor.storage().get(), tensor.bit_offset()}];
      const auto same = std::find_if(here.begin(), here.end(),
                                     [&](std::size_t i) { return done[i].first.same_view(tensor); });
      if (same != here.end()) return done[*same].second;
      Tensor result = tensor;
      for (const Operation& operation : rule.operations) result = operate(result, operation, count_);
      here.push_back(done.size());
      done.emplace_back(tensor, result);
      return result;
    };
    return each_match(rule.match, to,
                      [&](Item& item, const std::vector<std::string>& names, std::vector<Item>& out) {
                        item.layers = checked_layers(item.layers + casts_in(rule.operations));
                        item.tensor = changed(item.tensor);
                        if (!names.empty()) item.name = names[0];
                        out.push_back(std::move(item));
                      });
  }

  bool operator()(const Split& rule) {
    if (rule.to.empty()) fail(Errc::invalid_argument, "split " + quoted(rule.match), "names no parts");
    return each_match(
        rule.match, rule.to, [&](Item& item, const std::vector<std::string>& names, std::vector<Item>& out) {
          const auto rank = static_cast<std::int64_t>(item.tensor.rank());
          const std::int64_t dim = rule.dim < 0 ? rule.dim + rank : rule.dim;
          if (dim < 0 || dim >= rank)
            fail(Errc::shape_mismatch, "split", "shape {} has no dimension {}",
                 to_string(item.tensor.shape()), rule.dim);
          const std::int64_t size = item.tensor.shape()[static_cast<std::size_t>(dim)];
          require_whole(rule, size);
          std::int64_t start = 0;
          for (std::size_t i = 0; i < names.size(); ++i) {
            const std::int64_t length =
                rule.sizes.empty() ? size / static_cast<std::int64_t>(names.size()) : rule.sizes[i];
            out.push_back({names[i], item.tensor.narrow(dim, start, length), item.origin, item.layers});
            start += length;
          }
        });
  }

  bool operator()(const Concat& rule) {
    return join(rule, [&](const std::vector<Tensor>& parts) { return concat_lazy(parts, rule.dim); });
  }

  bool operator()(const Stack& rule) {
    return join(rule, [&](std::vector<Tensor> parts) {
      for (Tensor& part : parts) part = part.unsqueeze(rule.dim);
      return concat_lazy(parts, rule.dim);
    });
  }

 private:
  template <class Joined, class Make>
  bool join(const Joined& rule, const Make& make) {
    const Pattern pattern(rule.match);
    std::vector<Pattern::Replacement> templates;
    for (const std::string& other : rule.with) templates.push_back(pattern.replacement(other));
    templates.push_back(pattern.replacement(rule.to));
    NameMap<std::size_t> by_name;
    for (std::size_t i = 0; i < items_.size(); ++i) by_name.emplace(items_[i].name, i);
    std::vector<bool> gone(items_.size(), false);
    bool matched = false;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (gone[i]) continue;
      const auto names = pattern.replace_first(items_[i].name, templates, &room_);
      if (names.empty()) continue;
      matched = true;
      std::vector<Tensor> parts{items_[i].tensor};
      for (std::size_t k = 0; k + 1 < names.size(); ++k) {
        const auto found = by_name.find(names[k]);
        if (found == by_name.end() || found->second == i)
          fail(Errc::not_found, quoted(items_[i].name), "is to be joined with {}, which is not there",
               quoted(names[k]));
        parts.push_back(items_[found->second].tensor);
        if (items_[i].origin != items_[found->second].origin)  // parts of one tensor
          items_[i].origin += " + " + items_[found->second].origin;
        items_[i].layers = std::max(items_[i].layers, items_[found->second].layers);
        gone[found->second] = true;
      }
      items_[i].layers = checked_layers(items_[i].layers + 1);
      items_[i].tensor = make(std::move(parts));
      items_[i].name = names.back();
    }
    std::size_t index = 0;
    std::erase_if(items_, [&](const Item&) { return gone[index++]; });
    return matched;
  }

  static void require_whole(const Split& rule, std::int64_t size) {
    const auto parts = static_cast<std::int64_t>(rule.to.size());
    if (rule.sizes.empty()) {
      if (size % parts != 0)
        fail(Errc::shape_mismatch, "split " + quoted(rule.match), "{} cannot be split into {} equal parts",
             size, parts);
      return;
    }
    std::int64_t sum = 0;
    for (const std::int64_t each : rule.sizes) sum += each;
    if (rule.sizes.size() != rule.to.size() || sum != size) {
      fail(Errc::shape_mismatch, "split " + quoted(rule.match), "sizes {} for {} names do not make up {}",
           to_string(ShapeView(rule.sizes)), parts, size);
    }
  }

  // work(item, names made from `to`, output); items that do not match stay as they are. Errors name the
  // tensor.
  template <class Work>
  bool each_match(const std::string& match, const std::vector<std::string>& to, Work&& work) {
    const Pattern pattern(match);
    std::vector<Pattern::Replacement> templates;
    for (const std::string& text : to) templates.push_back(pattern.replacement(text));
    std::vector<Item> out;
    out.reserve(items_.size());
    bool matched = false;
    for (Item& item : items_) {
      if (!pattern.matches(item.name)) {
        out.push_back(std::move(item));
        continue;
      }
      matched = true;
      const std::string name = item.name;
      try {
        work(item, pattern.replace_first(name, templates, &room_), out);
      } catch (const Error& error) {
        fail(error.code(), "rule " + quoted(match) + " on " + quoted(name), "{}", error.what());
      }
    }
    items_ = std::move(out);
    return matched;
  }

  std::vector<Item>& items_;
  std::shared_ptr<CastCount> count_;
  NameRoom room_{0, 0};
};

// What rules make of a few names is bounded by what was there: a file of rules may be a stranger's.
class Limits {
 public:
  Limits(const std::vector<Item>& items, std::string where)
      : most_items_(100'000 + 64 * items.size()), where_(std::move(where)) {
    for (const Item& item : items) {
      most_text_ += 128 * item.name.size();
      most_bytes_ += 16 * static_cast<double>(item.tensor.size_bytes());
    }
  }

  [[nodiscard]] NameRoom room() const { return {most_items_, most_text_}; }

  void check(const std::vector<Item>& items, const std::string& match) {
    std::uint64_t text = 0;
    double bytes = 0;
    for (const Item& item : items) {
      text += item.name.size() + item.origin.size();
      bytes += static_cast<double>(item.tensor.size_bytes());
    }
    if (bytes > most_bytes_)
      fail(Errc::expanded_view, where_,
           "rule {} makes the tensors {:.0f} bytes in all, more than 64 MiB and 16 times what they were",
           quoted(match), bytes);
    if (items.size() > most_items_ || text > most_text_)
      fail(Errc::too_many, where_, "rule {} leaves {} names of {} bytes in all; at most {} and {} are made",
           quoted(match), items.size(), text, most_items_, most_text_);
    const NamesSize all{.names = items.size(), .bytes = text};
    const Pattern pattern(match);
    work_.show(all);
    work_.make(pattern);
    work_.look(pattern, all);
  }

 private:
  std::size_t most_items_;
  std::uint64_t most_text_ = std::uint64_t{16} << 20U;
  double most_bytes_ = static_cast<double>(std::uint64_t{64} << 20U);
  PatternWork work_;
  std::string where_;
};

const std::string& match_of(const Rule& rule) {
  return std::visit([](const auto& each) -> const std::string& { return each.match; }, rule.value());
}

// Integers with scales may be renamed, left out and tied; what changes their numbers must see the numbers.
void follow_marks(const Checkpoint& in, const std::vector<Item>& items, Checkpoint& out) {
  std::vector<std::optional<std::string>> names(in.size());
  for (const Item& item : items) {
    const auto at = in.position(item.origin);
    const bool is_same = at && in[*at].tensor().same_view(item.tensor);
    if (is_same && !names[*at]) names[*at] = item.name;
  }
  marks::Int8Tensors quantized;
  if (is_quantized(in)) quantized = marks::quantized_of(in);
  for (const Item& item : items) {
    if (quantized.contains(item.origin) && !in.tensor(item.origin).same_view(item.tensor))
      fail(Errc::invalid_argument, display(in.path),
           "{} holds quantized integers: dequantize before it is changed", quoted(item.origin));
  }
  marks::follow_names(in, names, out);
}

}  // namespace

// Here and not in the header: destroying a variant is dear to compile, and every options struct has rules.
Operation::Operation(Transpose one) : value_(std::make_shared<Kinds>(one)) {}

Operation::Operation(Permute one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Operation::Operation(Reshape one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Operation::Operation(Slice one) : value_(std::make_shared<Kinds>(one)) {}

Operation::Operation(Cast one) : value_(std::make_shared<Kinds>(one)) {}

const Operation::Kinds& Operation::value() const noexcept {
  return *value_;
}

Rule::Rule(Rename one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Drop one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Alias one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Change one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Split one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Concat one) : value_(std::make_shared<Kinds>(std::move(one))) {}

Rule::Rule(Stack one) : value_(std::make_shared<Kinds>(std::move(one))) {}

const Rule::Kinds& Rule::value() const noexcept {
  return *value_;
}

Applied apply(const Checkpoint& given, const std::vector<Rule>& rules,
              const std::shared_ptr<CastCount>& count) {
  const Checkpoint in = marks::with_ties(given);
  std::vector<Item> items;
  items.reserve(in.size());
  for (const Entry& entry : in)
    items.push_back({std::string(entry.name), entry.tensor(), std::string(entry.name)});
  Applied result{without_tensors(in), {}, {}};
  Runner run(items, count);
  Limits limits(items, display(in.path));
  for (const Rule& rule : rules) {
    run.give(limits.room());
    const bool matched = std::visit(run, rule.value());
    limits.check(items, match_of(rule));
    if (!matched) {
      result.unmatched.push_back(match_of(rule));
      result.checkpoint.notes.push_back("rule " + quoted(match_of(rule)) + " matched no key");
    }
  }
  result.checkpoint.reserve(items.size());
  for (const Item& item : items) {
    if (item.name.empty() && !item.origin.empty())
      fail(Errc::bad_name, display(in.path), "nothing is left of the name {}", quoted(item.origin));
    if (const auto taken = result.checkpoint.position(item.name)) {
      fail(Errc::duplicate_key, display(in.path), "{} and {} both become {}", quoted(result.origins[*taken]),
           quoted(item.origin), quoted(item.name));
    }
    result.checkpoint.add(item.name, item.tensor);
    result.origins.push_back(item.origin);
  }
  if (!rules.empty()) record::forget_checksums(result.checkpoint);
  follow_marks(in, items, result.checkpoint);
  return result;
}

}  // namespace ballast::rules
