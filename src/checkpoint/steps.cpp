// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/steps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/fail.h"
#include "base/hash.h"
#include "checkpoint/marks.h"
#include "checkpoint/pattern.h"
#include "checkpoint/record_metadata.h"

namespace ballast {

Checkpoint without_tensors(const Checkpoint& in) {
  Checkpoint out;
  out.metadata = in.metadata;
  out.notes = in.notes;
  out.format = in.format;
  out.path = in.path;
  out.tree = in.tree;
  return out;
}

Checkpoint with_names(const Checkpoint& in, const std::vector<std::string>& names) {
  Checkpoint out = without_tensors(in);
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (names[i].empty() && !in[i].name.empty())
      fail(Errc::bad_name, display(in.path), "nothing is left of the name {}", quoted(in[i].name));
    if (const auto taken = out.position(names[i])) {
      fail(Errc::duplicate_key, display(in.path), "{} and {} both become {}", quoted(in[*taken].name),
           quoted(in[i].name), quoted(names[i]));
    }
    out.add(names[i], in[i].tensor());
  }
  marks::follow_names(in, std::vector<std::optional<std::string>>(names.begin(), names.end()), out);
  return out;
}

namespace {

Renamed renamed(const Checkpoint& in, const std::vector<std::string>& names) {
  Renamed result{with_names(in, names), {}, {}};
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].name != names[i]) result.changed.push_back({std::string(in[i].name), names[i]});
  }
  return result;
}

std::vector<std::string> names_of(const Checkpoint& in) {
  std::vector<std::string> names;
  names.reserve(in.size());
  for (const Entry& entry : in) names.emplace_back(entry.name);
  return names;
}

}  // namespace

Renamed rename(const Checkpoint& given, const std::vector<RenameRule>& rules) {
  rules::Applied applied = rules::apply(given, {rules.begin(), rules.end()});
  Renamed result{std::move(applied.checkpoint), {}, std::move(applied.unmatched)};
  for (std::size_t i = 0; i < applied.origins.size(); ++i) {
    const std::string_view now = result.checkpoint[i].name;
    if (now != applied.origins[i]) result.changed.push_back({applied.origins[i], std::string(now)});
  }
  return result;
}

Renamed strip_common_prefixes(const Checkpoint& given) {
  const Checkpoint in = marks::with_ties(given);
  constexpr std::array<std::string_view, 2> kWrappers = {"module.", "_orig_mod."};
  std::vector<std::string> names = names_of(in);
  std::string stripped;
  for (bool again = !names.empty(); again;) {
    again = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!std::all_of(names.begin(), names.end(), [&](const std::string& name) {
            return name.size() > wrapper.size() && name.starts_with(wrapper);
          }))
        continue;
      for (std::string& name : names) name.erase(0, wrapper.size());
      stripped += wrapper;
      again = true;
    }
  }
  Renamed result = renamed(in, names);
  if (!stripped.empty())
    result.checkpoint.notes.push_back("all keys began with " + quoted(stripped) + ", which was removed");
  return result;
}

std::vector<NumberedSegment> numbered_segments(std::string_view key) {
  constexpr std::size_t kMostDigits = 9;  // longer ones are not positions of anything
  std::vector<NumberedSegment> found;
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('.', begin), key.size());
    const std::string_view segment = key.substr(begin, end - begin);
    const bool digits = !segment.empty() && segment.size() <= kMostDigits && all_digits(segment);
    if (digits && (segment.size() == 1 || segment[0] != '0'))
      found.push_back({key.substr(0, begin), segment});
    begin = end + 1;
  }
  return found;
}

Renamed reindex(const Checkpoint& given, const std::vector<std::string>& prefixes,
                const std::vector<std::string>& keep) {
  const Checkpoint in = marks::with_ties(given);
  const KeyFilter wanted(prefixes, keep);
  const auto value = [](std::string_view digits) {
    long number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  };
  NameViewMap<std::map<long, std::size_t>> seen;
  for (const Entry& entry : in) {
    for (const auto& [prefix, number] : numbered_segments(entry.name)) {
      if (wanted.passes(prefix)) seen[prefix].emplace(value(number), 0);
    }
  }
  for (auto& [prefix, numbers] : seen) {
    std::size_t next = 0;
    for (auto& [number, position] : numbers) position = next++;
  }
  std::vector<std::string> names;
  for (const Entry& entry : in) {
    std::string name;
    std::size_t copied = 0;
    for (const auto& [prefix, number] : numbered_segments(entry.name)) {
      const auto found = seen.find(prefix);
      if (found == seen.end()) continue;
      name += entry.name.substr(copied, prefix.size() - copied);
      name += std::to_string(found->second.at(value(number)));
      copied = prefix.size() + number.size();
    }
    name += entry.name.substr(copied);
    names.push_back(std::move(name));
  }
  return renamed(in, names);
}

Checkpoint only(const Checkpoint& given, const std::vector<bool>& passes) {
  const Checkpoint in = marks::with_ties(given);
  Checkpoint out = without_tensors(in);
  std::vector<std::optional<std::string>> names;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Entry entry = in[i];
    names.push_back(passes[i] ? std::optional<std::string>(entry.name) : std::nullopt);
    if (passes[i]) out.add(entry.name, entry.tensor());
  }
  marks::follow_names(in, names, out);
  return out;
}

Checkpoint filter(const Checkpoint& given, const std::vector<std::string>& include,
                  const std::vector<std::string>& exclude) {
  const Checkpoint in = marks::with_ties(given);
  const KeyFilter wanted(include, exclude);
  std::vector<bool> passes;
  for (const Entry& entry : in) passes.push_back(wanted.passes(entry.name));
  return only(in, passes);
}

DType target_dtype(Precision precision) {
  if (!precision.dtype())
    fail(Errc::invalid_argument, "cast", "{}",
         precision == Precision::keep ? "keep names no dtype" : "as_model needs a model: it is for load()");
  const DType dtype = *precision.dtype();
  if (!is_floating(dtype)) fail(Errc::bad_dtype, "cast", "{} is no floating-point dtype", info(dtype).code);
  return dtype;
}

bool is_narrower(DType from, DType to) {
  return info(to).bits < info(from).bits && info(to).bits <= 16;
}

std::shared_ptr<CastCount> new_count() {
  return std::make_shared<CastCount>();
}

Checkpoint cast(const Checkpoint& in, Precision precision, const std::vector<std::string>& except,
                const std::shared_ptr<CastCount>& count) {
  if (precision == Precision::keep) return in;
  const KeyFilter wanted({}, except);
  return cast_where(
      in, target_dtype(precision), [&](std::size_t i) { return wanted.passes(in[i].name); }, count);
}

Checkpoint cast_where(const Checkpoint& in, DType dtype, const std::function<bool(std::size_t)>& wanted,
                      const std::shared_ptr<CastCount>& count) {
  Checkpoint out = without_tensors(in);
  record::forget_checksums(out);
  out.reserve(in.size());
  std::vector<std::pair<Tensor, Tensor>> done;  // of storages seen twice, so that tied tensors stay tied
  std::map<std::pair<const Storage*, std::uint64_t>, std::vector<std::size_t>> by_place;
  for (std::size_t position = 0; position < in.size(); ++position) {
    const Entry entry = in[position];
    const Tensor tensor = entry.tensor();
    if (!is_floating(entry.dtype) || entry.dtype == dtype || !wanted(position)) {
      out.add(entry.name, tensor);
      continue;
    }
    std::vector<std::size_t>& earlier = by_place[{tensor.storage().get(), tensor.bit_offset()}];
    const auto same = std::find_if(earlier.begin(), earlier.end(),
                                   [&](std::size_t i) { return done[i].first.same_view(tensor); });
    if (same != earlier.end()) {
      out.add(entry.name, done[*same].second);
      continue;
    }
    earlier.push_back(done.size());
    done.emplace_back(tensor, tensor.to_lazy(dtype, count));
    out.add(entry.name, done.back().second);
  }
  return out;
}

std::string debug_keys(const Checkpoint& now, std::span<const std::string> origins) {
  std::map<std::string_view, std::size_t> sorted;
  for (std::size_t i = 0; i < now.size(); ++i) sorted.emplace(now[i].name, i);
  std::string text = "Debug information of keys and tensor shapes:\n---\n";
  for (const auto& [key, i] : sorted) {
    if (key == origins[i])
      text += fmt::format("Key: {}\n", display(key));
    else
      text += fmt::format("Original Key: {}\nRemapped Key: {}\n", display(origins[i]), display(key));
    text += fmt::format("Shape: {}\nDtype: {}\n---\n", to_string(now[i].shape), info(now[i].dtype).code);
  }
  return text;
}

namespace {

// The path of the first of them that has the name.
const std::string& first_with(std::string_view name, std::span<const Checkpoint> parts) {
  const auto has_it = [&](const Checkpoint& part) { return part.contains(name); };
  return std::find_if(parts.begin(), parts.end(), has_it)->path;
}

}  // namespace

Checkpoint merge(std::span<const Checkpoint> given) {
  std::vector<Checkpoint> parts;
  for (const Checkpoint& part : given) parts.push_back(marks::with_ties(part));
  Checkpoint out;
  for (const Checkpoint& part : parts) {
    for (const Entry& entry : part) {
      if (out.contains(entry.name))
        fail(Errc::duplicate_key, display(part.path), "{} is in {} too", quoted(entry.name),
             display(first_with(entry.name, parts)));
      out.add(entry.name, entry.tensor());
    }
    out.notes.insert(out.notes.end(), part.notes.begin(), part.notes.end());
    out.path += (out.path.empty() ? "" : " + ") + part.path;
    if (!out.format) out.format = part.format;
  }
  marks::merge_metadata(parts, out);
  return out;
}

}  // namespace ballast
