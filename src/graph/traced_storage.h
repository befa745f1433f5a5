// SPDX-License-Identifier: Apache-2.0
// The storage of a traced tensor: the bytes the operation computed for the made-up inputs, which operations
// may read and the model's own code may not, unless they follow from parameters and constants alone.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "ballast/storage.h"
#include "base/fail.h"
#include "tensor/trace.h"

namespace ballast::graph {

/// What the tensors of one trace share; outlives it as long as one of them does.
struct Session {
  std::atomic<int> running{0};  // operations at work: they may read
  std::atomic<bool> finished{false};
  std::function<void(const Storage&)> before_write;
};

class TracedStorage final : public Storage {
 public:
  TracedStorage(std::shared_ptr<const Storage> bytes, std::shared_ptr<Session> session, std::int64_t value,
                bool known, std::string made_by, std::shared_ptr<std::atomic<bool>> written)
      : Storage(bytes->size(), bytes->device()),
        bytes_(std::move(bytes)),
        session_(std::move(session)),
        value_(value),
        known_(known),
        made_by_(std::move(made_by)),
        written_(std::move(written)) {}

  [[nodiscard]] const std::byte* data() const override {
    check_readable();
    return bytes_->data();
  }

  [[nodiscard]] std::uint64_t version() const noexcept override { return bytes_->version(); }

  [[nodiscard]] bool ready() const noexcept override { return bytes_->ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_readable();
    bytes_->read(offset, out);
  }

  [[nodiscard]] const std::shared_ptr<const Storage>& bytes() const noexcept { return bytes_; }

  [[nodiscard]] const std::shared_ptr<Session>& session() const noexcept { return session_; }

  [[nodiscard]] std::int64_t value() const noexcept { return value_; }

  [[nodiscard]] bool known() const noexcept { return known_; }

  /// True when the host changed the bytes after the operation: they are a constant then.
  [[nodiscard]] const std::shared_ptr<std::atomic<bool>>& written() const noexcept { return written_; }

 private:
  [[nodiscard]] std::byte* writable_data() override {
    check_readable();
    if (!written_->load() && !session_->finished.load()) session_->before_write(*bytes_);
    written_->store(true);
    return mutable_data_behind(*bytes_);
  }

  // Not the thread decides: operations share their work among several, and a model that computes in a thread
  // of its own must not get past the recorder.
  void check_readable() const {
    if (known_ || session_->running.load() > 0) return;
    fail(
        Errc::traced_value, made_by_,
        "the value depends on the model's inputs and is not known while the model is traced; only shapes and "
        "dtypes are");
  }

  std::shared_ptr<const Storage> bytes_;
  std::shared_ptr<Session> session_;
  std::int64_t value_;
  bool known_;
  std::string made_by_;
  std::shared_ptr<std::atomic<bool>> written_;
};

}  // namespace ballast::graph
