// SPDX-License-Identifier: Apache-2.0
// The subcommands; each adds itself to the application and lives in the file of its name.
#pragma once

#include <CLI/CLI.hpp>

#include "session.h"

namespace tool {

void add_ls(CLI::App& app, Session& session);
void add_show(CLI::App& app, Session& session);
void add_convert(CLI::App& app, Session& session);
void add_extract(CLI::App& app, Session& session);
void add_merge(CLI::App& app, Session& session);
void add_shard(CLI::App& app, Session& session);
void add_replay(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_diff(CLI::App& app, Session& session);
void add_hash(CLI::App& app, Session& session);
void add_embed(CLI::App& app, Session& session);
void add_stats(CLI::App& app, Session& session);
void add_scan(CLI::App& app, Session& session);
void add_meta(CLI::App& app, Session& session);
void add_sign(CLI::App& app, Session& session);
void add_keygen(CLI::App& app, Session& session);
void add_onnx(CLI::App& app, Session& session);
void add_view(CLI::App& app, Session& session);
void add_new(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);
void add_names(CLI::App& app, Session& session);
void add_help(CLI::App& app, Session& session);

}  // namespace tool
