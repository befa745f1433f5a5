// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "ballast/runtime.h"

namespace py {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{4} << 20U;

// Pieces of many things, each done once by whoever comes first.
struct Piece {
  std::size_t item;
  std::uint64_t offset;
  std::uint64_t length;
};

std::vector<Piece> pieces_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<Piece> pieces;
  for (std::size_t item = 0; item < sizes.size(); ++item) {
    for (std::uint64_t offset = 0; offset < sizes[item]; offset += kPiece)
      pieces.push_back({item, offset, std::min(kPiece, sizes[item] - offset)});
  }
  return pieces;
}

void for_each_piece(const std::vector<Piece>& pieces, const ballast::Progress& progress,
                    const std::function<void(const Piece&)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < pieces.size(); i = next++) {
        work(pieces[i]);
        if (progress) progress(i, pieces.size());  // what it throws ends the work
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = pieces.size();
    }
  };
  const auto wanted = std::min<std::size_t>(static_cast<std::size_t>(ballast::thread_count()), pieces.size());
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < wanted; ++i) others.emplace_back(run);
    } catch (const std::system_error&) {  // as many as there may be
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

std::span<std::byte> bytes_of(ballast::Storage& storage) {
  return {storage.mutable_data(), static_cast<std::size_t>(storage.size())};
}

}  // namespace

ballast::Tensor copy_of(const ballast::Tensor& tensor) {
  ballast::Tensor copy = ballast::Tensor::empty(tensor.dtype(), tensor.shape());
  if (tensor.numel() > 0)
    tensor.read(0, {copy.mutable_data(), static_cast<std::size_t>(tensor.size_bytes())});
  return copy;
}

ballast::Checkpoint with_own_memory(const ballast::Checkpoint& checkpoint,
                                    const ballast::Progress& progress) {
  struct Copy {
    ballast::Tensor source;  // of the bytes as they lie
    std::shared_ptr<ballast::Storage> target;
  };

  std::vector<Copy> copies;
  std::unordered_map<const ballast::Storage*, std::size_t> known;
  std::vector<std::optional<std::size_t>> copy_for;
  std::vector<ballast::Tensor> tensors;
  for (const ballast::Entry entry : checkpoint) {
    tensors.push_back(entry.tensor());
    const ballast::Tensor& tensor = tensors.back();
    copy_for.emplace_back();
    if (!tensor.has_data()) continue;
    const auto& storage = tensor.storage();
    if (storage->holds_many()) {  // to be in it does not tie tensors
      copy_for.back() = copies.size();
      copies.push_back({tensor, ballast::Storage::heap(tensor.size_bytes())});
      continue;
    }
    const auto [found, is_new] = known.emplace(storage.get(), copies.size());
    copy_for.back() = found->second;
    if (!is_new) continue;
    const auto size = static_cast<std::int64_t>(storage->size());
    copies.push_back({ballast::Tensor::contiguous_view(ballast::DType::u8, {size}, storage),
                      ballast::Storage::heap(storage->size())});
  }

  std::vector<std::uint64_t> sizes;
  for (const Copy& copy : copies) sizes.push_back(copy.target->size());
  for_each_piece(pieces_of(sizes), progress, [&](const Piece& piece) {
    const Copy& copy = copies[piece.item];
    copy.source.read(piece.offset, bytes_of(*copy.target).subspan(piece.offset, piece.length));
  });

  ballast::Checkpoint named;
  named.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ballast::Tensor& tensor = tensors[i];
    if (!copy_for[i]) {
      named.add(checkpoint[i].name, tensor);
      continue;
    }
    const auto& target = copies[*copy_for[i]].target;
    named.add(
        checkpoint[i].name,
        tensor.storage()->holds_many()
            ? ballast::Tensor::contiguous_view(tensor.dtype(), tensor.shape(), target)
            : ballast::Tensor(tensor.dtype(), tensor.shape(), tensor.strides(), target, tensor.bit_offset()));
  }
  named.metadata = checkpoint.metadata;
  named.notes = checkpoint.notes;
  named.format = checkpoint.format;
  named.path = checkpoint.path;
  named.tree = checkpoint.tree;
  return named;
}

void copy_bytes(const std::vector<ByteCopy>& copies) {
  std::vector<std::uint64_t> sizes;
  for (const ByteCopy& copy : copies) sizes.push_back(copy.size);
  for_each_piece(pieces_of(sizes), {}, [&](const Piece& piece) {
    const ByteCopy& copy = copies[piece.item];
    std::memcpy(copy.target + piece.offset, copy.source + piece.offset, piece.length);
  });
}

void bring_in(const ballast::Checkpoint& checkpoint, const ballast::Progress& progress) {
#ifdef MADV_POPULATE_READ
  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
  };

  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  std::vector<Range> ranges;
  std::vector<const ballast::Storage*> seen;
  for (const ballast::Entry entry : checkpoint) {
    const ballast::Tensor tensor = entry.tensor();
    if (!tensor.has_data() || tensor.storage()->size() == 0 || !tensor.storage()->ready()) continue;
    if (!seen.empty() && seen.back() == tensor.storage().get()) continue;
    seen.push_back(tensor.storage().get());
    const auto begin = reinterpret_cast<std::uintptr_t>(tensor.storage()->data());
    ranges.push_back({begin / page * page, begin + tensor.storage()->size()});
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.begin <= merged.back().end + page) {
      merged.back().end = std::max(merged.back().end, range.end);
    } else {
      merged.push_back(range);
    }
  }
  std::vector<std::uint64_t> sizes;
  for (const Range& range : merged) sizes.push_back(range.end - range.begin);
  for_each_piece(pieces_of(sizes), progress, [&](const Piece& piece) {
    // Only a hint: where the kernel does not know it, the pages come when they are touched.
    madvise(reinterpret_cast<void*>(merged[piece.item].begin + piece.offset), piece.length,
            MADV_POPULATE_READ);
  });
#else
  static_cast<void>(checkpoint);
  static_cast<void>(progress);
#endif
}

}  // namespace py
