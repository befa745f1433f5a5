// SPDX-License-Identifier: Apache-2.0
#include "tensor/resident.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "base/file.h"

namespace ballast {
namespace {

constexpr std::uint64_t kLeast = 256 << 10;  // less is not worth a call of the system's

// Only what is mapped for reading may be dropped: of every other mapping this would lose what was written.
bool is_read_only_file(const ByteSource* source) {
  const auto* file = dynamic_cast<const File*>(source);
  return file != nullptr && file->is_mapped() && !file->is_writable();
}

}  // namespace

void give_back_pages(const Tensor& tensor) noexcept try {
  if (!tensor.defined() || !tensor.storage() || tensor.size_bytes() < kLeast) return;
  if (!tensor.is_contiguous() && !(tensor.rank() == 2 && tensor.t().is_contiguous())) return;
  const auto span = tensor.storage()->source_span();
  if (!span || !is_read_only_file(span->source.get())) return;
  const auto mapping = span->source->map();
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(mapping.data());
  const auto data = reinterpret_cast<std::uintptr_t>(tensor.data());
  if (data < first || data - first > mapping.size() || tensor.size_bytes() > mapping.size() - (data - first))
    return;  // a copy of them, somewhere else
  const std::uintptr_t begin = (data + page - 1) / page * page;
  const std::uintptr_t end = (data + tensor.size_bytes()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
} catch (...) {  // nothing was to be gained but memory
}

}  // namespace ballast
