// SPDX-License-Identifier: Apache-2.0
#include "seal/age_cover.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"
#include "base/fail.h"
#include "seal/keys.h"

namespace ballast::seal {

AgeCover::AgeCover(std::string header, const FileKey& key) : header_(std::move(header)) {
  fill_random(nonce_);
  fill_random(spill_key_.bytes());
  key_ = hkdf(key.bytes(), nonce_, "payload");
  chunks_.start = header_.size() + kPayloadNonceBytes;
}

void AgeCover::begin(Disk disk) {
  disk_ = std::move(disk);
  disk_.write(0, as_bytes(header_));
  disk_.write(header_.size(), nonce_);
}

std::uint64_t AgeCover::reserve(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  chunks_.size = std::max(chunks_.size, size);
  return chunks_.end();
}

std::uint64_t AgeCover::size() const {
  const std::lock_guard lock(mutex_);
  return chunks_.size;
}

// A chunk is encrypted once and never again: its nonce is used up.
void AgeCover::require_open(std::uint64_t index) const {
  if (index < done_.size() && done_[static_cast<std::size_t>(index)])
    fail(Errc::overlap, "encryption", "bytes of chunk {} were written twice", index);
}

void AgeCover::mark_done(std::uint64_t index) {
  require_open(index);
  if (done_.size() <= index) done_.resize(static_cast<std::size_t>(index) + 1);
  done_[static_cast<std::size_t>(index)] = true;
}

void AgeCover::write_chunk(std::uint64_t index, bool is_last, std::span<const std::byte> plain) {
  std::vector<std::byte> sealed(plain.size() + kTagBytes);
  Aead(key_).seal(chunk_nonce(index, is_last), plain, sealed);
  disk_.write(chunks_.offset(index), sealed);
}

// What was the last chunk, and whole, may turn out to be one of the others.
void AgeCover::grow(std::uint64_t size) {
  std::vector<std::byte> whole;
  std::uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = chunks_.last();
    chunks_.size = std::max(chunks_.size, size);
    const auto found = parts_.find(before);
    if (chunks_.last() == before || found == parts_.end() || found->second.filled < kChunkBytes) return;
    whole = take_whole(before);
  }
  write_chunk(before, false, whole);
}

void AgeCover::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  grow(offset + bytes.size());
  while (!bytes.empty()) {
    const std::uint64_t index = offset / kChunkBytes;
    const auto from = static_cast<std::size_t>(offset % kChunkBytes);
    const std::size_t count = std::min(kChunkBytes - from, bytes.size());
    write_part(index, from, bytes.first(count));
    bytes = bytes.subspan(count);
    offset += count;
  }
}

AgeCover::Part& AgeCover::part_in_memory(std::uint64_t index) {
  Part& part = parts_[index];
  if (part.bytes.empty()) {
    part.bytes = part.spilled ? spilled_bytes(index, *part.spilled) : std::vector<std::byte>(kChunkBytes);
    part.spilled.reset();
  } else {
    waiting_.erase(part.touched);
  }
  part.touched = ++clock_;
  waiting_.emplace(part.touched, index);
  return part;
}

std::vector<std::byte> AgeCover::take_whole(std::uint64_t index) {
  std::vector<std::byte> whole = std::move(part_in_memory(index).bytes);
  waiting_.erase(clock_);
  parts_.erase(index);
  mark_done(index);
  return whole;
}

void AgeCover::write_part(std::uint64_t index, std::size_t from, std::span<const std::byte> bytes) {
  std::vector<std::byte> whole;
  {
    const std::lock_guard lock(mutex_);
    const bool may_be_last = index == chunks_.last();
    if (bytes.size() < kChunkBytes || may_be_last || parts_.contains(index)) {
      require_open(index);
      Part& part = part_in_memory(index);
      std::memcpy(part.bytes.data() + from, bytes.data(), bytes.size());
      part.filled += bytes.size();
      if (part.filled < kChunkBytes || may_be_last) {
        if (waiting_.size() > kMostWaiting) spill_one();
        return;
      }
      whole = take_whole(index);
      bytes = whole;
    } else {
      mark_done(index);
    }
  }
  write_chunk(index, false, bytes);
}

// The one that nobody touched for the longest time. Not the last: what comes there may end anywhere.
void AgeCover::spill_one() {
  auto oldest = waiting_.begin();
  if (oldest->second == chunks_.last()) ++oldest;
  const std::uint64_t index = oldest->second;
  Part& part = parts_[index];
  part.spilled = chunk_nonce(spills_++, false);  // under a key of its own: never used again
  std::vector<std::byte> sealed(kSealedChunkBytes);
  Aead(spill_key_).seal(*part.spilled, part.bytes, sealed);
  disk_.write(chunks_.offset(index), sealed);
  part.bytes = {};
  waiting_.erase(oldest);
}

std::vector<std::byte> AgeCover::spilled_bytes(std::uint64_t index, const Nonce& nonce) const {
  std::vector<std::byte> sealed(kSealedChunkBytes);
  disk_.read(chunks_.offset(index), sealed);
  std::vector<std::byte> plain(kChunkBytes);
  if (!Aead(spill_key_).open(nonce, sealed, plain))
    fail(Errc::file_changed, "encryption", "chunk {} of the unfinished file is not what was written", index);
  return plain;
}

// As it would be read now, with zeros where nothing came.
std::vector<std::byte> AgeCover::chunk_so_far(std::uint64_t index) const {
  const std::size_t size = chunks_.plain_bytes(index);
  std::vector<std::byte> plain(size);
  if (index < done_.size() && done_[static_cast<std::size_t>(index)]) {
    std::vector<std::byte> sealed(size + kTagBytes);
    disk_.read(chunks_.offset(index), sealed);
    const bool is_last = index == chunks_.last();
    if (!Aead(key_).open(chunk_nonce(index, is_last), sealed, plain))
      fail(Errc::file_changed, "encryption", "chunk {} of the unfinished file is not what was written",
           index);
  } else if (const auto found = parts_.find(index); found != parts_.end()) {
    const Part& part = found->second;
    plain = part.spilled ? spilled_bytes(index, *part.spilled) : part.bytes;
    plain.resize(size);
  }
  return plain;
}

void AgeCover::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  const std::lock_guard lock(mutex_);
  while (!out.empty()) {
    const std::uint64_t index = offset / kChunkBytes;
    const auto from = static_cast<std::size_t>(offset % kChunkBytes);
    const std::vector<std::byte> plain = chunk_so_far(index);
    const std::size_t count = std::min(plain.size() - from, out.size());
    std::memcpy(out.data(), plain.data() + from, count);
    out = out.subspan(count);
    offset += count;
  }
}

void AgeCover::finish() {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t index = 0; index < chunks_.count(); ++index) {
    if (index < done_.size() && done_[static_cast<std::size_t>(index)]) continue;
    const std::vector<std::byte> plain = chunk_so_far(index);
    mark_done(index);
    write_chunk(index, index == chunks_.last(), plain);
  }
  parts_.clear();
  waiting_.clear();
}

std::unique_ptr<FileCover> age_cover(const std::vector<std::string>& recipients,
                                     const std::string& passphrase_file) {
  FileKey key;
  fill_random(key.bytes());
  return std::make_unique<AgeCover>(write_header(wrap(key, recipients, passphrase_file), key), key);
}

}  // namespace ballast::seal
