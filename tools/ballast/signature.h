// SPDX-License-Identifier: Apache-2.0
// What sign and verify --signature share: which files of a model count, and what is said about them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "ballast/verify.h"
#include "json.h"
#include "session.h"

namespace tool {

/// --ignore, --no-ignore-git, --allow-symlinks.
void add_model_options(CLI::App& command, ballast::SignatureOptions& options);

/// Adds model, signer, files, bytes and ignored, and the notes.
void describe(Json& document, const ballast::SignatureReport& report);

/// Is the model what was signed?
int verify_signature(Session& session, const std::string& model, const std::string& signature,
                     ballast::SignatureOptions options);

}  // namespace tool
