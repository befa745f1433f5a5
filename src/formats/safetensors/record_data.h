// SPDX-License-Identifier: Apache-2.0
// The data of a record, which knows the checksums of the tensors in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/storage.h"
#include "base/hash.h"

namespace ballast {

/// "ballast.xxh3" by name; what is no text there is no checksum. Empty when there is none, Errc::bad_json
/// when it makes no sense.
[[nodiscard]] NameMap<std::string> checksums_in(const Checkpoint& checkpoint);

/// Of a tensor's row-major bytes.
[[nodiscard]] std::uint64_t xxh3_of(const Tensor& tensor);

/// Errc::bad_crc, naming the first tensor of a record whose bytes are not what its checksum says, or that has
/// none. Reads every byte.
void require_checksums(const Checkpoint& checkpoint);

/// What a record says of its tensors' bytes: a JSON text, parsed when the first is compared.
class RecordSums {
 public:
  RecordSums(std::string text, std::string where);
  ~RecordSums();
  RecordSums(const RecordSums&) = delete;
  RecordSums& operator=(const RecordSums&) = delete;

  /// Errc::bad_crc when `bytes` from `begin` to `end` do not have the checksum of tensor `name`.
  void check(const Storage& bytes, std::uint64_t begin, std::uint64_t end, std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where a tensor lies in a storage.
struct RecordPiece {
  std::uint64_t begin;
  std::uint64_t end;
  std::string_view name;  ///< of the header, which the checkpoint keeps alive
};

/// All of `content`; check_sound() compares what it covers, each tensor once. `owner` keeps the names alive.
[[nodiscard]] std::shared_ptr<const Storage> record_data(std::shared_ptr<const Storage> content,
                                                         std::vector<RecordPiece> pieces,
                                                         std::shared_ptr<const RecordSums> sums,
                                                         std::shared_ptr<const void> owner);

}  // namespace ballast
