// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/spare.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/bytes.h"
#include "base/fail.h"
#include "base/write_fully.h"
#include "formats/one_reading.h"
#include "formats/safetensors/header.h"

namespace ballast::safetensors {
namespace {

constexpr std::size_t kLeastRoom = 128;  // a licence, a name, a date

constexpr std::size_t rounded_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

// A header as the reference writes it, in two pieces with room between them: up to the metadata and the comma
// behind it, and the tensors.
struct HeaderPieces {
  std::string front;
  std::string tail;
};

HeaderPieces pieces_of(std::span<const HeaderLine> lines, const std::optional<Metadata>& metadata,
                       const std::string& where) {
  const auto text_of = [&](std::span<const HeaderLine> some) {
    std::string text = head_of(some, metadata, where).substr(kLengthBytes);
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  const std::string whole = text_of(lines);
  std::size_t cut = text_of({}).size() - 1;  // without the brace at its end
  if (metadata && !lines.empty()) ++cut;
  return {whole.substr(0, cut), whole.substr(cut)};
}

// The length, the pieces with the tail at `tail_at`, and spaces up to `size`.
std::string head_of_pieces(const HeaderPieces& pieces, std::size_t tail_at, std::size_t size) {
  const std::uint64_t length = size - kLengthBytes;
  std::string head(kLengthBytes, '\0');
  std::memcpy(head.data(), &length, kLengthBytes);
  head += pieces.front;
  head.resize(tail_at, ' ');
  head += pieces.tail;
  head.resize(size, ' ');
  return head;
}

// Where the tail begins in the old header, when it is there as it would be written now.
std::optional<std::size_t> tail_in(std::string_view old, std::string_view tail) {
  const std::size_t end = old.find_last_not_of(' ') + 1;
  if (end < tail.size() || old.substr(end - tail.size(), tail.size()) != tail) return std::nullopt;
  return end - tail.size();
}

// The file as it will be.
class WithHead final : public ByteSource {
 public:
  WithHead(const ByteSource& file, std::string_view head)
      : ByteSource(file.name(), file.size()), file_(file), head_(head) {}

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    file_.read(offset, out);
    for (std::uint64_t at = offset; at < head_.size() && at < offset + out.size(); ++at)
      out[static_cast<std::size_t>(at - offset)] =
          static_cast<std::byte>(head_[static_cast<std::size_t>(at)]);
  }

  const ByteSource& file_;
  std::string_view head_;
};

// No other name leads to it, and it still is what was read.
bool is_as_read(const FileDescriptor& file, std::string_view old) {
  struct stat status {};

  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1)
    return false;
  std::string there(old.size(), '\0');
  return pread(file.get(), there.data(), there.size(), 0) == static_cast<ssize_t>(old.size()) && there == old;
}

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

constexpr auto kPatience = std::chrono::seconds(1);  // edits in place take far less
constexpr auto kBetweenTries = std::chrono::milliseconds(2);

}  // namespace

FileDescriptor::FileDescriptor(const std::string& path, int flags)
    : number_(::open(path.c_str(), flags | O_CLOEXEC)) {}

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) close(number_);  // which ends a lock, too
}

EditLock::EditLock(const std::string& path) : path_(path) {
  struct stat named {};

  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    file_.emplace(path, O_RDONLY);
    if (!*file_) return;  // whoever reads it says why
    if (flock(file_->get(), LOCK_EX | LOCK_NB) == 0) {
      // Whoever held it may have put another file in its place.
      is_held_ = stat(path.c_str(), &named) != 0 || is_named(named);
      if (is_held_) return;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      return;  // file systems without locks
    } else if (std::chrono::steady_clock::now() > until) {
      fail(Errc::file_changed, display(path), "somebody else is editing it; try again when that is over");
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

bool EditLock::is_named(const struct stat& named) const {
  struct stat mine {};

  return fstat(file_->get(), &mine) == 0 && is_same(mine, named);
}

bool EditLock::is_of(const FileDescriptor& other) const {
  struct stat status {};

  return fstat(other.get(), &status) == 0 && is_named(status);
}

std::string head_with_spare(std::string_view old, std::span<const HeaderLine> lines,
                            const std::optional<Metadata>& metadata, const std::string& where) {
  const HeaderPieces pieces = pieces_of(lines, metadata, where);
  const std::size_t front_end = kLengthBytes + pieces.front.size();
  if (const auto at = tail_in(old, pieces.tail); at && front_end <= *at)
    return head_of_pieces(pieces, *at, old.size());
  // Records begin their data on 64 bytes.
  const std::size_t alignment = old.size() % 64 == 0 ? 64 : 8;
  const std::size_t tail_at = rounded_up(front_end + kLeastRoom, kSectorBytes);
  const std::size_t size = rounded_up(tail_at + pieces.tail.size(), alignment);
  if (size - kLengthBytes > kMaxHeaderBytes) return head_of(lines, metadata, where);
  return head_of_pieces(pieces, tail_at, size);
}

bool write_in_place(const EditLock& lock, const ByteSource& source, std::string_view old,
                    std::string_view head, bool durable) {
  const std::string& path = lock.path();
  if (!lock.is_held() || head.size() != old.size()) return false;
  const auto begin =
      static_cast<std::size_t>(std::mismatch(old.begin(), old.end(), head.begin()).first - old.begin());
  if (begin == old.size()) return true;  // it says so already
  const auto same = std::mismatch(old.rbegin(), old.rend(), head.rbegin()).first - old.rbegin();
  const std::size_t end = old.size() - static_cast<std::size_t>(same);
  if (begin / kSectorBytes != (end - 1) / kSectorBytes) return false;
  const FileDescriptor file(path, O_RDWR);
  if (!is_as_read(file, old) || !lock.is_of(file)) return false;
  require_one_reading(WithHead(source, head), Meant::none);
  // One call within one page of the kernel's: it is not interrupted, and no sector is written twice.
  write_fully(file.get(), path, begin, as_bytes(head.substr(begin, end - begin)));
  if (durable && fsync(file.get()) != 0)
    fail_errno(errno, display(path), "the new header did not reach the disk");
  return true;
}

}  // namespace ballast::safetensors
