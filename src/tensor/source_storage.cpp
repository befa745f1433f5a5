// SPDX-License-Identifier: Apache-2.0
#include "tensor/source_storage.h"

#include <algorithm>
#include <cstring>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/lazy.h"
#include "base/sizes.h"
#include "base/thread_pool.h"

namespace ballast {
namespace {

class SliceStorage final : public Storage {
 public:
  SliceStorage(std::shared_ptr<const Storage> whole, std::uint64_t offset, std::uint64_t size)
      : Storage(size), whole_(std::move(whole)), offset_(offset) {}

  [[nodiscard]] const std::byte* data() const override { return whole_->data() + offset_; }

  // Of the whole: another slice of it may be the same bytes.
  [[nodiscard]] std::uint64_t version() const noexcept override { return whole_->version(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    whole_->read(offset_ + offset, out);
  }

  void check_unchanged() const override { whole_->check_unchanged(); }

  void check_sound(std::uint64_t begin, std::uint64_t end) const override {
    whole_->check_sound(offset_ + begin, offset_ + end);
  }

  [[nodiscard]] std::optional<SourceSpan> source_span() const override {
    auto span = whole_->source_span();
    if (span) span->offset += offset_;
    return span;
  }

 private:
  [[nodiscard]] std::byte* writable_data() override {
    std::byte* bytes = mutable_data_behind(*whole_);
    return bytes == nullptr ? nullptr : bytes + offset_;
  }

  std::shared_ptr<const Storage> whole_;
  std::uint64_t offset_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::shared_ptr<const Storage> bytes, std::string name)
      : ByteSource(std::move(name), bytes->size()), bytes_(std::move(bytes)) {}

  [[nodiscard]] bool is_mapped() const noexcept override { return true; }

  [[nodiscard]] std::span<const std::byte> map() const override { return span_of(*bytes_); }

  void check_unchanged() const override { bytes_->check_unchanged(); }

  [[nodiscard]] const std::shared_ptr<const Storage>& bytes() const noexcept { return bytes_; }

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes_->read(offset, out);
  }

  std::shared_ptr<const Storage> bytes_;
};

class RangeStorage final : public Storage {
 public:
  RangeStorage(SourceSpan span, std::uint64_t size, Access access, bool holds_many)
      : Storage(size), span_(std::move(span)), access_(access), holds_many_(holds_many) {}

  [[nodiscard]] bool holds_many() const noexcept override { return holds_many_; }

  [[nodiscard]] const std::byte* data() const override {
    if (size() == 0) return nullptr;
    if (access_ == Access::map) return source().map().data() + span_.offset;
    const auto make = [this] {
      auto memory = Storage::heap(size());
      read_by_all_threads({memory->mutable_data(), static_cast<std::size_t>(size())});
      return memory;
    };
    return memory_.get(make)->data();
  }

  [[nodiscard]] bool ready() const noexcept override { return access_ == Access::map || memory_.ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (!source().is_writable() || !ready()) {
      source().read(span_.offset + offset, out);
    } else if (!out.empty()) {  // somebody may have written to it since
      std::memcpy(out.data(), data() + offset, out.size());
    }
  }

  [[nodiscard]] std::optional<SourceSpan> source_span() const override {
    if (source().is_writable()) return std::nullopt;
    return span_;
  }

  void check_unchanged() const override { source().check_unchanged(); }

 private:
  [[nodiscard]] const ByteSource& source() const noexcept { return *span_.source; }

  [[nodiscard]] std::byte* writable_data() override {
    // This process's own memory then, which map() hands out for reading.
    return source().is_writable() ? const_cast<std::byte*>(data()) : nullptr;
  }

  // A disk, and a server even more, has more to give than one reader takes.
  void read_by_all_threads(std::span<std::byte> out) const {
    parallel_for(
        (out.size() + kPieceBytes - 1) / kPieceBytes, 1, [&](std::uint64_t begin, std::uint64_t end) {
          const std::uint64_t from = begin * kPieceBytes;
          source().read(span_.offset + from,
                        out.subspan(from, std::min<std::uint64_t>(out.size(), end * kPieceBytes) - from));
        });
  }

  SourceSpan span_;
  Access access_;
  bool holds_many_;
  Lazy<std::shared_ptr<Storage>> memory_;
};

}  // namespace

std::shared_ptr<const Storage> range_of(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                                        Access access, bool holds_many) {
  if (!fits(offset, size, source.size())) {
    fail(Errc::truncated, source.where(), "{} bytes at offset {} lie outside the file of {} bytes", size,
         offset, source.size());
  }
  SourceSpan span = innermost({source.shared_from_this(), offset});
  if (const auto* memory = dynamic_cast<const MemorySource*>(span.source.get()))
    return slice_storage(memory->bytes(), span.offset, size);
  return std::make_shared<RangeStorage>(std::move(span), size, access, holds_many);
}

std::shared_ptr<const Storage> elements_of(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                                           std::uint64_t item) {
  if (!source.is_mapped()) return range_of(source, offset, size, Access::read);
  const bool is_aligned =
      size == 0 || reinterpret_cast<std::uintptr_t>(source.map().data() + offset) % item == 0;
  auto range = range_of(source, offset, size, is_aligned ? Access::map : Access::read);
  if (is_aligned || !range->ready()) return range;
  return Storage::deferred(size, [range](std::span<std::byte> out) { range->read(0, out); }, {range});
}

std::shared_ptr<const Storage> Storage::of(const ByteSource& source, std::uint64_t offset, std::uint64_t size,
                                           std::uint64_t item) {
  return elements_of(source, offset, size, item);
}

std::shared_ptr<const Storage> load_range(const ByteSource& source, std::uint64_t offset,
                                          std::uint64_t size) {
  const SourceSpan span = innermost({source.shared_from_this(), offset});
  if (dynamic_cast<const MemorySource*>(span.source.get()) != nullptr) return range_of(source, offset, size);
  auto memory = Storage::heap(size);
  source.read(offset, {memory->mutable_data(), static_cast<std::size_t>(size)});
  return memory;
}

std::shared_ptr<const ByteSource> memory_source(std::shared_ptr<const Storage> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

std::shared_ptr<const Storage> slice_storage(std::shared_ptr<const Storage> whole, std::uint64_t offset,
                                             std::uint64_t size) {
  if (!fits(offset, size, whole->size())) {
    fail(Errc::truncated, "storage", "{} bytes at offset {} lie outside its {} bytes", size, offset,
         whole->size());
  }
  return std::make_shared<SliceStorage>(std::move(whole), offset, size);
}

}  // namespace ballast
