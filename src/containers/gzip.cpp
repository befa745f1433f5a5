// SPDX-License-Identifier: Apache-2.0
#include "containers/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/blocks.h"
#include "base/bytes.h"
#include "base/sizes.h"

namespace ballast::containers {
namespace {

constexpr int kGzip = 15 + 16;    // zlib's way to say: a gzip wrapper
constexpr int kRaw = -15;         // and none at all
constexpr int kEither = 15 + 32;  // gzip's or zlib's, whichever it is
constexpr std::uint64_t kTrailer = 8;

Bytef* bytef(const std::byte* bytes) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes));
}

// Inflates what a function brings, block by block.
class Inflater {
 public:
  explicit Inflater(int window) {
    if (inflateInit2(&stream_, window) != Z_OK) throw std::bad_alloc();
  }

  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  ~Inflater() { inflateEnd(&stream_); }

  /// Takes some of `in`, fills some of `out`; false when the data is damaged.
  bool step(std::span<const std::byte>& in, std::span<std::byte>& out) {
    stream_.next_in = bytef(in.data());
    stream_.avail_in = static_cast<uInt>(std::min<std::size_t>(in.size(), kBlockBytes));
    stream_.next_out = bytef(out.data());
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), kBlockBytes));
    const std::size_t could_take = stream_.avail_in;
    const std::size_t could_fill = stream_.avail_out;
    const int verdict = inflate(&stream_, Z_NO_FLUSH);
    in = in.subspan(could_take - stream_.avail_in);
    out = out.subspan(could_fill - stream_.avail_out);
    ended_ = verdict == Z_STREAM_END;
    return ended_ || verdict == Z_OK || verdict == Z_BUF_ERROR;
  }

  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  z_stream stream_ = {};
  bool ended_ = false;
};

// A source read in blocks.
class Blocks {
 public:
  explicit Blocks(const ByteSource& source) : source_(source), buffer_(kBlockBytes) {}

  std::span<const std::byte>& next() {
    if (rest_.empty() && position_ < source_.size()) {
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, source_.size() - position_));
      source_.read(position_, std::span(buffer_).first(count));
      position_ += count;
      rest_ = std::span(buffer_).first(count);
    }
    return rest_;
  }

  [[nodiscard]] std::uint64_t used() const noexcept { return position_ - rest_.size(); }

 private:
  const ByteSource& source_;
  std::vector<std::byte> buffer_;
  std::uint64_t position_ = 0;
  std::span<const std::byte> rest_;
};

// The trailer's word for the size, modulo 2^32: a good first guess, never trusted.
std::uint64_t promised_size(const ByteSource& source) {
  if (source.size() < kTrailer) return 0;
  std::array<std::byte, 4> bytes{};
  source.read(source.size() - bytes.size(), bytes);
  return load_le<std::uint32_t>(bytes.data());
}

}  // namespace

namespace {

// All that a gzip file unpacks to goes through `room(made)`, which gives the next piece of memory; an empty
// one ends it. Returns how much there was.
template <class Room>
std::uint64_t unpack(const ByteSource& source, const Room& room) {
  std::uint64_t made = 0;
  Inflater inflater(kGzip);
  Blocks blocks(source);
  while (!inflater.ended()) {
    std::span<std::byte> out = room(made);
    if (out.empty()) return made;
    auto& in = blocks.next();
    const std::size_t before = out.size();
    const bool at_end = in.empty();
    if (!inflater.step(in, out))
      fail(Errc::bad_gzip, source.where(), "is damaged near byte {} of {}", blocks.used(), source.size());
    made += before - out.size();
    if (at_end && before == out.size() && !inflater.ended())
      fail(Errc::truncated, source.where(), "the gzip data ends in the middle, after {} bytes",
           source.size());
  }
  if (blocks.used() != source.size()) {
    fail(Errc::trailing_data, source.where(), "{} bytes follow the gzip data at byte {}",
         source.size() - blocks.used(), blocks.used());
  }
  return made;
}

// Where the trailer lies, or cannot say it: by unpacking, and keeping nothing.
std::uint64_t true_size(const ByteSource& source, std::uint64_t most) {
  std::vector<std::byte> block(kBlockBytes);
  return unpack(source, [&](std::uint64_t made) {
    if (made > most)
      fail(Errc::expansion_limit, source.where(),
           "{} bytes that unpack to more than {} (64 MiB and 8 times as much), all of it in memory; unpack "
           "it with "
           "gunzip if it is meant to be",
           source.size(), most);
    return std::span(block);
  });
}

}  // namespace

std::shared_ptr<const Storage> gunzip(const ByteSource& source) {
  // Of a set of files each has its part.
  const std::uint64_t most =
      most_unpacked(source.size()) - Budget::kBytes + SharedBudget::part_of(Budget::kBytes);
  std::uint64_t size = std::min(promised_size(source), most);
  std::shared_ptr<Storage> memory;
  const auto into_memory = [&] {
    // One more than there is: the end of the data is then found without a look for more room.
    memory = Storage::heap(std::max<std::uint64_t>(size + 1, kBlockBytes));
    return unpack(source, [&](std::uint64_t made) {
      return std::span(memory->mutable_data() + made, static_cast<std::size_t>(memory->size() - made));
    });
  };
  std::uint64_t made = into_memory();
  if (made == memory->size()) {
    memory.reset();  // before there is more: never two of them
    size = true_size(source, most);
    made = into_memory();
  }
  return slice_storage(std::move(memory), 0, made);
}

std::vector<std::byte> gunzip_head(const ByteSource& source, std::size_t most) {
  std::vector<std::byte> head(most);
  Inflater inflater(kGzip);
  Blocks blocks(source);
  std::span<std::byte> out(head);
  while (!out.empty() && !inflater.ended()) {
    auto& in = blocks.next();
    if (in.empty() || !inflater.step(in, out)) break;
  }
  head.resize(most - out.size());
  return head;
}

bool is_packed(const ByteSource& source) {
  Inflater inflater(kEither);
  Blocks blocks(source);
  std::byte first{};
  std::span<std::byte> out(&first, 1);
  while (!out.empty() && !inflater.ended()) {
    auto& in = blocks.next();
    if (in.empty() || !inflater.step(in, out)) return false;
  }
  return out.empty() || inflater.ended();  // readers go on behind a stream of nothing
}

std::vector<std::byte> inflate_head(const Storage& deflated, std::size_t most, const std::string& where) {
  std::vector<std::byte> head(most);
  Inflater inflater(kRaw);
  std::span<std::byte> out(head);
  const auto source = memory_source({&deflated, [](const Storage*) {}}, where);
  Blocks blocks(*source);
  while (!out.empty() && !inflater.ended()) {
    auto& in = blocks.next();
    if (in.empty() || !inflater.step(in, out))
      fail(Errc::bad_zip, where, "its {} deflated bytes are damaged", deflated.size());
  }
  head.resize(most - out.size());
  return head;
}

struct GzipWriter::State {
  explicit State(AtomicFile& out) : file(out), buffer(kBlockBytes) {
    // The fastest level: weights shrink by a tenth at best, and hardly more at any other.
    if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() { deflateEnd(&stream); }

  void run(std::span<const std::byte> bytes, int flush) {
    stream.next_in = bytef(bytes.data());
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = bytef(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, flush);
      file.append(std::span(buffer).first(buffer.size() - stream.avail_out));
    } while (stream.avail_out == 0);
  }

  AtomicFile& file;
  std::vector<std::byte> buffer;
  z_stream stream = {};
};

GzipWriter::GzipWriter(AtomicFile& file) : state_(std::make_unique<State>(file)) {}

GzipWriter::~GzipWriter() = default;

void GzipWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kBlockBytes));
    state_->run(piece, Z_NO_FLUSH);
    bytes = bytes.subspan(piece.size());
  }
}

void GzipWriter::finish() {
  state_->run({}, Z_FINISH);
}

void write_gzip(AtomicFile& file, std::span<const Part> parts, const Progress& progress) {
  GzipWriter gzip(file);
  std::uint64_t total = 0;
  for (const Part& part : parts) total += part.size;
  std::uint64_t done = 0;
  for (const Part& part : parts) {
    gzip.append(as_bytes(part.before));
    if (part.size == 0) continue;
    for_each_block(*part.storage, part.offset, part.offset + part.size,
                   [&](std::uint64_t, std::span<const std::byte> block) {
                     gzip.append(block);
                     done += block.size();
                     if (progress) progress(done, total);
                   });
  }
  gzip.finish();
}

}  // namespace ballast::containers
