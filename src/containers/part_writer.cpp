// SPDX-License-Identifier: Apache-2.0
#include "containers/part_writer.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/bytes.h"
#include "base/crc32.h"
#include "base/shared_progress.h"
#include "base/sizes.h"
#include "base/thread_pool.h"

namespace ballast::containers {
namespace {

// What one thread takes of a large part.
constexpr std::uint64_t kShare = 2 * kPieceBytes;

// Either whole neighbouring parts that fit into one block together, or a piece of one larger part.
struct Task {
  std::size_t first;
  std::size_t count;  // 0: a piece of part `first`
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t crc = 0;
};

std::vector<Task> split(std::span<const Part> parts) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < parts.size();) {
    if (parts[i].end() - parts[i].at > kBlockBytes) {
      for (std::uint64_t at = 0; at < parts[i].size || at == 0; at += kShare) {
        tasks.push_back({i, 0, at, std::min(kShare, parts[i].size - at)});
      }
      ++i;
      continue;
    }
    std::size_t last = i;
    while (last < parts.size() && parts[last].end() - parts[i].at <= kBlockBytes) ++last;
    tasks.push_back({i, last - i, 0, parts[last - 1].end() - parts[i].at});
    i = last;
  }
  return tasks;
}

std::uint64_t content_of(std::span<const Part> parts) {
  return std::accumulate(parts.begin(), parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Part& part) { return sum + part.size; });
}

class PartWriter {
 public:
  PartWriter(AtomicFile& file, std::span<Part> parts, const WriteAfter& write_after, const Progress& progress)
      : file_(file), parts_(parts), write_after_(write_after), progress_(progress, content_of(parts)) {}

  void run() {
    std::vector<Task> tasks = split(parts_);
    parallel_for(tasks.size(), 1, [&](std::uint64_t begin, std::uint64_t end) {
      std::vector<std::byte> block(kBlockBytes);
      for (std::uint64_t i = begin; i < end; ++i) {
        if (tasks[i].count == 0)
          write_piece(tasks[i], block);
        else
          write_batch(tasks[i], block);
      }
    });
    finish_large(tasks);
  }

 private:
  void write_batch(const Task& task, std::span<std::byte> block) {
    std::uint64_t content = 0;
    const std::uint64_t start = parts_[task.first].at;
    for (Part& part : parts_.subspan(task.first, task.count)) {
      std::byte* out = block.data() + (part.at - start);
      std::memcpy(out, part.before.data(), part.before.size());
      const std::span<std::byte> body(out + part.before.size(), static_cast<std::size_t>(part.size));
      if (!body.empty()) part.storage->read(part.offset, body);
      part.crc = crc32(0, body);
      if (part.after_size > 0) write_after_(part, {body.data() + body.size(), part.after_size});
      content += part.size;
    }
    file_.write_at(start, block.first(static_cast<std::size_t>(task.length)));
    progress_.add(content);
  }

  void write_piece(Task& task, std::span<std::byte> block) {
    const Part& part = parts_[task.first];
    if (task.offset == 0) file_.write_at(part.at, as_bytes(part.before));
    for (std::uint64_t done = 0; done < task.length;) {
      const auto body = block.first(static_cast<std::size_t>(std::min(kBlockBytes, task.length - done)));
      part.storage->read(part.offset + task.offset + done, body);
      task.crc = crc32(task.crc, body);
      file_.write_at(part.content_at() + task.offset + done, body);
      done += body.size();
      progress_.add(body.size());
    }
  }

  void finish_large(std::span<const Task> tasks) {
    for (const Task& task : tasks) {
      if (task.count != 0) continue;
      Part& part = parts_[task.first];
      part.crc = crc32_combine(part.crc, task.crc, task.length);
      if (task.offset + task.length < part.size || part.after_size == 0) continue;
      std::vector<std::byte> after(part.after_size);
      write_after_(part, after);
      file_.write_at(part.content_at() + part.size, after);
    }
  }

  AtomicFile& file_;
  std::span<Part> parts_;
  const WriteAfter& write_after_;
  SharedProgress progress_;
};

}  // namespace

void write_parts(AtomicFile& file, std::span<Part> parts, const WriteAfter& write_after,
                 const Progress& progress) {
  PartWriter(file, parts, write_after, progress).run();
}

void check_sources(std::span<const Part> parts) {
  const Storage* last = nullptr;  // views of one storage mostly follow each other
  for (const Part& part : parts) {
    if (part.storage && part.storage.get() != last) part.storage->check_unchanged();
    last = part.storage.get();
  }
}

}  // namespace ballast::containers
