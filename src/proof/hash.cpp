// SPDX-License-Identifier: Apache-2.0
#include "ballast/hash.h"

#include <algorithm>
#include <bit>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/largest_first.h"
#include "base/shared_progress.h"
#include "base/sizes.h"
#include "checkpoint/marks.h"
#include "checkpoint/require_data.h"
#include "checkpoint/tree_quantization.h"
#include "tensor/blocks.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

constexpr std::string_view kTensorTag = "ballast tensor 1\n";
constexpr std::string_view kRootTag = "ballast tensors 1\n";

void update_number(Sha256& sha, std::uint64_t number) {
  sha.update(std::as_bytes(std::span(&number, 1)));  // little-endian: see base/bytes.h
}

void update_text(Sha256& sha, std::string_view text) {
  update_number(sha, text.size());
  sha.update(as_bytes(text));
}

void update_bits(Sha256& sha, double number) {
  update_number(sha, std::bit_cast<std::uint64_t>(number));
}

void update_numbers(Sha256& sha, const Tensor& numbers) {
  const Tensor wide = numbers.to(DType::f64);
  update_number(sha, static_cast<std::uint64_t>(wide.numel()));
  for_each_block(wide, [&](std::uint64_t, std::span<const std::byte> bytes) { sha.update(bytes); });
}

// What the integers of a quantized tensor stand for.
void update_quantization(Sha256& sha, const Quantization& quantization) {
  update_text(sha, quantization.scheme);
  if (!quantization.scales.defined()) {
    update_bits(sha, quantization.scale);
    update_number(sha, static_cast<std::uint64_t>(quantization.zero_point));
    return;
  }
  update_number(sha, static_cast<std::uint64_t>(quantization.axis));
  update_numbers(sha, quantization.scales);
  update_numbers(sha, quantization.zero_points);
}

// docs/proof.md.
Sha256::Digest digest_of(const Entry& entry, const TreeQuantization& quantized, SharedProgress& progress) {
  Sha256 sha;
  sha.update(as_bytes(kTensorTag));
  update_text(sha, entry.name);
  update_text(sha, info(entry.dtype).code);
  update_number(sha, entry.shape.size());
  for (const std::int64_t dim : entry.shape) update_number(sha, static_cast<std::uint64_t>(dim));
  for_each_block(entry.tensor(), [&](std::uint64_t, std::span<const std::byte> bytes) {
    sha.update(bytes);
    progress.add(bytes.size());
  });
  if (const TensorValue* value = quantized.find(entry.tensor()))
    update_quantization(sha, *value->quantization);
  return sha.finish();
}

std::string root_of(std::vector<Sha256::Digest> digests) {
  std::sort(digests.begin(), digests.end());
  Sha256 sha;
  sha.update(as_bytes(kRootTag));
  for (const Sha256::Digest& digest : digests) sha.update(digest);
  return hex(sha.finish());
}

}  // namespace

Manifest hash(const Checkpoint& in, const Progress& progress) {
  const Checkpoint checkpoint = marks::with_ties(in);
  require_data(checkpoint, display(in.path));
  std::vector<std::uint64_t> sizes;
  for (const Entry& entry : checkpoint) sizes.push_back(entry.bytes);
  SharedProgress shared(progress, checkpoint.total_bytes());
  std::vector<Sha256::Digest> digests(checkpoint.size());
  const TreeQuantization quantized(checkpoint);
  largest_first(sizes, [&](std::size_t i) { digests[i] = digest_of(checkpoint[i], quantized, shared); });
  ChangeCheck check_unchanged;
  for (const Entry& entry : checkpoint) check_unchanged(entry.tensor());
  Manifest manifest;
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    const Entry entry = checkpoint[i];
    manifest.tensors.push_back({std::string(entry.name),
                                std::string(info(entry.dtype).code),
                                {entry.shape.begin(), entry.shape.end()},
                                entry.bytes,
                                hex(digests[i])});
  }
  std::sort(manifest.tensors.begin(), manifest.tensors.end(),
            [](const TensorHash& a, const TensorHash& b) { return a.name < b.name; });
  manifest.root = root_of(std::move(digests));
  return manifest;
}

std::string hash_file(const std::string& path, const Progress& progress) {
  return sha256_of(*File::open(path), progress);
}

}  // namespace ballast
