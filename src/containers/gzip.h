// SPDX-License-Identifier: Apache-2.0
// gzip, for Burn's .mpk.gz, and the beginning of a deflated zip entry. Everything else that is deflated goes
// through libdeflate, which is faster but wants the whole output at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/budget.h"
#include "containers/part_writer.h"
#include "tensor/source_storage.h"

namespace ballast::containers {

/// The most that gunzip() makes of so many bytes: all of it lies in memory, like everything that an open
/// makes.
[[nodiscard]] constexpr std::uint64_t most_unpacked(std::uint64_t packed) {
  return Budget::kBytes + Budget::kBytesPerByte * packed;
}

/// What the one member of a gzip file unpacks to, in memory. Errc::expansion_limit, before the memory is
/// taken, when that is more than most_unpacked(); Errc::trailing_data when something follows it.
[[nodiscard]] std::shared_ptr<const Storage> gunzip(const ByteSource& source);

/// Its first bytes, at most `most`; fewer, and no error, when it is damaged. To find out what it is.
[[nodiscard]] std::vector<std::byte> gunzip_head(const ByteSource& source, std::size_t most);

/// Whether something comes out when it is taken for a gzip or zlib stream.
[[nodiscard]] bool is_packed(const ByteSource& source);

/// The first `most` bytes of raw deflated data, fewer when there are fewer. Errc::bad_zip when it is damaged.
[[nodiscard]] std::vector<std::byte> inflate_head(const Storage& deflated, std::size_t most,
                                                  const std::string& where);

/// One gzip member, appended to a file as its content comes.
class GzipWriter {
 public:
  explicit GzipWriter(AtomicFile& file);
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter();

  void append(std::span<const std::byte> bytes);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All parts, one after the other. Without checksums.
void write_gzip(AtomicFile& file, std::span<const Part> parts, const Progress& progress);

}  // namespace ballast::containers
