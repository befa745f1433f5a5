// SPDX-License-Identifier: Apache-2.0
#include "formats/beside_json.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/fail.h"
#include "base/words.h"
#include "formats/beside.h"
#include "formats/beside_places.h"
#include "formats/beside_template.h"

namespace ballast {
namespace {

// Words of a language and numbers, read as such: whatever stands in them is a word.
constexpr std::string_view kWords[] = {"added_tokens.json", "merges.json", "normalizer.json",
                                       "tokenizer.json", "vocab.json"};
// What is written beside weights by PyTorch's, Hugging Face's and Meta's tools, and looked into.
constexpr std::string_view kNames[] = {"chat_template.json", "config_sentence_transformers.json",
                                       "dataset_infos.json", "model_index.json",
                                       "modules.json",       "params.json",
                                       "trainer_state.json"};
constexpr std::string_view kEnds[] = {"config.json", ".index.json", "_results.json"};

// Members whose values are imported, or found in a module that stands beside them: transformers, diffusers,
// Hydra, Keras, jsonargparse, TorchServe, spaCy.
constexpr std::string_view kCodeKeys[] = {
    "auto_map",   "custom_pipelines", "custom_pipeline", "custom_generate", "_target_",  "module",
    "class_name", "registered_name",  "class_path",      "handler",         "@call",     "py/object",
    "py/type",    "py/function",      "py/reduce",       "__class__",       "__reduce__"};
// Members that name a kernel to run, which transformers fetches by "owner/name" and imports.
constexpr std::string_view kKernelKeys[] = {"attn_implementation", "_attn_implementation",
                                            "_attn_implementation_internal", "experts_implementation",
                                            "_experts_implementation"};
// Packages whose classes loaders take by name without asking anybody; and parts of diffusers that are called
// as if they were packages.
constexpr std::string_view kTrusted[] = {"transformers", "diffusers", "sentence_transformers", "timm"};
constexpr std::string_view kPipelines[] = {"stable_diffusion", "audioldm2", "latent_diffusion",
                                           "paint_by_example"};
constexpr std::string_view kTorchDTypes[] = {"bool",
                                             "uint8",
                                             "uint16",
                                             "uint32",
                                             "uint64",
                                             "int8",
                                             "int16",
                                             "int32",
                                             "int64",
                                             "float16",
                                             "bfloat16",
                                             "float32",
                                             "float64",
                                             "half",
                                             "float",
                                             "double",
                                             "long",
                                             "short",
                                             "int",
                                             "complex32",
                                             "complex64",
                                             "qint8",
                                             "quint8",
                                             "qint32",
                                             "float8_e4m3fn",
                                             "float8_e4m3fnuz",
                                             "float8_e5m2",
                                             "float8_e5m2fnuz",
                                             "cfloat",
                                             "cdouble",
                                             "complex128",
                                             "float8_e8m0fnu",
                                             "float4_e2m1fn_x2"};
// The last part of a file's name, where it could be that of a function.
constexpr std::string_view kFileEnds[] = {"safetensors", "bin",  "json", "jsonl", "txt",     "pt",
                                          "pth",         "ckpt", "onnx", "gguf",  "msgpack", "h5",
                                          "csv",         "spm",  "bpe",  "model", "parquet"};

// As Python sees it, whose identifiers may have letters of every script.
bool is_identifier(std::string_view part) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80U);
  };
  return !part.empty() && is_letter(part.front()) &&
         std::all_of(part.begin(), part.end(), [&](char c) { return is_letter(c) || is_digit(c); });
}

// "Tanh" and "GPT2Model", where "system" and "API" are none.
bool is_class_name(std::string_view part) {
  return is_identifier(part) && part.front() >= 'A' && part.front() <= 'Z' &&
         std::any_of(part.begin(), part.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// "package.module.name" or "package.module:name", in its parts; none when it is something else.
std::vector<std::string_view> parts_of_path(std::string_view text) {
  std::vector<std::string_view> parts;
  text = trimmed(text);
  for (;;) {
    const std::size_t end = text.find_first_of(".:");
    parts.push_back(text.substr(0, end));
    if (!is_identifier(parts.back())) return {};
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (parts.size() == 1) parts.clear();
  return parts;
}

// A class, that is, or a dtype: nothing that does something when it is called or asked to load a folder.
bool is_of_trusted_package(std::span<const std::string_view> parts) {
  if (parts.front() == "torch" && parts.size() == 2 && is_among(kTorchDTypes, parts[1])) return true;
  const bool is_layer = parts.front() == "torch" && parts[1] == "nn" && parts.size() > 2;
  return (is_layer || is_among(kTrusted, parts.front())) && is_class_name(parts.back());
}

bool names_code(std::string_view text) {
  const std::vector<std::string_view> parts = parts_of_path(text);
  return !parts.empty() && !is_of_trusted_package(parts) && !is_among(kFileEnds, parts.back());
}

std::string text_of(const Value& value) {
  return value.kind() == Kind::string ? std::string(value.as_string()) : std::string();
}

// The value itself, or what is in it: a kernel may be named for each part of a model.
template <class Test>
bool any_text(const Value& root, const Test& test) {
  std::vector<Value> waiting = {root};
  while (!waiting.empty()) {
    const Value value = std::move(waiting.back());
    waiting.pop_back();
    if (test(text_of(value))) return true;
    const bool is_dict = value.kind() == Kind::dict;
    const std::size_t size = is_dict || value.kind() == Kind::list ? value.size() : 0;
    for (std::size_t i = 0; i < size; ++i) waiting.push_back(is_dict ? value.value(i) : value.element(i));
  }
  return false;
}

// What a configuration hands on: trust_remote_code to whatever it names; a kernel by "owner/name".
bool asks_for_code(std::string_view key, const Value& value) {
  if (key == "trust_remote_code") return value.kind() != Kind::boolean || value.as_bool();
  return is_among(kKernelKeys, key) &&
         any_text(value, [](const std::string& text) { return text.find('/') != text.npos; });
}

// Members that name a package to import, by the text that is known there: peft's.
bool names_package(std::string_view key) {
  return key == "parent_library" || key == "library_name" || key == "megatron_core";
}

bool is_known_package(std::string_view key, std::string_view text) {
  return key == "megatron_core" ? text == "megatron.core"
                                : is_among(kTrusted, text.substr(0, text.find('.')));
}

// model_index.json: [package, class] for each part of a pipeline of diffusers.
std::string code_in_pair(const Value& value) {
  if (value.kind() != Kind::list || value.size() != 2 || value.element(0).kind() != Kind::string) return {};
  const std::string package = text_of(value.element(0));
  const bool is_known = is_among(kTrusted, package) || is_among(kPipelines, package);
  if (is_known && is_class_name(text_of(value.element(1)))) return {};
  return "takes a part of its pipeline from " + quoted(package) + ", which its loader would import";
}

// A list of shards whose loader would take some from another place.
bool leads_elsewhere(const Value& root) {
  const auto shards = root.kind() == Kind::dict ? root.find("weight_map") : std::nullopt;
  return shards && any_text(*shards, [](const std::string& path) { return !stays_below(path); });
}

// Words have numbers or are texts, whatever they are; KerasHub takes a tokenizer.json that has a class.
std::string code_instead_of_words(const Value& root) {
  for (std::size_t i = 0; root.kind() == Kind::dict && i < root.size(); ++i) {
    const Kind kind = root.value(i).kind();
    if (is_among(kCodeKeys, text_of(root.key(i))) && kind != Kind::integer && kind != Kind::floating)
      return "has " + quoted(text_of(root.key(i))) + ", which names code for its loader to import";
  }
  return {};
}

// transformers hands every member of special_tokens_map.json to the tokenizer, over what its configuration
// says: a template, files to open.
std::string argument_among_tokens(const Value& root) {
  for (std::size_t i = 0; root.kind() == Kind::dict && i < root.size(); ++i) {
    const std::string key = text_of(root.key(i));
    if (!is_of_tokens(key))
      return "has " + quoted(key) + ", which is no token: its loader hands it to the tokenizer";
  }
  return {};
}

// modules.json of sentence-transformers: classes, and whatever has a load(), by dotted names.
bool is_list_of_its_own_modules(const Value& root) {
  if (root.kind() != Kind::list) return false;
  for (std::size_t i = 0; i < root.size(); ++i) {
    const Value element = root.element(i);
    const auto type = element.kind() == Kind::dict ? element.find("type") : std::nullopt;
    if (!type || !text_of(*type).starts_with("sentence_transformers.")) return false;
    const auto path = element.find("path");
    if (path && !stays_below(text_of(*path))) return false;
  }
  return true;
}

// "../model.py": a path to a program, whatever its key is called (mlx-lm: model_file).
bool is_path_of_program(const std::string& text) {
  return !program_by_name(text).empty();
}

std::string code_in_text(const std::string& text) {
  if (names_code(text) || is_path_of_program(text))
    return "names " + quoted(text) + ", which its loader may import and call";
  if (reaches_into_python(text))
    return "has a template that reaches into Python: a loader that does not confine templates runs it";
  return {};
}

// Why a member of a dict is not inert, whatever is inside its value.
std::string code_in_member(const std::string& key, const Value& value, bool is_pipeline) {
  const bool is_code =
      is_among(kCodeKeys, key) || asks_for_code(key, value) ||
      (names_package(key) && !is_known_package(key, text_of(value)) && value.kind() != Kind::none);
  if (is_code) return "has " + quoted(key) + ", which names code for its loader to import";
  return is_pipeline ? code_in_pair(value) : std::string();
}

// Without recursion: the depth is the file's.
std::string first_code(const Value& root, bool is_pipeline) {
  std::vector<Value> waiting = {root};
  while (!waiting.empty()) {
    const Value value = std::move(waiting.back());
    waiting.pop_back();
    std::string why = code_in_text(text_of(value));
    const bool is_dict = value.kind() == Kind::dict;
    const std::size_t size = is_dict || value.kind() == Kind::list ? value.size() : 0;
    for (std::size_t i = 0; i < size && why.empty(); ++i) {
      Value part = is_dict ? value.value(i) : value.element(i);
      const std::string key = is_dict ? text_of(value.key(i)) : std::string();
      if (is_dict) why = code_in_member(key, part, is_pipeline);
      if (!names_package(key)) waiting.push_back(std::move(part));  // else it is known
    }
    if (!why.empty()) return why;
  }
  return {};
}

}  // namespace

std::string code_in_json(const Value& root, std::string_view name) {
  if (is_among(kWords, name)) return code_instead_of_words(root);
  if (name == "special_tokens_map.json") return argument_among_tokens(root);
  if (!ends_with_one(kEnds, name) && !is_among(kNames, name))
    return "is JSON of a name that Ballast does not know: nobody can say what its loader does with it";
  if (name.ends_with(".index.json") && leads_elsewhere(root))
    return "leads to weights that are not in its folder, which nobody has looked at";
  if (name == "modules.json" && !is_list_of_its_own_modules(root))
    return "names modules that sentence-transformers would import and call";
  std::string why = first_code(root, name == "model_index.json");
  return why.empty() ? place_elsewhere(root) : why;
}

}  // namespace ballast
