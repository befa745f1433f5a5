// SPDX-License-Identifier: Apache-2.0
// The opcodes of a protocol-2 pickle, one call each; only those that torch.load(weights_only=True) and
// libtorch know.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ballast/shape.h"
#include "base/hash.h"
#include "formats/torch/roles.h"

namespace ballast::torch {

class PickleEmitter {
 public:
  PickleEmitter() { out_ = "\x80\x02"; }

  [[nodiscard]] std::string finish() && {
    out_ += '.';
    return std::move(out_);
  }

  void none() { out_ += 'N'; }

  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }

  void integer(std::int64_t value);
  /// Decimal digits of any number; false when it has more than 255 bytes.
  [[nodiscard]] bool big_integer(std::string_view decimal);
  void floating(double value);
  /// UTF-8.
  void string(std::string_view text);
  /// The same, written once and referred to from then on. `text` must outlive the emitter.
  std::uint32_t repeated_string(std::string_view text);
  /// Bytes as the Latin-1 text Python 2 could carry: ends with two strings' worth of a tuple, to be followed
  /// by a call.
  void latin1(std::span<const std::byte> bytes);
  /// A class, function or constant of the table of roles: the only names there are in what is written.
  void global(std::string_view module, std::string_view name);

  void mark() { out_ += '('; }

  void empty_tuple() { out_ += ')'; }

  void empty_list() { out_ += ']'; }

  void empty_dict() { out_ += '}'; }

  void appends() { out_ += 'e'; }

  void set_items() { out_ += 'u'; }

  /// Needs a mark below the elements when there are more than three.
  void tuple(std::size_t size);

  /// All down to the last mark.
  void marked_tuple() { out_ += 't'; }

  void integers(ShapeView numbers);

  void call() { out_ += 'R'; }

  void build() { out_ += 'b'; }

  void persistent_id() { out_ += 'Q'; }

  void ordered_dict();  ///< an empty one

  /// Remembers what was written last.
  [[nodiscard]] std::uint32_t remember();
  void recall(std::uint32_t slot);

 private:
  std::string out_;
  std::uint32_t slots_ = 0;
  std::unordered_map<const KnownGlobal*, std::uint32_t> globals_;
  NameViewMap<std::uint32_t> strings_;
};

}  // namespace ballast::torch
