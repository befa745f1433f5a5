// SPDX-License-Identifier: Apache-2.0
// Any bytes as an age file, opened with an identity that some of the seeds are for: refused, or a text of the
// size its payload can hold. A header that is read is written again as the very same bytes: age has one
// spelling for each. Nothing is asked of the reader that a limit does not bound.
#include <cstdint>
#include <cstring>
#include <string>

#include "ballast/error.h"
#include "seal/age_source.h"
#include "seal/text.h"
#include "tensor/source_storage.h"
#include "watched.h"

namespace {

using namespace ballast;
using fuzzing::complain;

// Of tests/seal/age_files.h.
const std::string kIdentity = "AGE-SECRET-KEY-1EEG2W90H3P4A4JKCV2PECU8SX9ZJ6JHJZM3CP7Y9PLC68542L8ESWKXUC3";

void check_header(const seal::Header& header, std::string_view bytes) {
  std::string text(seal::kVersionLine);
  for (const seal::Stanza& stanza : header.stanzas) {
    text += "->";
    for (const std::string& argument : stanza.arguments) text += ' ' + argument;
    const std::string body = seal::base64(stanza.body);
    text += '\n';
    for (std::size_t at = 0; at <= body.size(); at += 64) text += body.substr(at, 64) + '\n';
  }
  text += "---";
  if (text != header.authenticated) complain("a header has two spellings");
  text += ' ' + seal::base64(header.mac) + '\n';
  if (header.size != text.size() || bytes.substr(0, text.size()) != text) complain("a MAC has two spellings");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzzing::Limits limits(size);
  const auto source = memory_source(Storage::borrow(static_cast<const void*>(data), size), "fuzz");
  try {
    check_header(seal::read_header(*source), {reinterpret_cast<const char*>(data), size});
    const auto plain = seal::AgeSource::open(source, {.identities = {kIdentity}, .passphrase_file = {}});
    if (plain->size() >= size) complain("a text that its payload cannot hold");
    static_cast<void>(plain->read(0, plain->size()));
  } catch (const Error&) {
  }
  return 0;
}
