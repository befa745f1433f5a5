// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/marks.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "checkpoint/layout.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/steps.h"
#include "checkpoint/value_json.h"

namespace ballast {

namespace {

// No model has more names.
std::size_t most_ties(const Checkpoint& checkpoint) {
  return 65'536 + 16 * checkpoint.size();
}

// The first name is said again with every other name of its tensor: in listings, in metadata. One long name
// and very many short ones would be gigabytes.
constexpr std::uint64_t kTiedNames = std::uint64_t{4} << 20U;  // bytes
constexpr std::uint64_t kTiedNamesPerByte = 4;                 // of all names

void require_sayable(const Checkpoint& checkpoint, const std::vector<Tie>& ties) {
  std::uint64_t said = 0;
  for (const Tie& tie : ties) said += checkpoint[tie.first].name.size();
  if (said <= kTiedNames) return;
  std::uint64_t most = kTiedNames;
  for (const Entry& entry : checkpoint) most += entry.name.size() * kTiedNamesPerByte;
  if (said > most)
    fail(Errc::expansion_limit, display(checkpoint.path),
         "{} names of tied tensors say names of {} bytes again, at most {} are taken (made to exhaust its "
         "reader?)",
         ties.size(), said, most);
}

struct Place {
  const Storage* storage;
  std::uint64_t bit_offset;
  std::size_t tensor;
  friend auto operator<=>(const Place&, const Place&) = default;  // NOLINT(modernize-use-nullptr)
};

// Where tensors with elements begin, sorted: those of one place stand side by side.
std::vector<Place> places_of(const Checkpoint& checkpoint) {
  std::vector<Place> places;
  places.reserve(checkpoint.size());
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const Entry entry = checkpoint[i];
    const Tensor tensor = entry.tensor();
    if (entry.bytes > 0 && tensor.has_data())
      places.push_back({tensor.storage().get(), tensor.bit_offset(), i});
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::vector<Tie> ties(const Checkpoint& checkpoint) {
  using View = std::pair<DType, std::vector<std::int64_t>>;
  const std::vector<Place> places = places_of(checkpoint);
  std::vector<Tie> found;
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    while (end < places.size() && places[end].storage == places[begin].storage &&
           places[end].bit_offset == places[begin].bit_offset)
      ++end;
    if (end - begin == 1) continue;
    std::map<View, std::size_t> first;
    for (std::size_t at = begin; at < end; ++at) {
      const Tensor tensor = checkpoint[places[at].tensor].tensor();
      std::vector<std::int64_t> dims(tensor.shape().begin(), tensor.shape().end());
      dims.insert(dims.end(), tensor.strides().begin(), tensor.strides().end());
      const auto [known, is_new] = first.try_emplace({tensor.dtype(), std::move(dims)}, places[at].tensor);
      if (!is_new) found.push_back({.tensor = places[at].tensor, .first = known->second});
    }
  }
  std::sort(found.begin(), found.end(), [](const Tie& a, const Tie& b) { return a.tensor < b.tensor; });
  require_sayable(checkpoint, found);
  return found;
}

namespace marks {
namespace {

std::string where_of(const Checkpoint& checkpoint, const char* key) {
  return display(checkpoint.path) + ": metadata " + quoted(key);
}

// The object a key of the metadata holds; None when there is no such key.
Value object_at(const Checkpoint& checkpoint, const char* key) {
  const std::string* text = record::find(checkpoint, key);
  if (text == nullptr) return {};
  const std::string where = where_of(checkpoint, key);
  Value object = parse_json(*text, where);
  if (object.kind() != Kind::dict) fail(Errc::bad_json, where, "is no object");
  return object;
}

void put(Checkpoint& checkpoint, const char* key, std::string text) {
  if (!checkpoint.metadata) checkpoint.metadata.emplace();
  (*checkpoint.metadata)[key] = std::move(text);
}

void take(Checkpoint& checkpoint, const std::string& key) {
  if (!checkpoint.metadata || checkpoint.metadata->erase(key) == 0) return;
  // It was made for this key alone.
  if (checkpoint.metadata->empty()) checkpoint.metadata.reset();
}

Int8 int8_of(const std::string& name, const Value& entry, const std::string& where) {
  const auto field = [&](const char* key, Kind kind = Kind::string) {
    const auto found = entry.find(key);
    if (!found) fail(Errc::bad_json, where, "{} has no {}", quoted(name), quoted(key));
    if (found->kind() != kind || (kind == Kind::integer && !found->fits_int()))
      fail(Errc::bad_json, where, "{} of {} is {}", quoted(key), quoted(name), found->summary());
    return *found;
  };
  if (field("scheme").as_string() != "int8")
    fail(Errc::unsupported, where, "{} is quantized as {}, which is not known here", quoted(name),
         quoted(field("scheme").as_string()));
  const auto dtype = dtype_from_code(field("dtype").as_string());
  if (!dtype || !is_floating(*dtype))
    fail(Errc::bad_dtype, where, "{} cannot become {}: that is no floating-point dtype", quoted(name),
         quoted(field("dtype").as_string()));
  return {std::string(field("scale").as_string()), field("axis", Kind::integer).as_int(), *dtype};
}

}  // namespace

bool is_reserved(std::string_view key) noexcept {
  return key.starts_with("ballast.");
}

namespace {

// "lm_head.weight": "wte.weight", as Safetensors' save_model() notes the names it leaves out. Two paths that
// end in one word; any other metadata whose value is some tensor's name ("format": "pt") is about something
// else.
bool is_tie_of_save_model(std::string_view key, std::string_view value) {
  const std::size_t a = key.rfind('.');
  const std::size_t b = value.rfind('.');
  return a != key.npos && b != value.npos && key.substr(a) == value.substr(b) && !is_reserved(key);
}

}  // namespace

Ties ties_of(const Checkpoint& checkpoint) {
  Ties ties;
  const Value object = object_at(checkpoint, kTiesKey);
  if (object.size() > most_ties(checkpoint))
    fail(Errc::too_many, where_of(checkpoint, kTiesKey), "{} ties of {} tensors; at most {} are read",
         object.size(), checkpoint.size(), most_ties(checkpoint));
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (object.value(i).kind() != Kind::string)
      fail(Errc::bad_json, where_of(checkpoint, kTiesKey), "{} is tied to {}, which is no name",
           quoted(object.key(i).as_string()), object.value(i).summary());
    ties.emplace(object.key(i).as_string(), object.value(i).as_string());
  }
  if (object.kind() == Kind::dict || !checkpoint.metadata) return ties;
  for (const auto& [key, value] : *checkpoint.metadata) {
    if (is_tie_of_save_model(key, value) && checkpoint.contains(value) && !checkpoint.contains(key))
      ties.emplace(key, value);
  }
  return ties;
}

void set_ties(Checkpoint& checkpoint, const Ties& ties) {
  if (ties.empty()) return take(checkpoint, kTiesKey);
  if (ties.size() > most_ties(checkpoint))
    fail(Errc::not_representable, display(checkpoint.path),
         "{} names for {} tensors; at most {} ties are written", ties.size() + checkpoint.size(),
         checkpoint.size(), most_ties(checkpoint));
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, of] : ties) json.member(name, of);
  json.end_object();
  put(checkpoint, kTiesKey, std::move(json).text());
  for (const auto& [name, of] : ties) {
    if (!is_reserved(name)) checkpoint.metadata->emplace(name, of);
  }
}

Checkpoint with_ties(Checkpoint in) {
  const Ties ties = ties_of(in);
  if (ties.empty() && record::find(in, kTiesKey) == nullptr) return in;
  take(in, kTiesKey);
  for (const auto& [name, of] : ties) {
    const std::string* pair = record::find(in, name);
    if (pair != nullptr && *pair == of && !is_reserved(name)) take(in, name);
    if (in.contains(name)) continue;
    if (in.contains(of))
      in.add(name, in.tensor(of));
    else
      in.notes.push_back(fmt::format("{} is tied to {}, which is not here (one shard of several?)",
                                     quoted(name), quoted(of)));
  }
  return in;
}

Checkpoint without_ties(Checkpoint in) {
  in = with_ties(std::move(in));
  const std::vector<Tie> all = ballast::ties(in);
  if (all.empty()) return in;
  Ties said;
  for (const Tie& tie : all) said.emplace(in[tie.tensor].name, in[tie.first].name);
  Checkpoint out = without_tensors(in);
  out.reserve(in.size() - said.size());
  auto next = all.begin();
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (next != all.end() && next->tensor == i)
      ++next;
    else
      out.add(in[i].name, in[i].tensor());
  }
  set_ties(out, said);
  return out;
}

Int8Tensors quantized_of(const Checkpoint& checkpoint) {
  const Value object = object_at(checkpoint, kQuantizedKey);
  Int8Tensors tensors;
  for (std::size_t i = 0; i < object.size(); ++i) {
    std::string name(object.key(i).as_string());
    Int8 mark = int8_of(name, object.value(i), where_of(checkpoint, kQuantizedKey));
    tensors.emplace(std::move(name), std::move(mark));
  }
  return tensors;
}

void set_quantized(Checkpoint& checkpoint, const Int8Tensors& tensors) {
  if (tensors.empty()) return take(checkpoint, kQuantizedKey);
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, mark] : tensors) {
    json.key(name)
        .begin_object()
        .member("scheme", "int8")
        .member("axis", mark.axis)
        .member("scale", mark.scale)
        .member("dtype", info(mark.dtype).code)
        .end_object();
  }
  json.end_object();
  put(checkpoint, kQuantizedKey, std::move(json).text());
}

namespace {

// What Burn's files say of single tensors, as JSON by their names.
constexpr const char* kByName[] = {"burn.param_ids", "burn.dtypes"};

template <class Now>
void follow_in(const char* key, const Checkpoint& before, const Now& now, Checkpoint& after) {
  const std::string* text = record::find(before, key);
  if (text == nullptr) return;
  std::string padded = *text + std::string(JsonScanner::kPadding, '\0');
  JsonScanner said({padded.data(), text->size()}, display(before.path) + ": metadata " + key);
  JsonWriter followed;
  followed.begin_object();
  said.object([&](std::string_view name) {
    const std::string old(name);  // the scanner's own is gone with the value
    const bool is_word = said.peek() == JsonScanner::Kind::string;
    const std::string word(is_word ? said.string() : std::string_view());
    const JsonScanner::Number number = is_word ? JsonScanner::Number{} : said.number();
    if (!is_word && !number.is_unsigned)
      fail(Errc::bad_json, said.where(), "{} is {}, neither a word nor a whole number", quoted(old),
           quoted(number.text));
    const auto called = before.contains(old) ? now(old) : std::optional(old);
    if (!called) return;
    followed.key(*called);
    is_word ? followed.value(word) : followed.value(number.value);
  });
  said.finish();
  put(after, key, std::move(followed.end_object()).text());
}

}  // namespace

void follow_names(const Checkpoint& before, std::span<const std::optional<std::string>> names,
                  Checkpoint& after) {
  bool renamed = false;
  for (std::size_t i = 0; i < names.size(); ++i)
    renamed = renamed || (names[i] && *names[i] != before[i].name);
  if (renamed) record::forget_checksums(after);  // they are about the old names
  const auto now = [&](const std::string& name) {
    const auto at = before.position(name);
    return at ? names[*at] : std::nullopt;
  };
  for (const char* key : kByName) follow_in(key, before, now, after);
  if (record::find(before, kQuantizedKey) == nullptr) return;
  Int8Tensors followed;
  for (const auto& [name, mark] : quantized_of(before)) {
    const auto integers = now(name);
    if (!integers) continue;
    const auto scale = now(mark.scale);
    if (!scale)
      fail(Errc::invalid_argument, display(before.path),
           "{} holds quantized integers and would lose its scales, {} (dequantize first, or keep both)",
           quoted(name), quoted(mark.scale));
    followed.emplace(*integers, Int8{*scale, mark.axis, mark.dtype});
  }
  set_quantized(after, followed);
}

void add_metadata(Checkpoint& checkpoint, Format format, const Metadata& meta, const std::string& where) {
  if (meta.empty()) return;
  if (!format->holds_metadata)
    fail(Errc::not_representable, where, "{} has no place for metadata; write safetensors or record",
         format.name());
  const std::string whose = layout::of(checkpoint);
  if (!checkpoint.metadata) checkpoint.metadata.emplace();
  for (const auto& [key, value] : meta) {
    if (key.empty()) fail(Errc::invalid_argument, where, "metadata {} has no key", quoted("=" + value));
    if (is_reserved(key))
      fail(Errc::invalid_argument, where, "metadata {} is Ballast's own, which says what tensors are",
           quoted(key));
    if (is_tie_of_save_model(key, value) && checkpoint.contains(value) && !checkpoint.contains(key))
      fail(Errc::invalid_argument, where,
           "metadata {}: {} would say that a tensor has a second name; tie it in the model", quoted(key),
           quoted(value));
    (*checkpoint.metadata)[key] = value;
  }
  layout::state(checkpoint, whose);
}

void merge_metadata(std::span<const Checkpoint> parts, Checkpoint& out) {
  Int8Tensors quantized;
  const Checkpoint* told = nullptr;  // the first that shows or says whose layout it has
  for (const Checkpoint& part : parts)
    if (told == nullptr && layout::is_told(part)) told = &part;
  for (const Checkpoint& part : parts) {
    if (told != nullptr && layout::is_told(part) && layout::of(part) != layout::of(*told))
      fail(Errc::invalid_argument, display(part.path),
           "its tensors have the layout {}, those of {} {}: one checkpoint cannot hold both (load them into "
           "one "
           "model and save that)",
           quoted(layout::of(part)), display(told->path), quoted(layout::of(*told)));
    quantized.merge(quantized_of(part));
    for (const auto& [key, value] : part.metadata.value_or(Metadata{})) {
      if (key == kQuantizedKey || record::is_of_file(key)) continue;
      if (!out.metadata) out.metadata.emplace();
      if (out.metadata->emplace(key, value).first->second != value)
        out.notes.push_back(
            fmt::format("the files differ in metadata {}; the first one counts", quoted(key)));
    }
    if (part.metadata && !out.metadata) out.metadata.emplace();
  }
  set_quantized(out, quantized);
}

}  // namespace marks

Checkpoint with_metadata(const Checkpoint& in, const std::optional<Metadata>& metadata) {
  const Metadata old = in.metadata.value_or(Metadata{});
  Metadata now = metadata.value_or(Metadata{});
  for (const auto& [key, value] : now) {
    const auto said = old.find(key);
    if (marks::is_reserved(key) && (said == old.end() || said->second != value))
      fail(Errc::invalid_argument, display(in.path),
           "metadata {} is Ballast's own and would say something else of these tensors", quoted(key));
  }
  for (const auto& [key, value] : old) {
    if (marks::is_reserved(key)) now.emplace(key, value);
  }
  Checkpoint out = in;
  out.metadata.reset();
  if (metadata || !now.empty()) out.metadata = std::move(now);
  return out;
}

}  // namespace ballast
