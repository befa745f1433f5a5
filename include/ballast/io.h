// SPDX-License-Identifier: Apache-2.0
// Files of every format: open() tells them apart by their content, save() by the name it is given. Part of
// ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what the functions say; a save() that throws leaves no new file behind, and the
// old one as it was. Owns: what is opened keeps its file as long as a tensor of it lives. Threads: every
// function may be called from several at once, writers for different paths; set_identities() holds for calls
// that begin after it. Costs: open() reads headers and pickles, save() streams every byte once, or twice
// where checksums are compared before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/byte_source.h"
#include "ballast/checkpoint.h"
#include "ballast/detail/file_options.h"
#include "ballast/detail/function.h"
#include "ballast/runtime.h"
#include "ballast/safetensors.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What opens encrypted files where a call's own options name nothing, and calls that have no such options:
/// load(), convert(), verify(), scan() and the others. Until set: the identity file that the environment's
/// BALLAST_IDENTITY names.
void set_identities(std::vector<std::string> identities, std::string passphrase_file = {});

/// Any file Ballast reads, and a checkpoint in several: an index.json of shards, or a folder with one such
/// index or one model file in it. The content of a file decides its format, never its name. Costs what the
/// header or the pickle costs, and no more memory than docs/limits.md says: tensors are views of the mapped
/// file, read when they are needed. They keep it alive and may outlive the Checkpoint. Safe to call from
/// several threads. Errc::file_not_found, permission_denied, unknown_format, forbidden_global (`inert`),
/// missing_shard and index_mismatch of shards, cannot_decrypt, invalid_argument for an `expansion` below 0
/// and a folder with several models in it, and what docs/errors.md lists for files that are damaged or lie.
[[nodiscard]] Checkpoint open(const std::string& path, const OpenOptions& options = {});

/// The same for bytes that lie elsewhere: in memory, in a part of a file, on another machine (byte_source.h).
/// Errc::invalid_argument for null; what lies beside a file (shards, external data) is Errc::unsupported.
[[nodiscard]] Checkpoint open(const std::shared_ptr<const ByteSource>& source,
                              const OpenOptions& options = {});

/// What a file holds besides tensors, or a JSON file, as a tree of values; `dotted` leads to a part of it
/// ("config.optimizer.lr"). Keeps what it needs alive. Errc::not_found when that is not there, or the format
/// has no such thing; bad_json, duplicate_key, bad_utf8 and header_too_large of JSON, and what open() throws.
[[nodiscard]] Value open_value(const std::string& path, std::string_view dotted = {});

/// Atomic: the old file, or the whole new one, on the disk when it returns. Streams what the tensors show, so
/// that memory stays flat; `path` may be a file they are read from. Errc::not_representable, before anything
/// is written, for tensors the format cannot hold (metadata and other values are left out where it has no
/// place for them); unsupported for a format that is only read, options it has not, and a tensor on another
/// device; for damaged marks in the metadata (Metadata) bad_json, bad_utf8, duplicate_key, too_many,
/// bad_dtype, unsupported; invalid_argument for an extension that says no format, and recipients without
/// ".age" or the other way round; already_exists without `overwrite`; file_not_found when the folder is not
/// there; no_space, io_error; bad_crc and file_changed when a source is not sound. Safe to call from several
/// threads for different paths.
void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

/// What one shard holds at most when nothing is said; a larger tensor gets its own.
inline constexpr std::uint64_t kShardBytes = 5'000'000'000;

/// The files save_shards() wrote.
struct SavedShards {
  std::string index;               ///< "dir/model.safetensors.index.json"
  std::vector<std::string> files;  ///< "dir/model-00001-of-00002.safetensors", …
};

/// Safetensors files of a limited size and an index, as Hugging Face's libraries read them. `path` is
/// "dir/model.safetensors", or a folder, which means "model.safetensors" in it; "dir/" is made when it is not
/// there. All files are complete on the disk before the first gets its name, and the index gets its name
/// last: whatever happens, `path`'s index leads to the old shards or to the new ones. Old shards go when the
/// new index is there; where their names are taken, new ones are called model-v2-…. Without shard_bytes,
/// kShardBytes. Encrypted, every file ends in ".age", the index too, in which the names of the tensors stand.
/// Errc::unsupported for another format than Safetensors, invalid_argument for a `path` of another kind,
/// too_many beyond 10,000 shards, and what save() throws.
SavedShards save_shards(const Checkpoint& checkpoint, const std::string& path,
                        const SaveOptions& options = {});

/// The set of shards that save_shards() to `path` would replace: the index, and what it leads to. `encrypts`:
/// as with recipients or a passphrase. Errc::invalid_argument for a `path` save_shards() does not take.
[[nodiscard]] std::vector<std::string> shards_in_place(const std::string& path, bool encrypts = false);

/// Before any work: every output is a file of its own, none of `inputs` (an index or a folder stands for all
/// its files) and none of the other outputs, whatever names and links lead there, and its name is not
/// too long (Errc::invalid_argument); its folder is there (Errc::file_not_found). Of inputs, indices are
/// read.
void require_apart(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs);

/// Takes the next bytes of a file.
using AppendBytes = Function<void(std::span<const std::byte> bytes)>;

/// A text of your own beside them: atomic, like every file Ballast writes. Errc::already_exists without
/// `overwrite`, file_not_found when the folder is not there, not_regular_file for a folder or a pipe,
/// invalid_argument for no name, no_space, io_error.
void save_text(std::string_view text, const std::string& path, bool overwrite = false);

/// The same for a file that need not be in memory as a whole: `write` calls append(bytes) as often as it
/// likes. When it throws, there is no new file, and the old one is as it was; what it throws comes through as
/// it is.
void save_pieces(const std::string& path, bool overwrite,
                 const Function<void(const AppendBytes& append)>& write);

/// The same as save_text() for secrets: nobody but its owner may read the file.
void save_secret(std::string_view text, const std::string& path, bool overwrite = false);

/// A key of age's (docs/seal.md): what identity files hold, and for whom files are encrypted.
struct NewIdentity {
  std::string file;       ///< the text of an identity file: a secret
  std::string recipient;  ///< "age1…"
};

/// From the system's source of randomness; Errc::unsupported when OpenSSL has none to give.
[[nodiscard]] NewIdentity generate_identity();

/// Removes the temporary files of saves still under way. Async-signal-safe: for a program's own SIGINT
/// handler.
void discard_unfinished_files() noexcept;

}  // namespace ballast

#pragma GCC visibility pop
