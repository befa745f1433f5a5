// SPDX-License-Identifier: Apache-2.0
#include "formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/sizes.h"
#include "formats/expansion.h"

namespace ballast {
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

std::shared_ptr<const Storage> gunzip(const ByteSource& source) {
  const std::uint64_t most = expansion_limit(source.size());
  // One more than promised: the end of the data is then found without a look for more room.
  auto memory = Storage::heap(std::clamp<std::uint64_t>(promised_size(source) + 1, kBlockBytes, most));
  std::uint64_t made = 0;
  Inflater inflater(kGzip);
  Blocks blocks(source);
  while (!inflater.ended()) {
    if (made == memory->size()) {
      if (made == most)
        fail(Errc::expansion_limit, source.where(), "{} bytes that unpack to more than {}", source.size(),
             most);
      auto larger = Storage::heap(std::min(most, made * 2));
      std::memcpy(larger->mutable_data(), memory->data(), static_cast<std::size_t>(made));
      memory = std::move(larger);
    }
    auto& in = blocks.next();
    std::span<std::byte> out(memory->mutable_data() + made, static_cast<std::size_t>(memory->size() - made));
    const std::size_t room = out.size();
    const bool at_end = in.empty();
    if (!inflater.step(in, out))
      fail(Errc::bad_gzip, source.where(), "is damaged near byte {} of {}", blocks.used(), source.size());
    made += room - out.size();
    if (at_end && room == out.size() && !inflater.ended())
      fail(Errc::truncated, source.where(), "the gzip data ends in the middle, after {} bytes",
           source.size());
  }
  if (blocks.used() != source.size()) {
    fail(Errc::trailing_data, source.where(), "{} bytes follow the gzip data at byte {}",
         source.size() - blocks.used(), blocks.used());
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
  return out.empty();
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

}  // namespace ballast
