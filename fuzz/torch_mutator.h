// SPDX-License-Identifier: Apache-2.0
// PickleMutator for the pickles inside of files: zip archives are put together again with sizes and checksums
// that are right, legacy streams keep what is around their object, and a bare pickle may get a container with
// the storages it names.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32.h"
#include "pickle_mutator.h"

namespace ballast::fuzzing {

struct ZipPart {
  std::string name;
  std::string data;
};

inline std::uint64_t number_at(std::string_view file, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  if (at + bytes <= file.size()) std::memcpy(&value, file.data() + at, bytes);
  return value;
}

/// The stored entries; nullopt when it is no archive a mutator can put together again.
inline std::optional<std::vector<ZipPart>> take_apart(std::string_view file) {
  std::size_t at = file.rfind("PK\5\6");
  if (!file.starts_with("PK\3\4") || at == std::string_view::npos) return std::nullopt;
  std::vector<ZipPart> parts;
  std::size_t count = number_at(file, at + 10, 2);
  at = number_at(file, at + 16, 4);
  for (; count > 0; --count) {
    if (at + 46 > file.size() || file.substr(at, 4) != "PK\1\2" || number_at(file, at + 10, 2) != 0)
      return std::nullopt;
    const std::size_t size = number_at(file, at + 24, 4);
    const std::size_t name = number_at(file, at + 28, 2);
    const std::size_t local = number_at(file, at + 42, 4);
    const std::size_t data = local + 30 + number_at(file, local + 26, 2) + number_at(file, local + 28, 2);
    if (at + 46 + name > file.size() || data + size > file.size()) return std::nullopt;
    parts.push_back({std::string(file.substr(at + 46, name)), std::string(file.substr(data, size))});
    at += 46 + name + number_at(file, at + 30, 2) + number_at(file, at + 32, 2);
  }
  return parts;
}

inline std::string put_together(const std::vector<ZipPart>& parts) {
  std::string file;
  std::string directory;
  for (const ZipPart& part : parts) {
    const auto crc = crc32(0, std::as_bytes(std::span(part.data)));
    const std::string shared = Pieces::le(20, 2) + Pieces::le(0, 4) + Pieces::le(0x210000, 4) +
                               Pieces::le(crc, 4) + Pieces::le(part.data.size(), 4) +
                               Pieces::le(part.data.size(), 4) + Pieces::le(part.name.size(), 2) +
                               Pieces::le(0, 2);
    directory += "PK\1\2" + Pieces::le(20, 2) + shared + std::string(10, '\0') + Pieces::le(file.size(), 4) +
                 part.name;
    file += "PK\3\4" + shared + part.name + part.data;
  }
  const std::string count = Pieces::le(parts.size(), 2);
  const std::size_t begin = file.size();
  return file + directory + "PK\5\6" + Pieces::le(0, 4) + count + count + Pieces::le(directory.size(), 4) +
         Pieces::le(begin, 4) + Pieces::le(0, 2);
}

/// Bytes up to and with STOP, or all of them.
inline std::size_t pickle_end(std::string_view code) {
  std::size_t at = 0;
  while (at < code.size()) {
    const bool stops = code[at] == '.';
    at += opcode_length(code.substr(at));
    if (stops) break;
  }
  return at;
}

class TorchMutator {
 public:
  TorchMutator(std::uint32_t seed, std::size_t max_size) : random_(seed), seed_(seed), max_size_(max_size) {}

  std::string mutate(std::string_view file) {
    std::string made;
    if (once_in(8))
      made = as_bytes(file);
    else if (auto parts = take_apart(file); parts && !parts->empty())
      made = in_zip(std::move(*parts));
    else if (file.find(kMagic) < 64)
      made = in_stream(file);
    else if (!file.empty() && file[0] == '\x80')
      made = wrapped(PickleMutator(seed_, max_size_).mutate(file));
    else
      made = as_bytes(file);
    return made.size() <= max_size_ ? made : std::string(file.substr(0, max_size_));
  }

 private:
  static constexpr std::string_view kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

  bool once_in(std::size_t count) { return random_() % count == 0; }

  std::string as_bytes(std::string_view file) {
    std::string bytes(file.substr(0, max_size_));
    const std::size_t size = bytes.size();
    bytes.resize(std::min(max_size_, size + 256));
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), size, bytes.size()));
    return bytes;
  }

  static bool mentions(std::string_view pickle, std::string_view key) {
    return pickle.find(Pieces::text(key)) != std::string_view::npos;
  }

  static std::string content_of(const PieceStorage& storage) {
    std::string bytes(kPieceStorageBytes, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<char>(storage.scalar == "Bool" ? i % 2 : i * 3 + storage.numel);
    return bytes;
  }

  std::string in_zip(std::vector<ZipPart> parts) {
    std::vector<std::size_t> pickles;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].name.ends_with("data.pkl") || (once_in(4) && parts[i].name.ends_with(".pkl")))
        pickles.push_back(i);
    }
    if (pickles.empty()) return put_together(parts);
    ZipPart& chosen = parts[pickles[random_() % pickles.size()]];
    chosen.data = PickleMutator(seed_, max_size_).mutate(chosen.data);
    const std::string folder = chosen.name.substr(0, chosen.name.rfind('/') + 1) + "data/";
    add_storages(chosen.data, folder, parts);
    return put_together(parts);
  }

  // By value: the parts grow.
  static void add_storages(std::string pickle, const std::string& folder, std::vector<ZipPart>& parts) {
    for (const PieceStorage& storage : kPieceStorages) {
      const std::string name = folder + std::string(storage.key);
      const bool is_there =
          std::any_of(parts.begin(), parts.end(), [&](const ZipPart& part) { return part.name == name; });
      if (!is_there && mentions(pickle, storage.key)) parts.push_back({name, content_of(storage)});
    }
  }

  // magic, version, sys_info, object, keys, storages
  std::string in_stream(std::string_view file) {
    std::size_t begin = 0;
    for (std::size_t skipped = once_in(8) ? random_() % 5 : 3; skipped > 0; --skipped)
      begin += pickle_end(file.substr(begin));
    const std::size_t end = begin + pickle_end(file.substr(begin));
    const std::string pickle = PickleMutator(seed_, max_size_).mutate(file.substr(begin, end - begin));
    if (once_in(2)) return std::string(file.substr(0, begin)) + pickle + std::string(file.substr(end));
    return std::string(file.substr(0, begin)) + pickle + tail_of(pickle);
  }

  // The keys of a legacy stream and its storages.
  static std::string tail_of(std::string_view pickle) {
    std::string keys = "\x80\x02](";
    std::string content;
    for (const PieceStorage& storage : kPieceStorages) {
      if (!mentions(pickle, storage.key)) continue;
      keys += Pieces::text(storage.key);
      content += Pieces::le(storage.numel, 8) + content_of(storage);
    }
    return keys + "e." + content;
  }

  // A bare pickle cannot have storages.
  std::string wrapped(const std::string& pickle) {
    if (once_in(3)) return pickle;
    if (once_in(2))
      return std::string("\x80\x02") + std::string(kMagic) + ".\x80\x02M\xe9\x03.\x80\x02}." + pickle +
             tail_of(pickle);
    std::vector<ZipPart> parts = {{"archive/data.pkl", pickle}, {"archive/version", "3\n"}};
    add_storages(pickle, "archive/data/", parts);
    return put_together(parts);
  }

  Random random_;
  std::uint32_t seed_;
  std::size_t max_size_;
};

}  // namespace ballast::fuzzing
