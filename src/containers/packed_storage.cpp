// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/hash_xxh3.h"
#include "base/lazy.h"
#include "base/thread_pool.h"
#include "containers/packed.h"
#include "tensor/streamed.h"

namespace ballast::packed {
namespace {

constexpr std::string_view kMagic = "BPT1";

std::string where_of(const Said& said) {
  return said.file + ": packed tensor " + quoted(said.name);
}

// Where the blocks lie.
struct Table {
  std::uint64_t block_bytes = 0;      // unpacked, of all but the last
  std::vector<std::uint64_t> starts;  // in the stored bytes
  std::vector<std::uint32_t> sizes;
};

Table read_table(const Storage& stored, const Said& said) {
  const std::string where = where_of(said);
  if (stored.size() < kBlobHead) fail(Errc::bad_packed, where, "its {} bytes have no head", stored.size());
  std::array<std::byte, kBlobHead> head{};
  stored.read(0, head);
  if (as_text(head).substr(0, kMagic.size()) != kMagic)
    fail(Errc::bad_packed, where, "does not begin with {}", kMagic);
  const auto item = std::to_integer<unsigned>(head[4]);
  if (item != element_bytes(said.how))
    fail(Errc::bad_packed, where, "elements of {} bytes, its dtype has {}", item, element_bytes(said.how));
  const auto log2 = std::to_integer<unsigned>(head[5]);
  if (log2 < kLeastLog2 || log2 > kMostLog2)
    fail(Errc::bad_packed, where, "blocks of 2^{} elements; 2^{} to 2^{} are allowed", log2, kLeastLog2,
         kMostLog2);
  if (load_le<std::uint16_t>(head.data() + 6) != 0) fail(Errc::bad_packed, where, "bytes 6 and 7 are not 0");
  const auto elements = load_le<std::uint64_t>(head.data() + 8);
  if (elements != said.bytes / item)
    fail(Errc::bad_packed, where, "{} elements, its shape has {}", elements, said.bytes / item);
  const std::uint64_t blocks = elements == 0 ? 0 : ((elements - 1) >> log2) + 1;
  if (blocks > (stored.size() - kBlobHead) / 4 || first_block(blocks) > stored.size())
    fail(Errc::bad_packed, where, "its {} bytes have no room for the sizes of {} blocks", stored.size(),
         blocks);
  std::vector<std::byte> bytes(static_cast<std::size_t>(first_block(blocks) - kBlobHead));
  stored.read(kBlobHead, bytes);
  Table table{.block_bytes = std::uint64_t{item} << log2, .starts = {}, .sizes = {}};
  table.starts.reserve(static_cast<std::size_t>(blocks));
  table.sizes.reserve(static_cast<std::size_t>(blocks));
  std::uint64_t at = first_block(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto size = load_le<std::uint32_t>(bytes.data() + 4 * i);
    table.starts.push_back(at);
    table.sizes.push_back(size);
    at += padded_block(size);
    const std::uint64_t most = kBlockHead + 4 * (kMostRest + 1) + table.block_bytes;
    if (size > most) fail(Errc::bad_packed, where, "block {} has {} bytes, {} at most", i, size, most);
  }
  if (at != stored.size())
    fail(Errc::bad_packed, where, "its blocks end at byte {}, its bytes at {}", at, stored.size());
  if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(4 * blocks), bytes.end(),
                  [](std::byte b) { return b != std::byte{0}; }))
    fail(Errc::bad_packed, where, "bytes between the sizes and the blocks are not 0");
  return table;
}

// What a thread works in, and the block it looked at last: reads of small parts go through a block in order.
struct Workspace {
  BlockUnpacker unpacker;
  std::vector<std::byte> stored;
  std::uint64_t owner = 0;  // of the block below; 0: none
  std::uint64_t index = 0;
  std::vector<std::byte> block;
};

Workspace& workspace() {
  thread_local Workspace mine;
  return mine;
}

constinit std::atomic<std::uint64_t> last_number{0};

class UnpackedStorage final : public ComputedStorage {
 public:
  UnpackedStorage(std::shared_ptr<const Storage> stored, Said said)
      : ComputedStorage(said.bytes), stored_(std::move(stored)), said_(std::move(said)) {}

  [[nodiscard]] std::optional<std::uint64_t> packed_size() const override { return stored_->size(); }

  void check_unchanged() const override { stored_->check_unchanged(); }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    if (is_sound_ || (said_.writable && ready())) return;  // somebody may have written to them
    const Table& places = table();
    Xxh3 hash;
    std::vector<std::byte> block(static_cast<std::size_t>(std::min(places.block_bytes, size())));
    for (std::uint64_t i = 0; i < places.sizes.size(); ++i) {
      const auto raw = std::span(block).first(raw_bytes(i));
      unpack_block(i, raw);
      hash.update(raw);
    }
    if (hash.digest() != said_.xxh3)
      fail(Errc::bad_crc, said_.file,
           "tensor {}: its bytes have the checksum {}, the file says {} (damaged on the way?)",
           quoted(said_.name), hex(hash.digest()), hex(said_.xxh3));
    is_sound_ = true;
  }

 private:
  // This process's own memory, whatever becomes of the file.
  [[nodiscard]] std::byte* writable_data() override {
    return said_.writable ? const_cast<std::byte*>(data()) : nullptr;
  }

  [[nodiscard]] const Table& table() const {
    return table_.get([this] { return read_table(*stored_, said_); });
  }

  [[nodiscard]] std::size_t raw_bytes(std::uint64_t block) const {
    const std::uint64_t whole = table().block_bytes;
    return static_cast<std::size_t>(std::min(whole, size() - block * whole));
  }

  void compute(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    const std::uint64_t whole = table().block_bytes;
    const std::uint64_t first = offset / whole;
    const std::uint64_t last = (offset + out.size() - 1) / whole;
    parallel_for(last - first + 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = first + begin; i < first + end; ++i) {
        const std::uint64_t from = std::max(offset, i * whole);
        const std::uint64_t to = std::min(offset + out.size(), (i + 1) * whole);
        const auto part =
            out.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from));
        if (part.size() == raw_bytes(i))
          unpack_block(i, part);
        else
          copy_part(i, static_cast<std::size_t>(from - i * whole), part);
      }
    });
  }

  // From a copy of its own, so that nobody changes the bytes between their check and their use.
  void unpack_block(std::uint64_t index, std::span<std::byte> raw) const {
    Workspace& mine = workspace();
    const Table& places = table();
    const std::size_t size = places.sizes[static_cast<std::size_t>(index)];
    const auto padded = static_cast<std::size_t>(padded_block(size));
    mine.stored.resize(std::max(mine.stored.size(), padded + BlockUnpacker::kSlack));
    stored_->read(places.starts[static_cast<std::size_t>(index)], std::span(mine.stored).first(padded));
    const auto where = [&] { return fmt::format("{}, block {}", where_of(said_), index); };
    if (std::any_of(mine.stored.begin() + static_cast<std::ptrdiff_t>(size),
                    mine.stored.begin() + static_cast<std::ptrdiff_t>(padded),
                    [](std::byte b) { return b != std::byte{0}; }))
      fail(Errc::bad_packed, where(), "bytes behind the block are not 0");
    mine.unpacker.unpack(said_.how, std::span<const std::byte>(mine.stored).first(size), raw, where());
  }

  void copy_part(std::uint64_t index, std::size_t from, std::span<std::byte> out) const {
    Workspace& mine = workspace();
    if (mine.owner != number_ || mine.index != index) {
      mine.owner = 0;
      mine.block.resize(raw_bytes(index));
      unpack_block(index, mine.block);
      mine.owner = number_;
      mine.index = index;
    }
    std::memcpy(out.data(), mine.block.data() + from, out.size());
  }

  std::shared_ptr<const Storage> stored_;
  Said said_;
  std::uint64_t number_ = ++last_number;  // an address may come again
  Lazy<Table> table_;
  mutable std::atomic<bool> is_sound_{false};
};

}  // namespace

std::vector<std::byte> blob_head(Split how, std::uint64_t elements,
                                 std::span<const std::uint32_t> block_sizes) {
  std::vector<std::byte> head(static_cast<std::size_t>(first_block(block_sizes.size())));
  std::memcpy(head.data(), kMagic.data(), kMagic.size());
  head[4] = static_cast<std::byte>(element_bytes(how));
  head[5] = static_cast<std::byte>(written_log2(how));
  std::memcpy(head.data() + 8, &elements, sizeof elements);
  std::ranges::copy(std::as_bytes(block_sizes), head.begin() + kBlobHead);
  return head;
}

std::shared_ptr<const Storage> unpacked_storage(std::shared_ptr<const Storage> stored, Said said) {
  return std::make_shared<UnpackedStorage>(std::move(stored), std::move(said));
}

}  // namespace ballast::packed
