// SPDX-License-Identifier: Apache-2.0
#include "formats/source.h"

#include "ballast/display.h"
#include "base/checked.h"
#include "base/file.h"

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

  [[nodiscard]] std::optional<FileSpan> file_span() const override {
    auto span = whole_->file_span();
    if (span) span->offset += offset_;
    return span;
  }

 private:
  [[nodiscard]] std::byte* writable_data() override {
    std::byte* bytes = const_cast<Storage&>(*whole_).mutable_data();
    return bytes == nullptr ? nullptr : bytes + offset_;
  }

  std::shared_ptr<const Storage> whole_;
  std::uint64_t offset_;
};

}  // namespace

Source::Source(std::shared_ptr<const File> file, FileAccess access)
    : file_(std::move(file)), size_(file_->size()), where_(display(file_->path())), access_(access) {}

Source::Source(std::shared_ptr<const Storage> bytes, std::string where)
    : bytes_(std::move(bytes)), size_(bytes_->size()), where_(std::move(where)) {}

void Source::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.empty()) return;
  if (file_)
    file_->read(offset, out);
  else
    bytes_->read(offset, out);
}

std::shared_ptr<const Storage> Source::load(std::uint64_t offset, std::uint64_t length) const {
  if (!file_) return slice_storage(bytes_, offset, length);
  auto memory = Storage::heap(length);
  file_->read(offset, {memory->mutable_data(), static_cast<std::size_t>(length)});
  return memory;
}

std::shared_ptr<const Storage> Source::range(std::uint64_t offset, std::uint64_t length) const {
  if (file_) return file_storage(file_, offset, length, access_);
  return slice_storage(bytes_, offset, length);
}

std::shared_ptr<const Storage> Source::elements(std::uint64_t offset, std::uint64_t length,
                                                std::uint64_t item) const {
  if (file_) return file_storage(file_, offset, length, offset % item == 0 ? access_ : FileAccess::read);
  auto slice = slice_storage(bytes_, offset, length);
  if (reinterpret_cast<std::uintptr_t>(slice->data()) % item == 0) return slice;
  return Storage::deferred(length, [slice](std::span<std::byte> out) { slice->read(0, out); }, {slice});
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
