// SPDX-License-Identifier: Apache-2.0
#include "formats/beside_places.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/words.h"

namespace ballast {
namespace {

// Members by which loaders take files in the place of those that every folder has: transformers, AutoGPTQ.
constexpr std::pair<std::string_view, std::string_view> kReplacing[] = {
    {"transformers_weights", "model.safetensors"},
    {"fast_tokenizer_files", "tokenizer.json"},
    {"model_file_base_name", "model"}};
// Members that name another model, which loaders fetch and load before this one, be it a folder or somebody's
// repository: peft's and transformers' base of an adapter (AutoModel.from_pretrained() goes there by itself),
// whatever else ends like that (tokenizers of sound and of prompts), peft's beginnings and shadows,
// open_clip's and LLaVA's towers, what RAG looks up.
constexpr std::string_view kOtherModelEnds[] = {"_name_or_path"};
constexpr std::string_view kOtherModels[] = {
    "hf_model_name",   "hf_tokenizer_name", "prompt_tuning_init_state_dict_path",
    "mm_vision_tower", "vision_tower",      "shadow_model",
    "index_path",      "passages_path"};
// These may also be names in a library's own list ("resnet50"), which have neither "/" nor ":".
constexpr std::string_view kBackbones[] = {"backbone", "timm_model_name"};
// What peft makes of the model itself.
constexpr std::string_view kOwnShadow = "mirror";
// Where a model came from when it was saved: transformers writes it down and opens nothing there.
constexpr std::string_view kOrigins[] = {"_name_or_path", "name_or_path", "special_tokens_map_file"};
// Members that hold tokens, which may look like anything.
constexpr std::string_view kTokenEnds[] = {"added_tokens_decoder", "_token", "_tokens"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool has_parent_part(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find_first_of("/\\:");
    if (text.substr(0, end) == "..") return true;
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

// Not "/" and "//", which join words.
bool is_absolute(std::string_view text) {
  const auto is_of_name = [](char c) { return is_letter(c) || is_digit(c) || (c & 0x80) != 0; };
  if (std::none_of(text.begin(), text.end(), is_of_name)) return false;
  const bool has_parts = text.find_first_of("/\\", 1) != text.npos;
  if (text[0] == '/' || ((text[0] == '~' || text[0] == '\\') && has_parts)) return true;
  if (lowered(text.substr(0, 5)) == "file:") return true;
  // Of a drive, where "A: yes/no" is a text.
  return text.size() > 2 && is_letter(text[0]) && text[1] == ':' && text[2] != ' ' && has_parts;
}

bool is_only(const Value& value, std::string_view text) {
  return value.kind() == Kind::none || (value.kind() == Kind::string && value.as_string() == text);
}

// The usual file, alone or in a list.
bool names_only(const Value& value, std::string_view usual) {
  if (value.kind() != Kind::list) return is_only(value, usual);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Value element = value.element(i);
    if (element.kind() != Kind::string || element.as_string() != usual) return false;
  }
  return true;
}

std::string replaced_by(std::string_view key, const Value& value) {
  for (const auto& [member, usual] : kReplacing) {
    if (key == member && !names_only(value, usual))
      return "has " + quoted(key) + ", by which its loader takes another file than " + quoted(usual);
  }
  return {};
}

bool names_other_model(std::string_view key, const Value& value) {
  if (value.kind() != Kind::string || is_among(kOrigins, key)) return false;
  const std::string_view text = value.as_string();
  if (is_among(kBackbones, key)) return text.find_first_of("/:") != text.npos;
  if (key == "shadow_model" && text == kOwnShadow) return false;
  return (is_among(kOtherModels, key) || ends_with_one(kOtherModelEnds, key)) && !text.empty();
}

struct Waiting {
  Value value;
  bool is_token = false;
};

}  // namespace

bool is_of_tokens(std::string_view key) {
  return ends_with_one(kTokenEnds, key);
}

bool stays_below(std::string_view path) {
  return !path.starts_with('/') && path.find("..") == path.npos && path.find_first_of("\\:") == path.npos;
}

// Without recursion: the depth is the file's.
std::string place_elsewhere(const Value& root) {
  std::vector<Waiting> waiting = {{root}};
  while (!waiting.empty()) {
    const auto [value, is_token] = std::move(waiting.back());
    waiting.pop_back();
    if (value.kind() == Kind::string && !is_token) {
      const std::string_view text = value.as_string();
      if (has_parent_part(text) || is_absolute(text))
        return "names " + quoted(text) + ", which is not in its folder: nobody has looked there";
    }
    const bool is_dict = value.kind() == Kind::dict;
    const std::size_t size = is_dict || value.kind() == Kind::list ? value.size() : 0;
    for (std::size_t i = 0; i < size; ++i) {
      Value part = is_dict ? value.value(i) : value.element(i);
      const Value name = is_dict ? value.key(i) : Value();
      const std::string_view key = name.kind() == Kind::string ? name.as_string() : std::string_view();
      if (std::string why = replaced_by(key, part); !why.empty()) return why;
      if (names_other_model(key, part))
        return "has " + quoted(key) + ", by which its loader takes " + quoted(part.as_string()) +
               ", too: nobody has looked at that";
      if (is_among(kOrigins, key) && part.kind() == Kind::string) continue;
      waiting.push_back({std::move(part), is_token || is_of_tokens(key)});
    }
  }
  return {};
}

}  // namespace ballast
