// SPDX-License-Identifier: Apache-2.0
#include "formats/beside.h"

#include <algorithm>
#include <filesystem>

#include "ballast/error.h"
#include "base/ascii.h"
#include "base/bytes.h"
#include "base/words.h"
#include "checkpoint/value_json.h"
#include "formats/beside_json.h"
#include "formats/beside_template.h"

namespace ballast {
namespace {

using std::literals::operator""sv;

// What people read, and lists of words: no loader runs them, or anything that they name.
constexpr std::string_view kTextEnds[] = {".md",  ".txt",   ".rst", ".csv", ".tsv",   ".jsonl",    ".bib",
                                          ".bpe", ".vocab", ".svg", ".sig", ".jinja", ".tiktoken", ".sha256"};
constexpr std::string_view kTextNames[] = {".gitattributes", ".gitignore", "readme",         "license",
                                           "licence",        "notice",     "copying",        "changelog",
                                           "authors",        "use_policy", "license.apache", "license.mit"};
// SentencePiece's, which are messages of protobuf without code.
constexpr std::string_view kVocabularies[] = {
    "tokenizer.model",     "spiece.model", "sentencepiece.bpe.model",
    "sentencepiece.model", "source.spm",   "target.spm"};
constexpr std::string_view kPictures[] = {"\x89PNG\r\n\x1a\n"sv, "\xff\xd8\xff"sv, "GIF8"sv, "RIFF"sv};
constexpr std::string_view kPictureEnds[] = {".png", ".jpg", ".jpeg", ".gif", ".webp"};

// Some file systems take "x.py." for "x.py".
std::string lower_file_name(const std::string& name) {
  std::string lower = lowered(std::filesystem::path(name).filename().string());
  while (!lower.empty() && (lower.back() == '.' || lower.back() == ' ')) lower.pop_back();
  return lower;
}

// Why a JSON file is not inert; "" when it is.
std::string code_in_json_file(const ByteSource& file, const std::string& name) {
  if (file.size() > kMaxJsonFile) return "is JSON of more than 64 MiB, which was not looked into";
  try {
    const auto bytes = file.read(0, file.size());
    return code_in_json(parse_json(as_text(bytes), file.where()), lower_file_name(name));
  } catch (const Error& error) {
    return std::string("is no JSON that could be looked into: ") + error.what();
  }
}

std::string code_in_template_file(const ByteSource& file) {
  if (file.size() > kMaxJsonFile) return "is a template of more than 64 MiB, which was not looked into";
  return reaches_into_python(as_text(file.read(0, file.size())))
             ? "is a template that reaches into Python: a loader that does not confine templates runs it"
             : std::string();
}

bool is_picture(const ByteSource& file, std::string_view name) {
  if (!ends_with_one(kPictureEnds, name) || file.size() < 8) return false;
  const auto head = file.read(0, 8);
  return std::any_of(std::begin(kPictures), std::end(kPictures),
                     [&](std::string_view magic) { return as_text(head).starts_with(magic); });
}

bool is_code(std::string_view name) {
  constexpr std::string_view kEnds[] = {".py",   ".pyc", ".pyo", ".pyw",  ".pyz",
                                        ".pyzw", ".whl", ".egg", ".ipynb"};
  return ends_with_one(kEnds, name);
}

bool is_script(std::string_view name) {
  constexpr std::string_view kEnds[] = {".sh",  ".bash", ".zsh", ".fish", ".bat", ".cmd", ".ps1", ".js",
                                        ".mjs", ".cjs",  ".lua", ".rb",   ".pl",  ".php", ".jar"};
  return ends_with_one(kEnds, name);
}

bool is_library(std::string_view name) {
  constexpr std::string_view kEnds[] = {".so", ".pyd", ".dll", ".dylib", ".exe"};
  return ends_with_one(kEnds, name) || name.find(".so.") != std::string_view::npos;
}

}  // namespace

bool is_inert(const ByteSource& file, const std::string& name) {
  if (!what_it_runs(file, name).empty()) return false;
  const std::string lower = lower_file_name(name);
  if (file.size() == 0 || is_among(kVocabularies, lower) || is_picture(file, lower)) return true;
  // What huggingface_hub leaves where it puts files.
  if (name.starts_with(".cache/huggingface/") && (lower.ends_with(".metadata") || lower.ends_with(".lock")))
    return true;
  return lower.ends_with(".json") || ends_with_one(kTextEnds, lower) || is_among(kTextNames, lower);
}

std::string what_it_runs(const ByteSource& file, const std::string& name) {
  if (std::string program = program_by_name(name); !program.empty()) return program;
  const std::string lower = lower_file_name(name);
  if (lower.ends_with(".json")) return code_in_json_file(file, name);
  if (lower.ends_with(".jinja")) return code_in_template_file(file);
  if (lower.find("requirements") != lower.npos) return "lists packages, which servers of models install";
  return {};
}

std::string program_by_name(const std::string& path) {
  constexpr std::string_view kTensorFlow[] = {"saved_model.pb", "saved_model.pbtxt", "keras_metadata.pb",
                                              "fingerprint.pb"};
  const std::string lower = lower_file_name(path);
  if (is_code(lower))
    return "is called as Python is, which loaders of folders run when they trust it (torch.hub: always)";
  if (is_library(lower) || is_script(lower)) return "is called as libraries and programs are";
  if (!is_among(kTensorFlow, lower)) return {};
  return "is called as TensorFlow calls the parts of its programs, which it runs when it loads them";
}

}  // namespace ballast
