// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ballast/detail/nn/attention.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "base/fail.h"
#include "tensor/trace.h"

namespace ballast::nn {
namespace {

constexpr std::int64_t kTokensAtOnce = 64;

void require_fit(const Tensor& seen, const Tensor& next) {
  Shape expected = next.shape();
  if (next.rank() == 4 && seen.defined() && seen.rank() == 4) {
    expected = seen.shape();
    expected[2] = next.shape()[2];
  }
  if (next.rank() != 4 || !(expected == next.shape()) || (seen.defined() && seen.dtype() != next.dtype()))
    fail(Errc::shape_mismatch, "KVCache",
         "{} {} cannot follow {}: [batch, heads, tokens, features] of one dtype", info(next.dtype()).code,
         to_string(next.shape()), seen.defined() ? to_string(seen.shape()) : std::string("nothing"));
}

Tensor appended(Tensor& room, std::int64_t length, const Tensor& next) {
  require_fit(room, next);
  if (tracing::on()) {
    room = length == 0 ? next : concat({room.narrow(2, 0, length), next}, 2);
    return room;
  }
  const std::int64_t needed = length + next.shape()[2];
  if (!room.defined() || room.shape()[2] < needed) {
    Shape shape = next.shape();
    shape[2] = std::max(2 * length, (needed / kTokensAtOnce + 1) * kTokensAtOnce);
    const Tensor larger = Tensor::empty(next.dtype(), shape);
    if (length > 0) assign(larger.narrow(2, 0, length), room.narrow(2, 0, length));
    room = larger;
  }
  if (next.numel() > 0) assign(room.narrow(2, length, next.shape()[2]), next);
  return room.narrow(2, 0, needed);
}

}  // namespace

KVCache::KVCache(const KVCache& other)
    : keys_(other.keys_.defined() ? other.keys_.clone() : Tensor()),
      values_(other.values_.defined() ? other.values_.clone() : Tensor()),
      length_(other.length_),
      trace_(tracing::recorder) {}

KVCache& KVCache::operator=(const KVCache& other) {
  if (this != &other) *this = KVCache(other);
  return *this;
}

// What a trace made is its own: values there are none, and what was there before would be overwritten by it.
void KVCache::enter_trace() {
  if (trace_ == tracing::recorder) return;
  if (length_ > 0 && trace_ == nullptr)
    fail(
        Errc::traced_value, "KVCache",
        "it holds {} tokens from before this trace, which would overwrite them: make it inside forward(), or "
        "a copy of it",
        length_);
  if (length_ > 0)
    fail(Errc::traced_value, "KVCache",
         "its {} tokens are of a trace that is over, and have no values: make it inside forward(), or "
         "truncate(0) it",
         length_);
  keys_ = values_ = Tensor();
  trace_ = tracing::recorder;
}

KVCache::Seen KVCache::append(const Tensor& keys, const Tensor& values) {
  if (keys.rank() != 4 || values.rank() != 4 || keys.shape()[2] != values.shape()[2])
    fail(Errc::shape_mismatch, "KVCache", "keys {} and values {} are not of the same tokens",
         to_string(keys.shape()), to_string(values.shape()));
  enter_trace();
  require_fit(values_, values);  // before anything is written
  Seen seen{appended(keys_, length_, keys), appended(values_, length_, values)};
  length_ += keys.shape()[2];
  return seen;
}

void KVCache::truncate(std::int64_t length) {
  if (length < 0 || length > length_)
    fail(Errc::invalid_argument, "KVCache", "{} of {} tokens", length, length_);
  length_ = length;
}

}  // namespace ballast::nn
