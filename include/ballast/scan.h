// SPDX-License-Identifier: Apache-2.0
// What is in a file before anybody loads it: every global a pickle names, every call it makes, with the
// verdict of the very parser that loads files, and whatever is odd about the container. Nothing is executed.
// Part of ballast::import.
//
// Throws: Errc::file_not_found, permission_denied, not_regular_file and io_error of every path, and what the
// functions say. Owns: results are values; names are constants. Threads: every function may be called from
// several at once. Costs: pickles and directories are read whole, tensors only for checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/error.h"
#include "ballast/format.h"

#pragma GCC visibility push(default)

namespace ballast {

/// How bad a finding is.
enum class Severity : std::uint8_t {
  note,     ///< worth knowing
  warning,  ///< unusual, a way to hide something, or what kept Ballast from reading on
  danger,   ///< could run code when loaded by PyTorch
};

/// Of a global, of a call, of a whole file.
enum class Verdict : std::uint8_t {
  clean,    ///< every global has a role and every call fits it: loading makes data and nothing else
  unknown,  ///< something else is named, called or hidden: an inert object here, code of somebody's in Python
  danger,   ///< known to run code, start a process, touch files or the network
};

/// "note", "warning", "danger": constants.
[[nodiscard]] std::string_view name(Severity severity) noexcept;
/// "clean", "unknown", "danger": constants.
[[nodiscard]] std::string_view name(Verdict verdict) noexcept;

/// Something in the file that somebody should know of.
struct ScanFinding {
  Severity severity = Severity::note;  ///< how bad it is
  Errc code = Errc::bad_pickle;        ///< what it would be refused as
  std::string what;                    ///< for people
  std::uint64_t offset = 0;            ///< in the entry, or in the file when `entry` is empty
  std::string entry;                   ///< of a zip or tar
};

/// Something a pickle names.
struct ScanGlobal {
  std::string name;                    ///< "posix.system"
  std::uint64_t offset = 0;            ///< of its first mention
  std::uint64_t count = 0;             ///< of mentions
  Verdict verdict = Verdict::unknown;  ///< of the name alone
  std::string entry;                   ///< of a zip or tar
};

/// Calls of one callee from one entry.
struct ScanCall {
  std::string name;                    ///< of the callee
  std::uint64_t offset = 0;            ///< of the first
  std::uint64_t count = 0;             ///< of the calls
  Verdict verdict = Verdict::unknown;  ///< of the worst of them
  std::string entry;                   ///< of a zip or tar
  std::vector<std::uint64_t> offsets;  ///< of those that are not clean, up to 1000
};

/// What scan() found.
struct ScanReport {
  Format format;                      ///< as Checkpoint::format; none when it could not be told
  std::vector<ScanFinding> findings;  ///< of each severity up to 1000
  std::vector<ScanGlobal> globals;    ///< all names in its pickles
  std::vector<ScanCall> calls;        ///< all calls in its pickles

  /// The worst of all findings, globals and calls.
  [[nodiscard]] Verdict verdict() const noexcept;

  /// Loading it in Python makes data and does nothing else.
  [[nodiscard]] bool clean() const noexcept { return verdict() == Verdict::clean; }
};

/// Throws when the file cannot be read at all or is no model file (Errc::unknown_format). What Ballast
/// refuses in a model file is a finding with its code, Errc::missing_shard and index_mismatch of shards,
/// header_too_large for a pickle that nobody looked into and unsupported for what is not looked into among
/// them. `checksums`: read every byte, too, and compare every checksum the container holds.
[[nodiscard]] ScanReport scan(const std::string& path, bool checksums = true);

/// A pickle of a file: an entry of its archive, or the file itself.
struct PickleEntry {
  std::string name;         ///< as ScanFinding::entry; empty: the file itself
  std::uint64_t bytes = 0;  ///< its size
};

/// None where the file holds no pickle that is written down as one: Safetensors, arrays, ONNX. Of shards
/// those of all, as "pytorch_model-00001-of-00002.bin: archive/data.pkl". Throws what its container is
/// refused as: Errc::bad_zip, truncated, bad_tar, missing_shard, …; a pickle that is too large to be listed
/// (Errc::header_too_large) is there.
[[nodiscard]] std::vector<PickleEntry> pickle_entries(const std::string& path);

/// One opcode.
struct PickleLine {
  std::uint64_t offset = 0;  ///< in the entry
  std::string_view opcode;   ///< "GLOBAL": the name Python's pickletools has for it; "?" for what is none
  std::string argument;      ///< made safe to show; long texts are cut
};

/// Opcodes one by one, as they are written, from `offset` on, where one must begin, and at most `most` of
/// them. Nothing is run.
struct PickleLines {
  std::vector<PickleLine> lines;           ///< in their order
  std::optional<std::uint64_t> next = {};  ///< offset of the one after the last; none at the end
};

/// `entry` is a position in pickle_entries(). Errc::not_found when there is none, offset_out_of_range behind
/// its end, header_too_large beyond the limit. Bytes that are no pickle end the list with the opcode "?".
[[nodiscard]] PickleLines list_pickle(const std::string& path, std::size_t entry, std::uint64_t offset,
                                      std::size_t most);

/// What check_integrity() compared.
struct Checksums {
  std::uint64_t checked = 0;  ///< bytes whose checksum is right
  std::uint64_t without = 0;  ///< bytes the container holds no checksum for
};

/// Reads a whole file and compares every header and checksum its container holds: Errc::bad_crc, or what
/// open() would say. Zip archives hold them; opening one checks the pickle's alone. ONNX models may, of
/// external data.
[[nodiscard]] Checksums check_integrity(const std::string& path);

}  // namespace ballast

#pragma GCC visibility pop
