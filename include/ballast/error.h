// SPDX-License-Identifier: Apache-2.0
// The one exception of the library. Everything that cannot be done ends in an Error: a stable code to test,
// the place it happened in (file, tensor, byte offset) and a sentence with the numbers and the likely
// cause. docs/errors.md explains every code. And what such sentences are made of: names from files made
// safe to show, and the names that may have been meant.
//
// Throws: nothing but std::bad_alloc. Owns: what is given is a copy, where a function does not say otherwise.
// Threads: every function may be called from several at once. Costs: in proportion to the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/detail/compiler.h"

#pragma GCC visibility push(default)

namespace ballast {

/// The numbers never change, and none is used again: they may be kept in logs and in other languages. A new
/// code takes the next free number of its group.
enum class Errc : std::uint8_t {
  // What the caller asked for
  invalid_argument = 1,   ///< an argument that makes no sense by itself
  not_found = 2,          ///< no such tensor, key or path
  already_exists = 3,     ///< the output is there and overwriting was not asked for
  unsupported = 4,        ///< understood, but not something Ballast does
  not_representable = 5,  ///< the target format cannot hold this value
  // The file as a whole
  file_not_found = 20,     ///< no such file or folder
  permission_denied = 21,  ///< the operating system does not allow it
  io_error = 22,           ///< the operating system said no; the message carries its reason
  no_space = 23,           ///< the disk is full, or the file may not grow that far
  not_regular_file = 24,   ///< a folder, pipe or device where a file is needed
  file_changed = 25,       ///< the file changed or shrank while it was read
  unknown_format = 26,     ///< none of the formats Ballast reads; the message says what it looks like
  truncated = 27,          ///< the file ends before what it promises
  trailing_data = 28,      ///< bytes after the end that the format does not allow
  // Headers, names, sizes
  header_too_large = 40,     ///< a header beyond the format's limit
  bad_utf8 = 41,             ///< text that is not UTF-8
  bad_json = 42,             ///< text that is not the JSON the format asks for
  duplicate_key = 43,        ///< one name twice
  bad_name = 44,             ///< a name the format or the reader does not allow
  bad_dtype = 45,            ///< an element type that does not exist or does not fit here
  size_overflow = 46,        ///< a size that does not fit into 64 bits
  size_mismatch = 47,        ///< two sizes that must agree and do not
  misaligned = 48,           ///< sub-byte elements that do not end on a byte
  offset_out_of_range = 49,  ///< a position outside the data
  overlap = 50,              ///< two things on the same bytes
  gap = 51,                  ///< bytes that belong to nothing
  shape_mismatch = 52,       ///< shapes that cannot be used together
  // Pickle
  forbidden_global = 70,  ///< a call able to run code
  forbidden_opcode = 71,  ///< an opcode a model file has no use for
  bad_pickle = 72,        ///< not a well-formed pickle
  frame_violation = 73,   ///< an opcode across the end of its frame
  type_mismatch = 74,     ///< an operand of the wrong kind
  memo_range = 75,        ///< a memo slot that was never set, or is absurd
  too_deep = 76,          ///< nested beyond the limit
  too_many = 77,          ///< more items than the limit
  expansion_limit = 78,   ///< small input that unfolds into something huge
  expanded_view = 79,     ///< a view that shows far more elements than its storage holds
  missing_storage = 80,   ///< a tensor whose bytes are not in the file
  // Containers
  bad_zip = 100,             ///< not a well-formed zip archive
  zip_ambiguous = 101,       ///< a zip that different readers would read differently
  name_mismatch = 102,       ///< the two directories of a zip name an entry differently
  duplicate_entry = 103,     ///< two entries with one name
  encrypted_flag = 104,      ///< an entry marked as encrypted
  unsupported_method = 105,  ///< a compression method Ballast does not read
  bad_crc = 106,             ///< a checksum that does not match the data
  bad_tar = 107,             ///< not a well-formed tar archive
  bad_gzip = 108,            ///< not a well-formed gzip file
  bad_burn = 109,            ///< not the structure of a Burn file
  bad_npy = 110,             ///< not a well-formed NumPy header
  bad_onnx = 111,            ///< not the structure of an ONNX file
  path_escape = 112,         ///< a path that leaves its folder
  missing_shard = 113,       ///< a shard named by the index that is not there
  index_mismatch = 114,      ///< index and shards disagree
  bad_age = 115,             ///< not a well-formed age file
  cannot_decrypt = 116,      ///< encrypted, and no identity or passphrase that was given opens it
  bad_tag = 117,             ///< encrypted bytes that were changed, moved or cut short
  bad_bundle = 118,          ///< not a well-formed bundle with the signature of a model
  bad_packed = 119,          ///< not the structure of a packed tensor
  wrong_signature = 120,     ///< a signature that the given key or certificates did not make
  // Loading
  load_failed = 140,  ///< the model and the checkpoint do not fit; the report says where
  // Graphs and ONNX
  traced_value = 150,     ///< the model's code reads a value that depends on its inputs while it is traced
  baked_dimension = 151,  ///< a dimension was given a name, and the model takes one size of it
  not_exportable = 152,   ///< operations that the file cannot hold; the message names all of them
  onnx_invalid = 153,     ///< ONNX's own checker or shape inference refuses what was made
};

/// The stable spelling used in JSON, docs and tests: "size-mismatch". A constant; "unknown" for a
/// number that is no code.
[[nodiscard]] std::string_view name(Errc code) noexcept;

/// The one exception of the library. Copying it is cheap and does not throw.
class Error : public std::runtime_error {
 public:
  /// `where` may be empty; what() is "where: what".
  Error(Errc code, std::string where, const std::string& what);

  /// What went wrong: stable, to be tested (docs/errors.md).
  [[nodiscard]] Errc code() const noexcept { return code_; }

  /// File, then thing: "net.pt: tensor \"fc.weight\"". May be empty. Valid as long as the exception.
  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  Errc code_;
  std::string where_;
};

// Text from a file, made safe to show: terminal control bytes, bidirectional overrides and invalid UTF-8
// become visible escapes, and overlong text is cut with its length shown. Every message of the library and
// every table of the tool goes through here; so should a program that prints names it found in a file.
/// Bytes of source text that display() shows before it cuts.
inline constexpr std::size_t kDisplayLimit = 512;  // bytes of source text shown before it is cut

/// `text` with everything unprintable as `\xNN` or `\u{...}`; cut after `limit` bytes as "abc… (12345
/// bytes)".
[[nodiscard]] std::string display(std::string_view text, std::size_t limit = kDisplayLimit);

/// display() in double quotes, with quotes and backslashes escaped: for names inside sentences.
[[nodiscard]] std::string quoted(std::string_view text);

// Where <iomanip> is included, std::quoted() would be found for these, and would fit better.
/// The same for a std::string.
[[nodiscard]] inline std::string quoted(const std::string& text) {
  return quoted(std::string_view(text));
}

/// The same for a std::string.
[[nodiscard]] inline std::string quoted(std::string& text) {
  return quoted(std::string_view(text));
}

/// The same for a literal.
[[nodiscard]] inline std::string quoted(const char* text) {
  return quoted(std::string_view(text));
}

// "Did you mean": messages of the library end with it; a program that asks for names of its own can do the
// same.
/// Up to `count` of `names`, nearest first; only those near enough to be meant. They are views of `names`,
/// valid as long as those.
[[nodiscard]] std::vector<std::string_view> nearest(std::string_view wanted,
                                                    std::span<const std::string_view> names,
                                                    std::size_t count = 3);

/// "; did you mean "a" or "b"?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view wanted, std::span<const std::string_view> names);

}  // namespace ballast

#pragma GCC visibility pop
