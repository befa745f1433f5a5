// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include "ballast/module.h"
#include "base/checked.h"

namespace ballast::detail {
namespace {

// The bytes of its storage that a tensor lies on, [first, end).
std::pair<std::uint64_t, std::uint64_t> bytes_under(const Tensor& tensor) {
  auto low = static_cast<std::int64_t>(tensor.bit_offset());
  std::int64_t high = low + info(tensor.dtype()).bits;
  for (std::size_t i = 0; i < tensor.rank(); ++i) {
    const std::int64_t reach = (tensor.shape()[i] - 1) * tensor.strides()[i] * info(tensor.dtype()).bits;
    (reach < 0 ? low : high) += reach;
  }
  return {static_cast<std::uint64_t>(low) / 8, (static_cast<std::uint64_t>(high) + 7) / 8};
}

// A part of an old storage that tensors lie on, and its copy.
struct CopiedBlock {
  std::uint64_t first;
  std::uint64_t end;
  std::shared_ptr<const Storage> copy;
};

bool lies_on_bytes(const Tensor& tensor) {
  return tensor.defined() && tensor.has_data() && tensor.numel() > 0;
}

}  // namespace

struct TensorCopies::State {
  std::map<const Storage*, std::vector<CopiedBlock>> blocks;  // in order, apart from each other
  std::map<const void*, std::shared_ptr<void>> shared;
};

TensorCopies::TensorCopies(const Slots& slots) : state_(std::make_shared<State>()) {
  for (const Slot& slot : slots.slots) {
    if (!lies_on_bytes(*slot.tensor)) continue;
    const auto [first, end] = bytes_under(*slot.tensor);
    state_->blocks[slot.tensor->storage().get()].push_back({first, end, nullptr});
  }
  for (auto& [storage, blocks] : state_->blocks) {
    std::sort(blocks.begin(), blocks.end(),
              [](const CopiedBlock& a, const CopiedBlock& b) { return a.first < b.first; });
    std::vector<CopiedBlock> joined;
    for (const CopiedBlock& block : blocks) {
      if (joined.empty() || block.first >= joined.back().end)
        joined.push_back(block);
      else
        joined.back().end = std::max(joined.back().end, block.end);
    }
    blocks = std::move(joined);
    for (CopiedBlock& block : blocks) {
      auto memory = Storage::heap(block.end - block.first);
      storage->read(block.first, {memory->mutable_data(), static_cast<std::size_t>(block.end - block.first)});
      block.copy = std::move(memory);
    }
  }
}

Tensor TensorCopies::operator()(const Tensor& tensor) const {
  const auto found =
      lies_on_bytes(tensor) ? state_->blocks.find(tensor.storage().get()) : state_->blocks.end();
  if (found == state_->blocks.end()) return tensor;
  const std::uint64_t first = bytes_under(tensor).first;
  auto block = std::upper_bound(found->second.begin(), found->second.end(), first,
                                [](std::uint64_t byte, const CopiedBlock& one) { return byte < one.first; });
  if (block == found->second.begin()) return tensor;
  --block;
  if (bytes_under(tensor).second > block->end) return tensor;
  return {tensor.dtype(), tensor.shape(), tensor.strides(), block->copy,
          tensor.bit_offset() - block->first * 8};
}

std::shared_ptr<void>& TensorCopies::shared(const void* object) {
  return state_->shared[object];
}

void require_type(const std::type_info& found, const std::type_info& wanted) {
  if (found != wanted)
    fail(Errc::unsupported, "copy", "a pointer to {} holds the derived {}, which copy() cannot make",
         wanted.name(), found.name());
}

}  // namespace ballast::detail
