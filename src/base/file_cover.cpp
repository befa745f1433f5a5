// SPDX-License-Identifier: Apache-2.0
#include "base/file_cover.h"

#include <utility>

namespace ballast {
namespace {

constinit thread_local const CoverScope::Make* current_cover = nullptr;

class CoveredSource final : public ByteSource {
 public:
  CoveredSource(const std::string& path, const FileCover& cover)
      : ByteSource(path, cover.size()), cover_(cover) {}

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    cover_.read_at(offset, out);
  }

  const FileCover& cover_;
};

}  // namespace

CoverScope::CoverScope(Make make) : make_(std::move(make)), outer_(std::exchange(current_cover, &make_)) {}

CoverScope::~CoverScope() {
  current_cover = outer_;
}

std::unique_ptr<FileCover> CoverScope::make() {
  return current_cover == nullptr ? nullptr : (*current_cover)();
}

std::shared_ptr<const ByteSource> written_under(const FileCover& cover, const std::string& path) {
  return std::make_shared<CoveredSource>(path, cover);
}

}  // namespace ballast
