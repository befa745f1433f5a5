// SPDX-License-Identifier: Apache-2.0
// Pickles and legacy streams, written by hand for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/storage.h"
#include "formats/open.h"

namespace ballast::testing::pickle {

using namespace std::string_literals;

inline std::string le(std::uint64_t value, std::size_t bytes) {
  std::string text(bytes, '\0');
  std::memcpy(text.data(), &value, bytes);
  return text;
}

inline std::string text(std::string_view value) {
  return "X" + le(value.size(), 4) + std::string(value);
}

inline std::string integer(std::int64_t value) {
  return "\x8a\x08"s + le(static_cast<std::uint64_t>(value), 8);
}

inline std::string tuple(std::initializer_list<std::int64_t> values) {
  std::string code = "(";
  for (const std::int64_t value : values) code += integer(value);
  return code + "t";
}

inline std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

inline std::string whole(const std::string& code, int protocol = 2) {
  return "\x80"s + static_cast<char>(protocol) + code + ".";
}

inline const std::string kHooks = global("collections", "OrderedDict") + ")R";

/// Persistent id of a storage.
inline std::string storage(std::string_view key, std::string_view type, std::int64_t numel,
                           const std::string& view = "N") {
  return "(" + text("storage") + global("torch", std::string(type) + "Storage") + text(key) + text("cpu") +
         integer(numel) + view + "tQ";
}

inline std::string tensor(const std::string& store, std::int64_t offset, const std::string& sizes,
                          const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + store + integer(offset) + sizes + strides +
         "\x89" + kHooks + "tR";
}

inline std::string dict(std::initializer_list<std::pair<std::string, std::string>> pairs) {
  std::string code = "}(";
  for (const auto& [key, value] : pairs) code += text(key) + value;
  return code + "u";
}

struct Blob {
  std::string key;
  std::uint64_t numel = 0;
  std::string bytes;
};

inline std::string legacy(const std::string& object, const std::vector<Blob>& blobs, int protocol = 2) {
  std::string file = whole("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"s) + whole(integer(1001)) +
                     whole("}") + whole(object, protocol);
  std::string keys = "](";
  for (const Blob& blob : blobs) keys += text(blob.key);
  file += whole(keys + "e");
  for (const Blob& blob : blobs) file += le(blob.numel, 8) + blob.bytes;
  return file;
}

/// 0, 1, 2, … as a storage.
template <class T>
Blob counted(std::string key, std::size_t count) {
  Blob blob{std::move(key), count, {}};
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(i);
    blob.bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return blob;
}

inline const std::vector<Blob> kFloats = {counted<float>("0", 100)};

inline Checkpoint read(const std::string& file, const OpenOptions& options = {}) {
  const auto copy = Storage::heap(file.size());
  if (!file.empty()) std::memcpy(copy->mutable_data(), file.data(), file.size());
  return open_bytes(copy, options);
}

/// The code a file is refused with.
inline Errc refusal(const std::string& file) {
  try {
    static_cast<void>(read(file));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was refused";
  return Errc::io_error;
}

inline Errc refusal_of(const std::string& code, int protocol = 2) {
  return refusal(whole(code, protocol));
}

}  // namespace ballast::testing::pickle
