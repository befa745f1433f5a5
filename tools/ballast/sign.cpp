// SPDX-License-Identifier: Apache-2.0
// ballast sign: a signature for all files of a model, which model_signing verifies, and ballast verify.
#include "ballast/error.h"
#include "ballast/verify.h"
#include "commands.h"
#include "fail.h"
#include "signature.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct SignArguments {
  std::string model;
  std::string signature = "model.sig";
  ballast::SignatureOptions options;
};

int sign(Session& session, const SignArguments& arguments) {
  require_free(arguments.signature, arguments.options.overwrite);
  ballast::SignatureOptions options = arguments.options;
  options.passphrase_file = session.passphrase_file;
  const ballast::SignatureReport report = [&] {
    ProgressBar bar = session.progress("sign", arguments.model);
    options.progress = bar.callback();
    return ballast::sign(arguments.model, arguments.signature, options);
  }();
  if (session.json) {
    Json document = {{"schema", 1}, {"file", arguments.model}, {"signature", arguments.signature}};
    describe(document, report);
    write_document(session.out, document);
    return kFine;
  }
  if (!session.quiet)
    session.out.print("{}: {}, {} of {}, by {}\n", ballast::display(arguments.signature),
                      session.stdout_terminal.paint("signed", Style::green), counted(report.files, "file"),
                      human_bytes(report.bytes), ballast::display(report.signer));
  session.out.flush();
  for (const std::string& note : report.notes) session.note(note);
  return kFine;
}

}  // namespace

void add_sign(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<SignArguments>();
  CLI::App& command =
      add_command(app, session, "sign", "sign all files of a model, for model_signing and ballast verify",
                  "  openssl ecparam -name prime256v1 -genkey -noout -out key.pem\n"
                  "  openssl pkey -in key.pem -pubout -out pub.pem\n"
                  "  ballast sign folder --key key.pem -o folder/model.sig\n"
                  "  ballast verify folder --signature folder/model.sig --key pub.pem");
  command.add_option("MODEL", arguments->model, "A folder with all below it, or one file")->required();
  command
      .add_option("-o,--output", arguments->signature,
                  "The signature (default: model.sig, in the current folder)")
      ->type_name("FILE");
  command.add_option("--key", arguments->options.key, "The private key: EC P-256, P-384 or P-521, in PEM")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--certificate,--cert", arguments->options.certificate,
                  "The key's certificate, in PEM: it travels with the signature")
      ->type_name("FILE");
  command
      .add_option("--certificate-chain,--chain", arguments->options.certificate_chain,
                  "Certificates between it and the root, in PEM; again for more")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_model_options(command, arguments->options);
  command.add_flag("-f,--force", arguments->options.overwrite, "Overwrite a signature that is there");
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return sign(session, *arguments); }; });
}

}  // namespace tool
