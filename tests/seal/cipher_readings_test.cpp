// SPDX-License-Identifier: Apache-2.0
// Whoever writes an encrypted file knows its key, and so chooses the cipher text: it may be an archive to
// whoever does not know age. Python says that it is.
#include <gmock/gmock.h>

#include "ballast/io.h"
#include "ballast/scan.h"
#include "base/scratch.h"
#include "formats/python.h"
#include "seal/age_files.h"

namespace ballast::seal {
namespace {

constexpr const char* kMakeZip = R"(
import io, sys, zipfile
made = io.BytesIO()
with zipfile.ZipFile(made, 'w') as z: z.writestr('archive/data.pkl', b'cos\nsystem\n(S"true"\ntR.'); z.comment = bytes(16)
open(sys.argv[1] + '/zip', 'wb').write(made.getvalue()[:-16])
)";
constexpr const char* kIsZip = "import sys, zipfile\nassert zipfile.ZipFile(sys.argv[2]).namelist()\n";
constexpr const char* kIsTar = "import sys, tarfile\nassert tarfile.open(sys.argv[2], 'r:').getmembers()\n";

std::string sealed_by(const std::string& head, const std::string& plain) {
  return head + payload_of(plain, some_file_key());
}

// A Safetensors file whose bytes from `at` on encrypt to `wanted`.
std::string plain_for(const std::string& wanted) {
  const std::string header =
      fmt::format(R"({{"w":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", wanted.size());
  std::string plain(8, '\0');
  plain[0] = static_cast<char>(header.size());
  plain += header;
  const std::size_t at = plain.size();
  plain.resize(at + wanted.size());
  const std::string cipher = payload_of(plain, some_file_key()).substr(kPayloadNonceBytes);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    plain[at + i] = static_cast<char>(cipher[at + i] ^ wanted[i]);  // the text there was zeros
  return plain;
}

// A stanza of no known kind that makes a tar's first header of the file's first 512 bytes: Python's tarfile
// asks for numbers and a checksum, not for a name.
Stanza tar_stanza() {
  const std::string start = std::string(kVersionLine) + "-> x ";
  std::string line =
      start + std::string(99 - start.size(), 'A') + " 0000644 0000000 0000000 00000000000 00000000000 ";
  line += "        0";  // the checksum, as it is summed, and the kind
  line.resize(328, 'l');
  line += " 0000000 0000000 ";
  line.resize(512, 'p');
  unsigned sum = 0;
  for (const char c : line) sum += static_cast<unsigned char>(c);
  line.replace(148, 8, fmt::format("{:07o} ", sum));
  Stanza stanza;
  std::string rest = line.substr(kVersionLine.size() + 3);
  for (std::size_t end = rest.find(' '); end != std::string::npos; end = rest.find(' ')) {
    stanza.arguments.push_back(rest.substr(0, end));
    rest.erase(0, end + 1);
  }
  stanza.arguments.push_back(rest);
  return stanza;
}

class CipherReadings : public Scratch {
 protected:
  CipherReadings() { set_identities({kIdentity}); }
  ~CipherReadings() override { set_identities({}); }

  // What scan() says of the file that Python takes.
  ScanReport scan_checked(const std::string& file, const char* check) {
    write(path("m.safetensors.age"), file);
    run_python("cipher_readings", check, path("m.safetensors.age"));
    EXPECT_EQ(open(path("m.safetensors.age")).format, formats::safetensors);
    return scan(path("m.safetensors.age"));
  }
};

TEST_F(CipherReadings, AZipOfCipherTextIsFound) {
  const std::string zip = content(run_python("cipher_zip", kMakeZip) + "/zip");  // the tag is its comment
  const std::string file =
      sealed_by(write_header(wrap(some_file_key(), {kRecipient}, ""), some_file_key()), plain_for(zip));
  const ScanReport report = scan_checked(file, kIsZip);
  EXPECT_EQ(report.verdict(), Verdict::unknown);
}

TEST_F(CipherReadings, ATarWhoseFirstHeaderIsAStanzaIsFound) {
  std::vector<Stanza> stanzas = wrap(some_file_key(), {kRecipient}, "");
  stanzas.insert(stanzas.begin(), tar_stanza());
  const ScanReport report =
      scan_checked(sealed_by(write_header(stanzas, some_file_key()), plain_for("abc")), kIsTar);
  EXPECT_EQ(report.verdict(), Verdict::unknown);
}

TEST_F(CipherReadings, AnHonestFileIsClean) {
  write(path("m.safetensors.age"), age_file(plain_for(some_text(1000))));
  EXPECT_EQ(scan(path("m.safetensors.age")).verdict(), Verdict::clean);
}

}  // namespace
}  // namespace ballast::seal
