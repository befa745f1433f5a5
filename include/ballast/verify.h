// SPDX-License-Identifier: Apache-2.0
// verify(): is this file sound? Its structure (by opening it), every checksum it holds, the receipt of the
// conversion it comes from, and every value: NaN, infinities, tensors of nothing but zeros. And
// verify_signature(): is it what somebody signed? Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; what opening and reading the files throws, and what the functions say; what is wrong
// with a model that can be read is a finding. Owns: results are values; names are constants. Threads: every
// function may be called from several at once; each works on all threads of runtime.h. Costs: every byte is
// read, once for each thing that is looked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/dtype.h"
#include "ballast/format.h"
#include "ballast/runtime.h"
#include "ballast/shape.h"
#include "ballast/steps.h"

#pragma GCC visibility push(default)

namespace ballast {

/// In the order of work.
struct VerifyOptions {
  Io io = Io::read;                      ///< how tensors come into memory
  bool inert = false;                    ///< read past calls in a pickle that could run code
  double expansion = kExpansion;         ///< as OpenOptions::expansion
  std::vector<Format> formats = {};      ///< as OpenOptions::formats
  std::optional<std::string> root = {};  ///< only what lies at this dotted path; absent: everything
  std::vector<RenameRule> rename = {};   ///< this and the following up to keep_statistics: as in Steps
  std::vector<rules::Rule> rules = {};
  bool strip_prefixes = false;
  std::vector<std::string> include = {};
  std::vector<std::string> exclude = {};
  std::vector<std::string> reindex = {};
  std::vector<std::string> keep_positions = {};
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype = {};
  bool keep_statistics = true;
  std::string receipt = {};   ///< compare the file and every tensor with this Receipt (convert.h)
  bool tensors_only = false;  ///< of the receipt: not the file's own bytes, which a changed header changes
  bool allow_zeros = false;   ///< tensors of nothing but zeros are fine; a single zero always is
  double max_abs = 0;         ///< not 0: a larger magnitude is a finding
  Progress progress = {};     ///< for each pass over the data anew
};

/// What is wrong with a tensor or a file.
enum class Fault : std::uint8_t { nan, inf, zero, large, checksum, receipt };

/// "nan", "inf", "zero", "large", "checksum", "receipt": constants.
[[nodiscard]] std::string_view name(Fault fault) noexcept;

/// Something that is wrong.
struct VerifyFinding {
  Fault kind = Fault::nan;                  ///< what it is
  std::string name = {};                    ///< of the tensor; empty for the file as a whole
  DType dtype = DType::f32;                 ///< of the tensor
  Shape shape = {};                         ///< of the tensor
  std::uint64_t count = 1;                  ///< values that are so
  std::uint64_t of = 0;                     ///< values there are
  std::optional<std::uint64_t> first = {};  ///< place of the first NaN or infinity, row by row
  std::string detail = {};                  ///< for people
};

/// What verify() found.
struct VerifyReport {
  Format format;                        ///< as Checkpoint::format
  std::uint64_t tensors = 0;            ///< that were looked at
  std::uint64_t bytes = 0;              ///< that they take
  std::vector<VerifyFinding> findings;  ///< in the file's order
  std::vector<std::string> notes;       ///< worth knowing, and no fault

  /// Nothing is wrong.
  [[nodiscard]] bool clean() const noexcept { return findings.empty(); }
};

/// Throws when the file cannot be read, or is not what its format allows: what open() throws;
/// Errc::invalid_argument for `tensors_only` without a receipt, and what the steps throw. A checksum that is
/// wrong is a finding. Reads every byte, on all threads, in a few megabytes of memory.
[[nodiscard]] VerifyReport verify(const std::string& path, const VerifyOptions& options = {});

/// For sign() and verify_signature(), in the order of work.
struct SignatureOptions {
  std::string key = {};  ///< a PEM file: the private key to sign with, the public one to verify with
  std::string passphrase_file = {};  ///< its first line opens a private key that is encrypted
  std::string certificate = {};      ///< to sign: a PEM file with the certificate of the key
  /// PEM files. To sign: certificates between it and the root, which travel with the signature. To verify,
  /// in place of a key: those that are trusted.
  std::vector<std::string> certificate_chain = {};
  std::vector<std::string> ignore = {};  ///< files and folders of the model that do not count
  bool ignore_git = true;                ///< nor do .git, .gitattributes, .github and .gitignore at its top
  bool allow_symlinks = false;           ///< links to files count as files; links to folders are not followed
  bool ignore_unsigned = false;          ///< to verify: files that nobody signed may be there
  bool overwrite = false;                ///< to sign
  Progress progress = {};
};

/// What is wrong with a file that was signed.
enum class SignatureFault : std::uint8_t { changed, missing, added };

/// "changed", "missing", "added": constants.
[[nodiscard]] std::string_view name(SignatureFault fault) noexcept;

/// A file that is not as it was signed.
struct SignatureFinding {
  SignatureFault kind = SignatureFault::changed;  ///< what it is
  std::string name = {};  ///< of the file, below the model; "." where the model is one file
};

/// What sign() did, or verify_signature() found.
struct SignatureReport {
  std::string model;                       ///< what it was called when it was signed, which proves nothing
  std::string signer;                      ///< "CN=…", or "key" and the SHA-256 of the public key
  std::uint64_t files = 0;                 ///< that were signed
  std::uint64_t bytes = 0;                 ///< that were read
  std::vector<std::string> ignored;        ///< paths that the signature says nothing about
  std::vector<SignatureFinding> findings;  ///< empty: all is as it was signed
  std::vector<std::string> notes;          ///< worth knowing, and no fault

  /// All is as it was signed.
  [[nodiscard]] bool clean() const noexcept { return findings.empty(); }
};

/// Signs the names and the bytes of all files of a folder, or of one file, as OpenSSF Model Signing 1.0 does
/// (docs/seal.md), into a file of their own. Reads every byte, many files at a time.
/// Errc::invalid_argument without a key, for a key or certificates that are not fit or not opened by the
/// passphrase, and for no file to sign; already_exists without `overwrite`, and what is there must be a
/// signature; bad_name for a file's name that is not UTF-8; file_changed when files change meanwhile.
SignatureReport sign(const std::string& path, const std::string& signature, const SignatureOptions& options);

/// Whether a folder or file is what was signed: files that changed, are missing or were added are findings.
/// Throws Errc::wrong_signature, before any file is read, when the key or the certificates did not sign it;
/// Errc::bad_bundle and unsupported for signatures that are no such bundle, or of another kind;
/// header_too_large for files no key or signature is; invalid_argument unless either a key or certificates
/// are given; file_changed as sign().
[[nodiscard]] SignatureReport verify_signature(const std::string& path, const std::string& signature,
                                               const SignatureOptions& options);

}  // namespace ballast

#pragma GCC visibility pop
