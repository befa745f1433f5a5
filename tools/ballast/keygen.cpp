// SPDX-License-Identifier: Apache-2.0
// ballast keygen: a new identity of age's, to open files that were encrypted for its recipient.
#include "ballast/error.h"
#include "ballast/io.h"
#include "commands.h"
#include "fail.h"

namespace tool {
namespace {

// A key is never replaced: whatever was encrypted for it would be lost.
void save_new(const std::string& identity, const std::string& out) {
  try {
    ballast::save_secret(identity, out);
  } catch (const ballast::Error& error) {
    if (error.code() != ballast::Errc::already_exists) throw;
    fail(ballast::Errc::invalid_argument, error.where(), "is there already, and a key is never replaced");
  }
}

int keygen(Session& session, const std::string& out) {
  const ballast::NewIdentity made = ballast::generate_identity();
  if (!out.empty()) save_new(made.file, out);
  if (session.json) {
    Json document = {{"schema", 1}, {"recipient", made.recipient}};
    document[out.empty() ? "identity" : "file"] = out.empty() ? made.file : out;
    write_document(session.out, document);
  } else {
    session.out.write(out.empty() ? made.file : made.recipient + "\n");
  }
  return kFine;
}

}  // namespace

void add_keygen(CLI::App& app, Session& session) {
  auto out = std::make_shared<std::string>();
  CLI::App& command = add_command(app, session, "keygen", "make a key for encrypted files",
                                  "  ballast keygen -o key.txt\n"
                                  "  ballast convert model.pt model.safetensors.age --recipient age1…\n"
                                  "  ballast ls model.safetensors.age --identity key.txt");
  command
      .add_option("-o,--output", *out,
                  "Write the identity, which is secret, to a new FILE only its owner can read, and print the "
                  "recipient; else print the identity")
      ->type_name("FILE");
  command.callback([&session, out] { session.run = [&session, out] { return keygen(session, *out); }; });
}

}  // namespace tool
