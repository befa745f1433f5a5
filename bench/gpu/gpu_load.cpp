// SPDX-License-Identifier: Apache-2.0
// The way of a checkpoint to a GPU, as a prototype: the bytes of each file go to one piece of device memory
// through a small ring of pinned slots that several threads fill, so that reading and copying overlap.
// Tensors are then offsets into that piece. gpu.py takes turns with safetensors and torch.
//   gpu_load --serve [--threads N] [--piece BYTES] [--io map|read]
// answers each line "load FILE", "check FILE" or "limit BYTES" with seconds.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ballast/io.h"
#include "base/file.h"
#include "cuda_driver.h"

namespace ballast::bench {
namespace {

struct Settings {
  unsigned threads = 12;
  std::size_t piece = std::size_t{2} << 20U;
  bool map = true;  // fill slots from the mapping; else by positioned reads
};

constexpr unsigned kSlotsPerThread = 2;  // one is filled while the other is under way

/// Pinned slots with the event that says when the last copy out of each is done.
class Ring {
 public:
  Ring(const Cuda& cuda, const Settings& settings) : cuda_(cuda), piece_(settings.piece) {
    const std::size_t count = std::size_t{settings.threads} * kSlotsPerThread;
    const std::size_t huge = std::size_t{2} << 20U;
    size_ = (count * piece_ + huge - 1) / huge * huge;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(huge, size_)));
    if (!memory_) throw std::bad_alloc();
    madvise(memory_.get(), size_, MADV_HUGEPAGE);
    std::memset(memory_.get(), 0, size_);
    cuda_.pin(memory_.get(), size_);
    for (std::size_t i = 0; i < count; ++i) events_.push_back(cuda_.event());
    for (unsigned i = 0; i < settings.threads; ++i) streams_.push_back(cuda_.stream());
  }

  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { cuda_.unpin(memory_.get()); }

  [[nodiscard]] std::byte* slot(std::size_t index) const { return memory_.get() + index * piece_; }

  [[nodiscard]] Cuda::Handle event(std::size_t index) const { return events_[index]; }

  [[nodiscard]] Cuda::Handle stream(std::size_t thread) const { return streams_[thread]; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  const Cuda& cuda_;
  std::size_t piece_;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<Cuda::Handle> events_;
  std::vector<Cuda::Handle> streams_;
};

/// The part of a file that holds every tensor of a checkpoint, gaps between them included.
struct Part {
  std::shared_ptr<const ByteSource> file;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  Cuda::Address device = 0;
};

std::vector<Part> parts_of(const Checkpoint& checkpoint) {
  std::map<const ByteSource*, Part> parts;
  for (const Entry& entry : checkpoint) {
    const Tensor tensor = entry.tensor();
    const auto span = tensor.storage() ? tensor.storage()->source_span() : std::nullopt;
    if (!span || !tensor.is_contiguous())
      throw std::runtime_error(std::string(entry.name) + " does not lie in a file as it is");
    const std::uint64_t first = span->offset + tensor.bit_offset() / 8;
    const std::uint64_t last = first + tensor.size_bytes();
    auto [found, fresh] = parts.try_emplace(span->source.get(), Part{span->source, first, last, 0});
    found->second.first = std::min(found->second.first, first);
    found->second.last = std::max(found->second.last, last);
  }
  std::vector<Part> all;
  for (auto& [file, part] : parts) all.push_back(std::move(part));
  return all;
}

class Loader {
 public:
  Loader(const Cuda& cuda, const Settings& settings)
      : cuda_(cuda), settings_(settings), ring_(cuda, settings) {}

  /// Device memory that holds the tensors of `path`; whoever asked frees it.
  std::vector<Part> load(const std::string& path) const {
    std::vector<Part> parts = parts_of(open(path));
    for (Part& part : parts) {
      part.device = cuda_.allocate(part.last - part.first);
      if (settings_.map) (void)part.file->map();
      in_parallel([&](unsigned thread, std::atomic<std::uint64_t>& next) { fill(part, thread, next); });
    }
    return parts;
  }

  void release(const std::vector<Part>& parts) const {
    for (const Part& part : parts) cuda_.release(part.device);
  }

  /// The limit: as many bytes from slots that are full already.
  void copy_only(std::uint64_t bytes) const {
    const Cuda::Address device = cuda_.allocate(bytes);
    const std::size_t slots = std::size_t{settings_.threads} * kSlotsPerThread;
    std::size_t slot = 0;
    for (std::uint64_t at = 0; at < bytes; at += settings_.piece, slot = (slot + 1) % slots)
      cuda_.upload(device + at, ring_.slot(slot), std::min<std::uint64_t>(settings_.piece, bytes - at),
                   ring_.stream(0));
    cuda_.finish(ring_.stream(0));
    cuda_.release(device);
  }

 private:
  template <class Work>
  void in_parallel(const Work& work) const {
    std::atomic<std::uint64_t> next{0};
    std::vector<std::exception_ptr> errors(settings_.threads);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < settings_.threads; ++i)
      threads.emplace_back([&, i] {
        try {
          cuda_.enter();
          work(i, next);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors)
      if (error) std::rethrow_exception(error);
  }

  void fill(const Part& part, unsigned thread, std::atomic<std::uint64_t>& next) const {
    const std::uint64_t size = part.last - part.first;
    const std::byte* mapped = settings_.map ? part.file->map().data() + part.first : nullptr;
    for (unsigned turn = 0;; turn = (turn + 1) % kSlotsPerThread) {
      const std::uint64_t at = next.fetch_add(settings_.piece);
      if (at >= size) break;
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(settings_.piece, size - at));
      const std::size_t slot = std::size_t{thread} * kSlotsPerThread + turn;
      cuda_.wait(ring_.event(slot));
      if (mapped != nullptr)
        std::memcpy(ring_.slot(slot), mapped + at, length);
      else
        part.file->read(part.first + at, std::span(ring_.slot(slot), length));
      cuda_.upload(part.device + at, ring_.slot(slot), length, ring_.stream(thread));
      cuda_.record(ring_.event(slot), ring_.stream(thread));
    }
    cuda_.finish(ring_.stream(thread));
  }

  const Cuda& cuda_;
  Settings settings_;
  Ring ring_;
};

/// Every byte brought back and compared with the file's.
void check(const Cuda& cuda, const Loader& loader, const std::string& path) {
  const std::vector<Part> parts = loader.load(path);
  std::vector<std::byte> block(std::size_t{64} << 20U);
  for (const Part& part : parts)
    for (std::uint64_t at = 0; at < part.last - part.first; at += block.size()) {
      const auto length =
          static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), part.last - part.first - at));
      cuda.download(block.data(), part.device + at, length);
      if (std::memcmp(block.data(), part.file->map().data() + part.first + at, length) != 0)
        throw std::runtime_error(path + ": the device holds other bytes than the file");
    }
  loader.release(parts);
}

template <class Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int serve(const Settings& settings) {
  const Cuda cuda;
  std::unique_ptr<Loader> loader;
  std::cout << "ring " << seconds([&] { loader = std::make_unique<Loader>(cuda, settings); }) << std::endl;
  for (std::string verb, what; std::cin >> verb >> what;) {
    if (verb == "load") {
      std::vector<Part> parts;
      std::cout << seconds([&] { parts = loader->load(what); }) << std::endl;
      loader->release(parts);
    } else if (verb == "check") {
      std::cout << seconds([&] { check(cuda, *loader, what); }) << std::endl;
    } else {
      std::cout << seconds([&] { loader->copy_only(std::stoull(what)); }) << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace ballast::bench

int main(int argc, char** argv) {
  ballast::bench::Settings settings;
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--threads") settings.threads = static_cast<unsigned>(std::atoi(argv[i + 1]));
    if (option == "--piece") settings.piece = std::stoull(argv[i + 1]);
    if (option == "--io") settings.map = argv[i + 1] == std::string("map");
  }
  try {
    return ballast::bench::serve(settings);
  } catch (const std::exception& error) {
    std::cerr << "gpu_load: " << error.what() << '\n';
    return 2;
  }
}
