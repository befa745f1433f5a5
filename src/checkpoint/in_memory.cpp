// SPDX-License-Identifier: Apache-2.0
// in_memory(): every tensor's bytes brought into one piece of memory, in the order in which they lie in their
// files, by all threads at once.
#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "ballast/error.h"
#include "ballast/steps.h"
#include "base/checked.h"
#include "base/sizes.h"
#include "base/thread_pool.h"
#include "checkpoint/steps.h"
#include "tensor/sound.h"

namespace ballast {
namespace {

constexpr std::uint64_t kArenaAlignment = 64;
constexpr std::uint64_t kSmallGap = std::uint64_t{4} << 10U;  // cheaper to read than to call again

/// Bytes some tensors look at, in a source or in a storage that is in none.
struct StoredExtent {
  const void* source;  // the ByteSource, else the Storage: what the positions count in
  std::uint64_t begin;
  std::uint64_t end;
  const Storage* storage;
  std::uint64_t storage_at;  // where `begin` is in `storage`
  std::uint64_t place = 0;   // in the arena
};

StoredExtent extent_of(const Tensor& tensor) {
  const Storage& storage = *tensor.storage();
  const ByteRange range = touched_bytes(tensor);
  if (const auto span = storage.source_span())
    return {span->source.get(), span->offset + range.begin, span->offset + range.end, &storage, range.begin};
  return {&storage, range.begin, range.end, &storage, range.begin};
}

bool has_bytes(const Tensor& tensor) {
  return tensor.has_data() && tensor.numel() > 0;
}

bool before(const StoredExtent& a, const StoredExtent& b) {
  return std::tuple(a.source, a.begin, b.end) < std::tuple(b.source, b.begin, a.end);
}

/// Sorted; extents that touch or overlap are one, as far as one storage reaches.
std::vector<StoredExtent> extents_of(const Checkpoint& in) {
  std::vector<StoredExtent> all;
  for (const Entry& entry : in)
    if (const Tensor tensor = entry.tensor(); has_bytes(tensor)) all.push_back(extent_of(tensor));
  std::sort(all.begin(), all.end(), before);
  std::vector<StoredExtent> joined;
  for (const StoredExtent& extent : all) {
    const bool joins = !joined.empty() && joined.back().source == extent.source &&
                       extent.begin <= joined.back().end &&
                       (joined.back().storage == extent.storage || extent.end <= joined.back().end);
    if (joins)
      joined.back().end = std::max(joined.back().end, extent.end);
    else
      joined.push_back(extent);
  }
  return joined;
}

/// Where each extent goes: as far from a multiple of 64 as it was. Returns the arena's size.
std::uint64_t place(std::vector<StoredExtent>& extents, const std::string& where) {
  std::uint64_t next = 0;
  for (StoredExtent& extent : extents) {
    const std::uint64_t misfit =
        (extent.begin % kArenaAlignment + kArenaAlignment - next % kArenaAlignment) % kArenaAlignment;
    extent.place = checked_add(next, misfit, where);
    next = checked_add(extent.place, extent.end - extent.begin, where);
  }
  return next;
}

/// A read: part of one large extent, or several small ones that lie close together.
struct Piece {
  std::size_t first;  // of the extents
  std::size_t count;
  std::uint64_t begin;  // in the source
  std::uint64_t end;
};

std::vector<Piece> pieces_of(const std::vector<StoredExtent>& extents) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const StoredExtent& extent = extents[i];
    const bool in_file = extent.source != extent.storage;
    const bool joins = !pieces.empty() && in_file && extents[i - 1].source == extent.source &&
                       extent.begin >= pieces.back().end && extent.begin - pieces.back().end <= kSmallGap &&
                       extent.end - pieces.back().begin <= kPieceBytes;
    if (joins) {
      ++pieces.back().count;
      pieces.back().end = extent.end;
      continue;
    }
    for (std::uint64_t at = extent.begin; at < extent.end; at += kPieceBytes)
      pieces.push_back({i, 1, at, std::min(extent.end, at + kPieceBytes)});
  }
  return pieces;
}

void bring(const Piece& piece, const std::vector<StoredExtent>& extents, std::byte* arena,
           std::vector<std::byte>& scratch) {
  const StoredExtent& first = extents[piece.first];
  if (piece.count == 1) {
    const std::uint64_t into = piece.begin - first.begin;
    first.storage->read(first.storage_at + into,
                        {arena + first.place + into, static_cast<std::size_t>(piece.end - piece.begin)});
    return;
  }
  scratch.resize(static_cast<std::size_t>(piece.end - piece.begin));
  static_cast<const ByteSource*>(first.source)->read(piece.begin, scratch);
  for (std::size_t i = piece.first; i < piece.first + piece.count; ++i)
    std::memcpy(arena + extents[i].place, scratch.data() + (extents[i].begin - piece.begin),
                static_cast<std::size_t>(extents[i].end - extents[i].begin));
}

/// One block of memory with many unrelated tensors in it.
class Arena final : public Storage {
 public:
  explicit Arena(std::uint64_t size) : Storage(size), memory_(Storage::heap(size)) {}

  [[nodiscard]] const std::byte* data() const override { return memory_->data(); }

  [[nodiscard]] bool holds_many() const noexcept override { return true; }

 private:
  [[nodiscard]] std::byte* writable_data() override { return memory_->mutable_data(); }

  std::shared_ptr<Storage> memory_;
};

Tensor moved(const Tensor& tensor, const std::vector<StoredExtent>& extents,
             const std::shared_ptr<const Storage>& arena) {
  const StoredExtent wanted = extent_of(tensor);
  auto found = std::upper_bound(extents.begin(), extents.end(), wanted,
                                [](const StoredExtent& a, const StoredExtent& b) {
                                  return std::tuple(a.source, a.begin) < std::tuple(b.source, b.begin);
                                });
  --found;  // the last that begins no later; those that end too early were joined or lie in another storage
  while (found->end < wanted.end) --found;
  const std::uint64_t first_byte = found->place + (wanted.begin - found->begin);
  const std::uint64_t bits =
      tensor.bit_offset() - wanted.storage_at * 8;  // from the first byte to element [0, …, 0]
  return {tensor.dtype(), tensor.shape(), tensor.strides(), arena, first_byte * 8 + bits};
}

}  // namespace

Checkpoint in_memory(const Checkpoint& in) {
  std::vector<StoredExtent> extents = extents_of(in);
  const auto arena = std::make_shared<Arena>(place(extents, display(in.path)));
  const std::vector<Piece> pieces = pieces_of(extents);
  parallel_for(pieces.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
    std::vector<std::byte> scratch;
    for (std::uint64_t i = begin; i < end; ++i)
      bring(pieces[static_cast<std::size_t>(i)], extents, arena->mutable_data(), scratch);
  });
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (i == 0 || extents[i].source != extents[i - 1].source) extents[i].storage->check_unchanged();
  Checkpoint out = without_tensors(in);
  out.reserve(in.size());
  for (const Entry& entry : in) {
    const Tensor tensor = entry.tensor();
    out.add(entry.name, has_bytes(tensor) ? moved(tensor, extents, arena) : tensor);
  }
  return out;
}

}  // namespace ballast
