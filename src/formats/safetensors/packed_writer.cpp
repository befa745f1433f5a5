// SPDX-License-Identifier: Apache-2.0
// A Checkpoint as a Safetensors file with packed tensors. Two passes: the first looks at every block to see
// which tensors gain, the second packs them, some blocks at a time on all threads, and puts one behind the
// other. The header is written last, into room that was left for it.
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "ballast/error.h"
#include "base/fail.h"
#include "base/hash_xxh3.h"
#include "base/largest_first.h"
#include "base/shared_progress.h"
#include "base/thread_pool.h"
#include "checkpoint/require_data.h"
#include "containers/packed.h"
#include "formats/one_reading.h"
#include "formats/safetensors/data_copy.h"
#include "formats/safetensors/layout.h"
#include "formats/safetensors/packed.h"
#include "formats/safetensors/record_data.h"
#include "formats/safetensors/writer.h"

namespace ballast {

std::string_view name(Pack pack) noexcept {
  return pack == Pack::fast ? "fast" : pack == Pack::small ? "small" : "none";
}

Pack pack_named(std::string_view text) {
  for (const Pack pack : {Pack::none, Pack::fast, Pack::small})
    if (text == name(pack)) return pack;
  fail(Errc::invalid_argument, "pack", "{} is none of none, fast, small", quoted(text));
}

namespace safetensors {
namespace {

using packed::BlockKind;
using packed::BlockPacker;
using packed::BlockPlan;
using packed::Split;

std::optional<Split> packed_as(DType dtype, Pack pack) {
  const std::optional<Split> how = packed::split_of(dtype);
  const bool is_wide = how == Split::bf16 || how == Split::f32;
  return pack == Pack::small || is_wide ? how : std::nullopt;
}

// A tensor that may be packed.
struct Candidate {
  std::size_t tensor = 0;  // position in the checkpoint
  Tensor view = {};
  Split how = Split::bytes;
  std::vector<BlockPlan> blocks = {};
  std::uint64_t begin = 0;  // in the file, once it is packed
  std::uint64_t end = 0;
  std::vector<std::uint32_t> sizes = {};

  [[nodiscard]] std::uint64_t block_bytes() const {
    return packed::element_bytes(how) << packed::written_log2(how);
  }

  [[nodiscard]] std::size_t block_size(std::size_t block) const {
    return static_cast<std::size_t>(std::min(block_bytes(), view.size_bytes() - block * block_bytes()));
  }

  void read(std::size_t block, std::vector<std::byte>& raw) const {
    raw.resize(block_size(block));
    view.read(block * block_bytes(), raw);
  }

  [[nodiscard]] std::uint64_t stored_bytes() const {
    std::uint64_t sum = packed::first_block(blocks.size());
    for (const BlockPlan& block : blocks) sum += packed::padded_block(block.size);
    return sum;
  }

  // None where nothing shrinks: what the header must have room for.
  [[nodiscard]] std::uint64_t most_bytes() const {
    std::uint64_t sum = packed::first_block(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      sum += packed::padded_block(packed::kBlockHead + block_size(i));
    return sum;
  }

  // 3 % at least. What shrinks to nearly nothing is left alone, too: readers take it for an attack.
  [[nodiscard]] bool gains() const {
    const std::uint64_t stored = stored_bytes();
    return stored <= view.size_bytes() / 100 * 97 && stored >= view.size_bytes() / 64;
  }
};

// Where one thread packs. A dozen are faster than a disk, and memory does not grow with the cores.
struct Lane {
  BlockPacker packer;
  std::vector<std::byte> raw;
};

constexpr int kMostLanes = 12;

class PackedWriter {
 public:
  PackedWriter(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress, Pack pack,
               const SayChecksums& say)
      : checkpoint_(checkpoint),
        out_(out),
        where_(display(out.path())),
        kind_(pack == Pack::fast ? BlockKind::fast : BlockKind::small),
        pack_(pack),
        say_(say),
        progress_(progress, checkpoint.total_bytes() + candidate_bytes()),
        lanes_(static_cast<std::size_t>(std::clamp(thread_count(), 1, kMostLanes))),
        sums_(checkpoint.size(), 0) {}

  void run() {
    require_data(checkpoint_, where_);
    collect();
    plan();
    if (say_) hash_plain();
    const Layout room = layout([](const Candidate& each) { return each.most_bytes(); });
    pack(room);
    const Layout last = layout([](const Candidate& each) { return each.end - each.begin; });
    copy_plain(last, room.head.size());
    out_.append(padded(last.head, room.head.size()));
    require_one_reading(out_, Meant::none);
  }

 private:
  [[nodiscard]] std::uint64_t candidate_bytes() const {
    std::uint64_t sum = 0;
    for (const Entry& entry : checkpoint_) sum += packed_as(entry.dtype, pack_) ? entry.bytes : 0;
    return sum;
  }

  void collect() {
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      const Entry entry = checkpoint_[i];
      const std::optional<Split> how = packed_as(entry.dtype, pack_);
      if (!how || entry.bytes == 0) continue;
      Candidate candidate{.tensor = i, .view = entry.tensor(), .how = *how};
      candidate.blocks.resize(static_cast<std::size_t>((entry.bytes - 1) / candidate.block_bytes() + 1));
      candidates_.push_back(std::move(candidate));
    }
  }

  void plan() {
    std::vector<std::uint64_t> ends;  // blocks of the candidates so far
    for (const Candidate& each : candidates_)
      ends.push_back((ends.empty() ? 0 : ends.back()) + each.blocks.size());
    on_lanes(ends.empty() ? 0 : ends.back(), [&](Lane& lane, std::uint64_t i) {
      const auto end = std::upper_bound(ends.begin(), ends.end(), i);
      Candidate& candidate = candidates_[static_cast<std::size_t>(end - ends.begin())];
      const auto block = static_cast<std::size_t>(i + candidate.blocks.size() - *end);
      candidate.read(block, lane.raw);
      candidate.blocks[block] = lane.packer.plan(kind_, candidate.how, lane.raw);
      progress_.add(lane.raw.size());
    });
    std::erase_if(candidates_, [](const Candidate& each) { return !each.gains(); });
  }

  // work(lane, i) for each of [0, count).
  template <class Work>
  void on_lanes(std::uint64_t count, const Work& work) {
    std::atomic<std::uint64_t> next = 0;
    const auto run = [&](Lane& lane) {
      try {
        for (std::uint64_t i = next++; i < count; i = next++) work(lane, i);
      } catch (...) {
        next = count;  // nor do the others go on
        throw;
      }
    };
    parallel_for(lanes_.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) run(lanes_[static_cast<std::size_t>(i)]);
    });
  }

  // What is packed is hashed when it is packed.
  void hash_plain() {
    std::vector<std::uint64_t> sizes;
    for (const Entry& entry : checkpoint_) sizes.push_back(entry.bytes);
    for (const Candidate& each : candidates_) sizes[each.tensor] = 0;
    const std::vector<bool> is_packed = packed_ones();
    largest_first(sizes, [&](std::size_t i) {
      if (!is_packed[i]) sums_[i] = xxh3_of(checkpoint_[i].tensor());
    });
  }

  [[nodiscard]] std::vector<bool> packed_ones() const {
    std::vector<bool> is_packed(checkpoint_.size());
    for (const Candidate& each : candidates_) is_packed[each.tensor] = true;
    return is_packed;
  }

  // The file as it would be with blobs of these sizes.
  template <class Size>
  [[nodiscard]] Layout layout(const Size& size_of) const {
    std::vector<Declared> declared = declared_by(checkpoint_);
    std::vector<Shape> shapes(candidates_.size());
    PackedTensors said;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      Declared& tensor = declared[candidates_[i].tensor];
      PackedTensor packed{.dtype = tensor.dtype, .shape = {}, .xxh3 = sums_[candidates_[i].tensor]};
      for (const std::int64_t dim : tensor.shape) packed.shape.push_back(static_cast<std::uint64_t>(dim));
      said.add(tensor.name, std::move(packed));
      shapes[i] = {static_cast<std::int64_t>(size_of(candidates_[i]))};
      tensor.dtype = DType::u8;
      tensor.shape = shapes[i];
    }
    std::optional<Metadata> metadata = checkpoint_.metadata;
    said.write(metadata);
    if (say_) say_(metadata ? *metadata : metadata.emplace(), sums_);
    return make_layout(declared, metadata, where_);
  }

  // A block on its way.
  struct Job {
    Candidate* candidate = nullptr;
    std::size_t block = 0;
    std::vector<std::byte> raw = {};
    std::vector<std::byte> bytes = {};
    std::uint64_t place = 0;
  };

  void pack(const Layout& room) {
    std::vector<Candidate*> by_tensor(checkpoint_.size(), nullptr);
    for (Candidate& each : candidates_) by_tensor[each.tensor] = &each;
    cursor_ = room.head.size();
    const std::size_t most = lanes_.size() * 2;
    std::vector<Job> jobs;
    for (const Layout::Place& place : room.places) {
      Candidate* candidate = by_tensor[place.tensor];
      if (candidate == nullptr) {
        jobs.push_back({.candidate = nullptr, .place = place.end - place.begin});
        continue;
      }
      for (std::size_t block = 0; block < candidate->blocks.size(); ++block) {
        jobs.push_back(job_for(*candidate, block));
        if (jobs.size() >= most) run_jobs(jobs);
      }
    }
    run_jobs(jobs);
    for (const Candidate& each : candidates_) each.view.storage()->check_unchanged();
  }

  // In memory that an earlier one had: given back and taken again by many threads it would grow.
  [[nodiscard]] Job job_for(Candidate& candidate, std::size_t block) {
    Job job;
    if (!spare_.empty()) {
      job = std::move(spare_.back());
      spare_.pop_back();
    }
    job.candidate = &candidate;
    job.block = block;
    return job;
  }

  void run_jobs(std::vector<Job>& jobs) {
    on_lanes(jobs.size(), [&](Lane& lane, std::uint64_t i) {
      Job& job = jobs[static_cast<std::size_t>(i)];
      if (job.candidate == nullptr) return;
      job.candidate->read(job.block, job.raw);
      lane.packer.pack(kind_, job.candidate->how, job.candidate->blocks[job.block], job.raw, job.bytes);
    });
    for (Job& job : jobs) place(job);
    // The checksums go through the blocks in order, while the others write.
    parallel_for(jobs.size() + 1, 1, [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t i = begin; i < end; ++i) {
        if (i == 0)
          hash(jobs);
        else
          write(jobs[static_cast<std::size_t>(i) - 1]);
      }
    });
    for (Job& job : jobs)
      if (job.candidate != nullptr) spare_.push_back(std::move(job));
    jobs.clear();
  }

  void place(Job& job) {
    if (job.candidate == nullptr) {  // a tensor that is not packed: its place stays free
      cursor_ += job.place;
      return;
    }
    Candidate& candidate = *job.candidate;
    if (job.block == 0) {
      candidate.begin = cursor_;
      cursor_ += packed::first_block(candidate.blocks.size());
    }
    candidate.sizes.push_back(static_cast<std::uint32_t>(job.bytes.size()));
    job.bytes.resize(static_cast<std::size_t>(packed::padded_block(job.bytes.size())));
    job.place = cursor_;
    cursor_ += job.bytes.size();
    candidate.end = cursor_;
  }

  void write(const Job& job) {
    if (job.candidate == nullptr) return;
    const Candidate& candidate = *job.candidate;
    out_.write_at(job.place, job.bytes);
    progress_.add(job.raw.size());
    if (job.block + 1 < candidate.blocks.size()) return;
    const std::uint64_t elements = candidate.view.size_bytes() / packed::element_bytes(candidate.how);
    out_.write_at(candidate.begin, packed::blob_head(candidate.how, elements, candidate.sizes));
  }

  void hash(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) {
      if (job.candidate == nullptr) continue;
      if (job.block == 0) hash_ = std::make_unique<Xxh3>();
      hash_->update(job.raw);
      if (job.block + 1 == job.candidate->blocks.size()) sums_[job.candidate->tensor] = hash_->digest();
    }
  }

  // What is not packed goes to its place as in every Safetensors file.
  void copy_plain(const Layout& last, std::uint64_t head) {
    Layout plain;
    plain.head.resize(static_cast<std::size_t>(head));
    plain.file_size = last.file_size + (head - last.head.size());
    const std::vector<bool> is_packed = packed_ones();
    for (Layout::Place place : last.places) {
      if (is_packed[place.tensor]) continue;
      place.begin += head - last.head.size();
      place.end += head - last.head.size();
      plain.places.push_back(place);
    }
    std::uint64_t before = 0;
    copy_data(checkpoint_, plain, out_, [&](std::uint64_t done, std::uint64_t) {
      progress_.add(done - before);
      before = done;
    });
  }

  // The room that was left, filled with what Safetensors fills headers with.
  static std::string padded(std::string head, std::size_t size) {
    head.resize(size, ' ');
    const std::uint64_t length = size - kLengthBytes;
    std::memcpy(head.data(), &length, sizeof length);
    return head;
  }

  const Checkpoint& checkpoint_;
  AtomicFile& out_;
  std::string where_;
  BlockKind kind_;
  Pack pack_;
  const SayChecksums& say_;
  SharedProgress progress_;
  std::vector<Lane> lanes_;
  std::vector<Candidate> candidates_;
  std::vector<std::uint64_t> sums_;  // of the tensors' own bytes, in the order of the checkpoint
  std::uint64_t cursor_ = 0;
  std::unique_ptr<Xxh3> hash_;
  std::vector<Job> spare_;
};

}  // namespace

void write_packed(const Checkpoint& checkpoint, AtomicFile& out, const Progress& progress, Pack pack,
                  const SayChecksums& say) {
  PackedWriter(checkpoint, out, progress, pack, say).run();
}

}  // namespace safetensors
}  // namespace ballast
