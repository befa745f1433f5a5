// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors/record_data.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ballast/error.h"
#include "base/blocks.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/hash_xxh3.h"
#include "base/lazy.h"
#include "checkpoint/record_metadata.h"
#include "checkpoint/value_json.h"
#include "tensor/blocks.h"
#include "tensor/forwarding.h"

namespace ballast {
namespace {

bool is_checksum(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

NameMap<std::string> parsed(const std::string& text, const std::string& where) {
  NameMap<std::string> sums;
  const Value object = parse_json(text, where);
  if (object.kind() != Kind::dict) fail(Errc::bad_json, where, "is no object");
  for (std::size_t i = 0; i < object.size(); ++i) {
    const Value sum = object.value(i);
    if (sum.kind() != Kind::string || !is_checksum(sum.as_string()))
      fail(Errc::bad_json, where, "the checksum of {} is not 16 hexadecimal digits",
           quoted(object.key(i).as_string()));
    sums.emplace(object.key(i).as_string(), sum.as_string());
  }
  return sums;
}

std::string where_in(const std::string& file) {
  return file + ": metadata " + quoted(record::kChecksumsKey);
}

std::string checksum_of(const Storage& bytes, std::uint64_t begin, std::uint64_t end) {
  Xxh3 hash;
  for_each_block(bytes, begin, end,
                 [&](std::uint64_t, std::span<const std::byte> block) { hash.update(block); });
  return hex(hash.digest());
}

class RecordData final : public ForwardingStorage {
 public:
  RecordData(std::shared_ptr<const Storage> content, std::vector<RecordPiece> pieces,
             std::shared_ptr<const RecordSums> sums, std::shared_ptr<const void> owner)
      : ForwardingStorage(content->size()),
        content_(std::move(content)),
        pieces_(std::move(pieces)),
        sound_(pieces_.size()),
        sums_(std::move(sums)),
        owner_(std::move(owner)) {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const RecordPiece& a, const RecordPiece& b) { return a.begin < b.begin; });
  }

  [[nodiscard]] bool holds_many() const noexcept override { return content_->holds_many(); }

  [[nodiscard]] bool ready() const noexcept override { return content_->ready(); }

  void check_sound(std::uint64_t begin, std::uint64_t end) const override {
    auto piece = std::partition_point(pieces_.begin(), pieces_.end(),
                                      [&](const RecordPiece& each) { return each.end <= begin; });
    for (; piece != pieces_.end() && piece->begin < end; ++piece) {
      std::atomic<bool>& is_sound = sound_[static_cast<std::size_t>(piece - pieces_.begin())];
      if (is_sound) continue;
      sums_->check(*content_, piece->begin, piece->end, piece->name);
      is_sound = true;
    }
  }

 private:
  [[nodiscard]] const Storage& content() const override { return *content_; }

  std::shared_ptr<const Storage> content_;
  std::vector<RecordPiece> pieces_;  // in the order of the data, without overlap
  mutable std::vector<std::atomic<bool>> sound_;
  std::shared_ptr<const RecordSums> sums_;
  std::shared_ptr<const void> owner_;
};

}  // namespace

std::uint64_t xxh3_of(const Tensor& tensor) {
  Xxh3 hash;
  for_each_block(tensor, [&](std::uint64_t, std::span<const std::byte> bytes) { hash.update(bytes); });
  return hash.digest();
}

NameMap<std::string> checksums_in(const Checkpoint& checkpoint) {
  const std::string* text = record::find(checkpoint, record::kChecksumsKey);
  if (text == nullptr) return {};
  return parsed(*text, where_in(display(checkpoint.path)));
}

struct RecordSums::State {
  std::string text;
  std::string where;
  Lazy<NameMap<std::string>> by_name;
};

RecordSums::RecordSums(std::string text, std::string where) : state_(std::make_unique<State>()) {
  state_->text = std::move(text);
  state_->where = std::move(where);
}

RecordSums::~RecordSums() = default;

void RecordSums::check(const Storage& bytes, std::uint64_t begin, std::uint64_t end,
                       std::string_view name) const {
  State& state = *state_;
  const auto& by_name = state.by_name.get([&] { return parsed(state.text, where_in(state.where)); });
  const auto expected = by_name.find(std::string(name));
  if (expected == by_name.end())
    fail(Errc::bad_crc, state.where, "the record has no checksum for tensor {}", quoted(name));
  const std::string found = checksum_of(bytes, begin, end);
  if (found != expected->second)
    fail(Errc::bad_crc, state.where,
         "tensor {}: its bytes have the checksum {}, the record says {} (damaged on the way?)", quoted(name),
         found, expected->second);
}

std::shared_ptr<const Storage> record_data(std::shared_ptr<const Storage> content,
                                           std::vector<RecordPiece> pieces,
                                           std::shared_ptr<const RecordSums> sums,
                                           std::shared_ptr<const void> owner) {
  return std::make_shared<RecordData>(std::move(content), std::move(pieces), std::move(sums),
                                      std::move(owner));
}

}  // namespace ballast
