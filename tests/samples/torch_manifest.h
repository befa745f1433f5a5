// SPDX-License-Identifier: Apache-2.0
// What torch.load must find in a sample file, as an entry of manifest.json (read by scripts/check-torch).
#pragma once

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/tensor.h"

namespace ballast {

inline std::string sha256(const Tensor& tensor) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_DigestInit_ex(context, EVP_sha256(), nullptr);
  std::vector<std::byte> block(1U << 20U);
  for (std::uint64_t at = 0; at < tensor.size_bytes(); at += block.size()) {
    const auto piece = std::span(block).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), tensor.size_bytes() - at)));
    tensor.read(at, piece);
    EVP_DigestUpdate(context, piece.data(), piece.size());
  }
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(context, digest.data(), nullptr);
  EVP_MD_CTX_free(context);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

inline std::string text(std::string_view raw) {
  std::string out = "\"";
  for (const char c : raw) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

struct Sample {
  std::string file;
  std::vector<std::string> tensors = {};                         // JSON objects
  std::vector<std::vector<std::string>> shared = {};             // names on one storage
  std::vector<std::pair<std::string, std::string>> values = {};  // path, Python's repr()
  bool legacy = false;
  bool old_weights_only = true;  // torch 1.13's weights_only=True knows everything in it
  std::string root = "";         // class of the root, when it matters
  std::string least = "1.6";     // the first PyTorch that reads it

  // `path` is what to index the loaded object with: keys separated by "/", integers behind "#".
  void expect(const std::string& path, const Tensor& tensor, bool strides = true,
              std::string_view kind = "tensor") {
    const bool pairs = tensor.dtype() == DType::f4;
    Shape shape = tensor.shape();
    if (pairs) shape[shape.size() - 1] /= 2;
    const std::string where =
        strides && !pairs
            ? fmt::format("[{}]", fmt::join(tensor.strides().begin(), tensor.strides().end(), ", "))
            : "null";
    tensors.push_back(fmt::format(
        R"({{"path": {}, "kind": {}, "dtype": {}, "shape": [{}], "strides": {}, "sha256": {}}})", text(path),
        text(kind), text(info(tensor.dtype()).torch_name), fmt::join(shape.begin(), shape.end(), ", "), where,
        tensor.has_data() ? text(sha256(tensor)) : "null"));
  }
};

inline std::string json(const Sample& sample) {
  std::vector<std::string> shared;
  for (const auto& names : sample.shared) {
    std::vector<std::string> quoted_names;
    for (const std::string& each : names) quoted_names.push_back(text(each));
    shared.push_back(fmt::format("[{}]", fmt::join(quoted_names, ", ")));
  }
  std::vector<std::string> values;
  for (const auto& [path, repr] : sample.values)
    values.push_back(fmt::format("[{}, {}]", text(path), text(repr)));
  return fmt::format(
      "{{\"file\": {}, \"legacy\": {}, \"old_weights_only\": {}, \"root\": {}, \"least\": {},\n \"tensors\": "
      "[\n  {}],\n \"shared\": [{}],\n \"values\": [{}]}}",
      text(sample.file), sample.legacy, sample.old_weights_only, text(sample.root), text(sample.least),
      fmt::join(sample.tensors, ",\n  "), fmt::join(shared, ", "), fmt::join(values, ",\n  "));
}

}  // namespace ballast
