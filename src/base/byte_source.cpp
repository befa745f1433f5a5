// SPDX-License-Identifier: Apache-2.0
#include "ballast/byte_source.h"

#include "ballast/error.h"
#include "base/checked.h"

namespace ballast {
namespace {

class Window final : public ByteSource {
 public:
  Window(std::shared_ptr<const ByteSource> whole, std::uint64_t offset, std::uint64_t size)
      : ByteSource(whole->name(), size), whole_(std::move(whole)), offset_(offset) {}

  [[nodiscard]] bool is_mapped() const noexcept override { return whole_->is_mapped(); }

  [[nodiscard]] std::span<const std::byte> map() const override {
    return whole_->map().subspan(static_cast<std::size_t>(offset_), static_cast<std::size_t>(size()));
  }

  [[nodiscard]] bool is_writable() const noexcept override { return whole_->is_writable(); }

  [[nodiscard]] std::string identity() const override {
    const std::string whole = whole_->identity();
    return whole.empty() ? whole : fmt::format("{} [{}, {})", whole, offset_, offset_ + size());
  }

  void check_unchanged() const override { whole_->check_unchanged(); }

  [[nodiscard]] SourceSpan outside(std::uint64_t offset) const { return {whole_, offset_ + offset}; }

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    whole_->read(offset_ + offset, out);
  }

  void read_ranges(std::span<const Range> ranges) const override {
    std::vector<Range> moved(ranges.begin(), ranges.end());
    for (Range& range : moved) range.offset += offset_;
    whole_->read(moved);
  }

  std::shared_ptr<const ByteSource> whole_;
  std::uint64_t offset_;
};

}  // namespace

ByteSource::ByteSource(std::string name, std::uint64_t size)
    : name_(std::move(name)), where_(display(name_)), size_(size) {}

ByteSource::ByteSource(std::string name, std::uint64_t size, std::string where)
    : name_(std::move(name)), where_(std::move(where)), size_(size) {}

void ByteSource::check(std::uint64_t offset, std::uint64_t length) const {
  if (fits(offset, length, size_)) return;
  fail(Errc::truncated, where_, "needs {} bytes at offset {}, the file has {}", length, offset, size_);
}

void ByteSource::read(std::uint64_t offset, std::span<std::byte> out) const {
  check(offset, out.size());
  if (!out.empty()) read_bytes(offset, out);
}

std::vector<std::byte> ByteSource::read(std::uint64_t offset, std::uint64_t length) const {
  check(offset, length);  // before the allocation: the length may come from the file
  std::vector<std::byte> bytes(static_cast<std::size_t>(length));
  if (length > 0) read_bytes(offset, bytes);
  return bytes;
}

void ByteSource::read(std::span<const Range> ranges) const {
  for (const Range& range : ranges) check(range.offset, range.out.size());
  read_ranges(ranges);
}

void ByteSource::read_ranges(std::span<const Range> ranges) const {
  for (const Range& range : ranges) {
    if (!range.out.empty()) read_bytes(range.offset, range.out);
  }
}

std::shared_ptr<const ByteSource> window(std::shared_ptr<const ByteSource> whole, std::uint64_t offset,
                                         std::uint64_t size) {
  if (!fits(offset, size, whole->size()))
    fail(Errc::truncated, whole->where(), "{} bytes at offset {} lie outside its {} bytes", size, offset,
         whole->size());
  return std::make_shared<Window>(std::move(whole), offset, size);
}

SourceSpan innermost(SourceSpan span) {
  while (const auto* window = dynamic_cast<const Window*>(span.source.get()))
    span = window->outside(span.offset);
  return span;
}

}  // namespace ballast
