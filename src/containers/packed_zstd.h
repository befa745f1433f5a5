// SPDX-License-Identifier: Apache-2.0
// Single planes as zstd frames (RFC 8878): libzstd is seen here alone.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ballast::packed {

/// Huffman codes of the bytes and nothing else: matches, which are chance in weights, cost more than they
/// save. For one thread at a time.
class PlaneCompressor {
 public:
  PlaneCompressor();
  PlaneCompressor(const PlaneCompressor&) = delete;
  PlaneCompressor& operator=(const PlaneCompressor&) = delete;
  ~PlaneCompressor();

  /// The size of the frame written to `out`; 0 when it does not fit there.
  [[nodiscard]] std::size_t compress(std::span<const std::byte> plane, std::span<std::byte> out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class PlaneDecompressor {
 public:
  PlaneDecompressor();
  PlaneDecompressor(const PlaneDecompressor&) = delete;
  PlaneDecompressor& operator=(const PlaneDecompressor&) = delete;
  ~PlaneDecompressor();

  /// `frame` is one whole frame that says it holds plane.size() bytes, and does: Errc::bad_packed otherwise.
  void decompress(std::span<const std::byte> frame, std::span<std::byte> plane, const std::string& where);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ballast::packed
