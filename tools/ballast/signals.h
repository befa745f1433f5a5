// SPDX-License-Identifier: Apache-2.0
// Signals: an interrupted program leaves no temporary files, and a file that shrinks under its mapping is one
// sentence and exit code 2, not a core dump.
#pragma once

#include <string>

namespace tool {

void install_signal_handlers();

/// The file a SIGBUS would be about, and whether its error goes to standard output as JSON too.
void reading_file(const std::string& path, bool json);

/// While true, an interrupted program wipes the progress bar's line first.
void progress_line_shown(bool shown) noexcept;

}  // namespace tool
