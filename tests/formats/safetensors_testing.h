// SPDX-License-Identifier: Apache-2.0
// What the Safetensors tests share: files made from a header and some data, the conformance cases, names for
// temporary files.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/safetensors.h"
#include "ballast/storage.h"
#include "base/error_of.h"

namespace ballast::safetensors {

/// The bytes of a file: length, header, data.
inline std::string file_of(std::string_view header, std::string_view data = {}) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}

inline std::string numbers(std::size_t count) {
  std::string data(count, '\0');
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<char>(i * 37 + i / 256 * 101 + 11);
  return data;
}

/// A storage that owns a copy, exactly as large as it says: a read beyond it is seen by the sanitizers.
inline std::shared_ptr<const Storage> in_memory(std::string_view bytes) {
  const std::shared_ptr<char[]> copy(new char[bytes.size()]);
  bytes.copy(copy.get(), bytes.size());
  return Storage::borrow(static_cast<const void*>(copy.get()), bytes.size(), [copy] {});
}

inline std::string new_path(std::string_view extension = ".safetensors") {
  static std::atomic<int> count{0};
  return fmt::format("{}/st_{}_{}{}", BALLAST_TEST_OUTPUT, getpid(), count++, extension);
}

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view bytes) : path_(new_path()) {
    std::ofstream(path_, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A folder of its own, gone afterwards: to see that nothing is left in it.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(new_path("")) { std::filesystem::create_directory(path_); }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::string path_;
};

struct Case {
  std::string name;
  std::string file;
  std::string verdict;
  std::string detail;
};

inline std::vector<Case> conformance_cases() {
  std::vector<Case> cases;
  std::ifstream in(std::string(BALLAST_TEST_DATA) + "/formats/safetensors/cases.tsv");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#') || line.starts_with("case\t")) continue;
    std::istringstream fields(line);
    Case test;
    std::string hex;
    std::getline(fields, test.name, '\t');
    std::getline(fields, hex, '\t');
    std::getline(fields, test.verdict, '\t');
    std::getline(fields, test.detail, '\t');
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      test.file += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    cases.push_back(std::move(test));
  }
  return cases;
}

/// Errc::load_failed, which nothing here throws, when nothing is thrown.
template <class Work>
Errc code_of(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return Errc::load_failed;
}

}  // namespace ballast::safetensors
