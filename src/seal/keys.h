// SPDX-License-Identifier: Apache-2.0
// Who can open a file: identities and passphrases on one side, recipients on the other.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "seal/header.h"
#include "seal/primitives.h"

namespace ballast::seal {

/// What was given to open files with; nothing of it is read before a file asks for it.
struct GivenKeys {
  std::vector<std::string> identities;  // paths of identity files (of age's, or JSON Web Keys), or their text
  std::string passphrase_file;

  [[nodiscard]] bool empty() const noexcept { return identities.empty() && passphrase_file.empty(); }
};

/// Calls use(text, where) for every identity file given, those of both kinds.
void for_each_identity_file(const GivenKeys& given,
                            const std::function<void(std::string_view, const std::string&)>& use);

/// Whether an identity file holds JSON Web Keys (seal/jwk.h), and not age's.
[[nodiscard]] bool is_json_keys(std::string_view text) noexcept;

/// The file key, by the first stanza that opens. Errc::cannot_decrypt when none does; Errc::bad_age for
/// stanzas that are not what their kind says.
[[nodiscard]] FileKey unwrap(const Header& header, const GivenKeys& given, const std::string& where);

/// "age1…" of every identity of age's that was given.
[[nodiscard]] std::vector<std::string> recipients_of(const GivenKeys& given);

/// A stanza for each recipient ("age1…"), or one for the passphrase in a file. Errc::invalid_argument for
/// both or none.
[[nodiscard]] std::vector<Stanza> wrap(const FileKey& key, const std::vector<std::string>& recipients,
                                       const std::string& passphrase_file);

/// Secret keys in the text of an identity file: comments, empty lines and one key a line.
[[nodiscard]] std::vector<Key> parse_identities(std::string_view text, const std::string& where);

/// "AGE-SECRET-KEY-1…" and "age1…".
[[nodiscard]] std::string identity_text(const Key& secret);
[[nodiscard]] std::string recipient_text(const Point& point);

}  // namespace ballast::seal
