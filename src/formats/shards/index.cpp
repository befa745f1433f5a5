// SPDX-License-Identifier: Apache-2.0
// *.index.json:
//
//   {"metadata": {"total_size": 123}, "weight_map": {"fc.weight": "model-00001-of-00002.safetensors", …}}
#include <algorithm>
#include <filesystem>
#include <map>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/json_scanner.h"
#include "containers/confine.h"
#include "formats/encrypted.h"
#include "formats/shards/shards.h"

namespace ballast::shards {
namespace {

namespace fs = std::filesystem;

// Plain names only: every shard lies beside its index.
void check_name(std::string_view file, const std::string& where) {
  const bool is_plain = !file.empty() && file != "." && file != ".." &&
                        file.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (!is_plain)
    fail(Errc::path_escape, where, "shard {}: shards lie beside their index, under a plain name",
         ballast::quoted(file));
}

void read_metadata(JsonScanner& json, Index& index) {
  if (json.peek() != JsonScanner::Kind::object) return json.skip_value();
  json.object([&](std::string_view key) {
    if (json.peek() == JsonScanner::Kind::string) {
      std::string name(key);
      index.texts.insert_or_assign(std::move(name), std::string(json.string()));
      return;
    }
    if (key != "total_size" || json.peek() != JsonScanner::Kind::number) return json.skip_value();
    const JsonScanner::Number size = json.number();
    if (size.is_unsigned) index.total_size = size.value;  // old tools wrote floats here
  });
}

}  // namespace

Index parse_index(std::string text, const std::string& where) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "is not UTF-8");
  const std::size_t size = text.size();
  text.resize(size + JsonScanner::kPadding, '\0');
  JsonScanner json({text.data(), size}, where);
  Index index;
  std::map<std::string, std::uint32_t, std::less<>> files;
  bool found = false;
  json.object([&](std::string_view key) {
    if (key == "metadata") return read_metadata(json, index);
    if (key != "weight_map") return json.skip_value();
    if (std::exchange(found, true)) fail(Errc::duplicate_key, where, "two weight_maps");
    json.object([&](std::string_view name) {
      std::string tensor(name);
      const std::string_view file = json.string();
      auto place = files.find(file);
      if (place == files.end()) {
        check_name(file, where);
        if (files.size() == kMaxShards) fail(Errc::too_many, where, "more than {} shards", kMaxShards);
        place = files.emplace(std::string(file), static_cast<std::uint32_t>(files.size())).first;
      }
      index.map.emplace_back(std::move(tensor), place->second);
    });
  });
  json.finish();
  if (!found) fail(Errc::unknown_format, where, "is JSON text without a weight_map: no index of shards");
  // Numbers in the order of appearance become positions in the sorted list.
  std::vector<std::uint32_t> position(files.size());
  for (const auto& [file, number] : files) {
    position[number] = static_cast<std::uint32_t>(index.files.size());
    index.files.push_back(file);
  }
  for (auto& [tensor, file] : index.map) file = position[file];
  std::sort(index.map.begin(), index.map.end());
  const auto twice = std::adjacent_find(index.map.begin(), index.map.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != index.map.end())
    fail(Errc::duplicate_key, where, "tensor {} stands in the weight_map twice",
         ballast::quoted(twice->first));
  return index;
}

Index read_index(const ByteSource& content) {
  if (content.size() > kMaxIndexBytes)
    fail(Errc::header_too_large, content.where(), "{} bytes of JSON, at most {} are read", content.size(),
         kMaxIndexBytes);
  return parse_index(std::string(as_text(content.read(0, content.size()))), content.where());
}

Index read_index(const std::string& path) {
  return read_index(*open_content(path, {.io = Io::read}).content);
}

bool is_encrypted_name(std::string_view path) noexcept {
  return path.ends_with(".age");
}

std::string locate(const std::string& folder, const std::string& file) {
  check_name(file, display(folder));
  return containers::confined(folder, file);
}

bool is_folder(const std::string& path) noexcept {
  std::error_code ignored;
  return path.find('\0') == std::string::npos && fs::is_directory(path, ignored);
}

}  // namespace ballast::shards
