// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/data_copy.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/sizes.h"
#include "base/thread_pool.h"
#include "tensor/blocks.h"

namespace ballast::safetensors {
namespace {

// Below it, a system call to copy costs more than passing the bytes through the buffer.
constexpr std::uint64_t kKernelCopyWorthwhile = 64U << 10U;

// A stretch of the output that comes from one stretch of a source, or from tensors.
struct Stretch {
  std::uint64_t begin;  // of the output
  std::uint64_t end;
  std::shared_ptr<const ByteSource> source;  // null: tensors
  std::uint64_t source_offset;

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
};

// Where a row-major tensor lies in a file.
SourceSpan file_span_of(const Tensor& tensor) {
  if (!tensor.is_contiguous() || tensor.bit_offset() % 8 != 0) return {};
  SourceSpan span = tensor.storage()->source_span().value_or(SourceSpan{});
  span.offset += tensor.bit_offset() / 8;
  return span;
}

// Adds to the end, as one with the last stretch where that goes on in the output and in the same source.
void append(std::vector<Stretch>& stretches, const Stretch& next) {
  if (!stretches.empty()) {
    Stretch& last = stretches.back();
    if (last.end == next.begin && last.source == next.source &&
        (!next.source || last.source_offset + last.size() == next.source_offset)) {
      last.end = next.end;
      return;
    }
  }
  stretches.push_back(next);
}

// The data section in stretches that are as long as they can be.
std::vector<Stretch> long_stretches(const Checkpoint& checkpoint, const Layout& layout) {
  std::vector<Stretch> by_source;
  for (const Layout::Place& place : layout.places) {
    if (place.begin == place.end) continue;
    const SourceSpan span = file_span_of(checkpoint[place.tensor].tensor());
    append(by_source, {place.begin, place.end, span.source, span.offset});
  }
  std::vector<Stretch> worthwhile;
  for (Stretch& stretch : by_source) {
    if (stretch.size() < kKernelCopyWorthwhile) stretch.source = nullptr;
    append(worthwhile, stretch);
  }
  return worthwhile;
}

std::vector<Stretch> pieces_of(const std::vector<Stretch>& stretches) {
  std::vector<Stretch> pieces;
  for (const Stretch& stretch : stretches) {
    for (std::uint64_t at = stretch.begin; at < stretch.end; at += kPieceBytes) {
      pieces.push_back({at, std::min(at + kPieceBytes, stretch.end), stretch.source,
                        stretch.source_offset + (at - stretch.begin)});
    }
  }
  return pieces;
}

class Copier {
 public:
  Copier(const Checkpoint& checkpoint, const Layout& layout, AtomicFile& out, const Progress& progress)
      : checkpoint_(checkpoint), layout_(layout), out_(out), progress_(progress) {}

  void run() {
    const std::vector<Stretch> pieces = pieces_of(long_stretches(checkpoint_, layout_));
    parallel_for(pieces.size(), 1, [&](std::uint64_t from, std::uint64_t to) {
      std::vector<std::byte> buffer;
      for (std::uint64_t i = from; i < to && !stopped_; ++i) {
        try {
          copy(pieces[i], buffer);
        } catch (...) {
          stopped_ = true;
          throw;
        }
      }
    });
  }

 private:
  void copy(const Stretch& piece, std::vector<std::byte>& buffer) {
    if (piece.source)
      out_.copy_at(piece.begin, *piece.source, piece.source_offset, piece.size());
    else
      copy_tensors(piece, buffer);
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    done_ += piece.size();
    progress_(done_, layout_.file_size - layout_.head.size());
  }

  // Small tensors share a buffer, so that a hundred thousand of them do not take a hundred thousand writes.
  void copy_tensors(const Stretch& piece, std::vector<std::byte>& buffer) {
    buffer.resize(kBlockBytes);
    std::uint64_t written = piece.begin;
    std::size_t filled = 0;
    const auto flush = [&] {
      out_.write_at(written, std::span(buffer).first(filled));
      written += filled;
      filled = 0;
    };
    // Places lie in the order of the file, so the first that reaches into the piece is found by halving.
    auto place = std::partition_point(layout_.places.begin(), layout_.places.end(),
                                      [&](const Layout::Place& p) { return p.end <= piece.begin; });
    for (; place != layout_.places.end() && place->begin < piece.end; ++place) {
      std::uint64_t at = std::max(place->begin, piece.begin);
      const std::uint64_t end = std::min(place->end, piece.end);
      if (at < end && end - at > kBlockBytes - filled) flush();
      const Tensor tensor = checkpoint_[place->tensor].tensor();
      while (at < end) {
        const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, kBlockBytes - filled));
        tensor.read(at - place->begin, std::span(buffer).subspan(filled, count));
        at += count;
        filled += count;
        if (filled == kBlockBytes) flush();
      }
    }
    flush();
  }

  const Checkpoint& checkpoint_;
  const Layout& layout_;
  AtomicFile& out_;
  const Progress& progress_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace

void copy_data(const Checkpoint& checkpoint, const Layout& layout, AtomicFile& out,
               const Progress& progress) {
  Copier(checkpoint, layout, out, progress).run();
  const Storage* last = nullptr;
  for (const Layout::Place& place : layout.places) {
    const auto storage = checkpoint[place.tensor].tensor().storage();
    if (storage.get() != last) storage->check_unchanged();
    last = storage.get();
  }
}

void copy_tensor(const Tensor& tensor, AtomicFile& out, std::uint64_t offset) {
  for_each_block(
      tensor, [&](std::uint64_t at, std::span<const std::byte> bytes) { out.write_at(offset + at, bytes); });
}

}  // namespace ballast::safetensors
