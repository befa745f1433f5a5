// SPDX-License-Identifier: Apache-2.0
// Files made by CryptoTensors itself (tests/fixtures/crypto_tensors/make.py): with their keys they are the
// plain file, without them nothing of them is ever shown as weights.
#include <gmock/gmock.h>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "base/bytes.h"
#include "base/scratch.h"
#include "checkpoint/value_json.h"
#include "seal/age_files.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

const std::string kFolder = BALLAST_TEST_DATA "/fixtures/crypto_tensors/files/";
const std::string kKeys = kFolder + "keys.json";

const std::vector<std::string> kNames = {
    "aes128gcm-v1",        "aes128gcm-v2",        "aes256gcm-v1", "aes256gcm-v2",
    "chacha20poly1305-v1", "chacha20poly1305-v2", "default",      "some"};

std::string file_named(const std::string& name) {
  return kFolder + name + (name == "plain" ? ".safetensors" : ".cryptotensors");
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.size_bytes()));
  if (!bytes.empty()) tensor.read(0, bytes);
  return bytes;
}

Checkpoint open_text(const std::string& text, std::vector<std::string> identities = {kKeys}) {
  const auto bytes = Storage::heap(text.size());
  std::memcpy(bytes->mutable_data(), text.data(), text.size());
  return open(memory_source(bytes, "made.safetensors"), {.identities = std::move(identities)});
}

// Everything a reader could see; the error's code when it may not.
std::optional<Errc> refusal_of(const std::string& text) {
  try {
    for (const Entry& entry : open_text(text)) static_cast<void>(bytes_of(entry.tensor()));
    return std::nullopt;
  } catch (const Error& error) {
    return error.code();
  }
}

class CryptoTensors : public Scratch {};

TEST_F(CryptoTensors, AreThePlainFileWithTheirKeys) {
  const Checkpoint plain = open(file_named("plain"));
  for (const std::string& name : kNames) {
    for (const Io io : {Io::automatic, Io::read, Io::map}) {
      const Checkpoint opened = open(file_named(name), {.io = io, .identities = {kKeys}});
      EXPECT_EQ(opened.metadata, plain.metadata) << name;
      ASSERT_EQ(opened.size(), plain.size()) << name;
      for (const Entry& entry : plain) {
        const Tensor tensor = opened.tensor(entry.name);
        EXPECT_EQ(tensor.dtype(), entry.dtype) << name;
        EXPECT_EQ(tensor.shape(), entry.shape) << name;
        EXPECT_EQ(bytes_of(tensor), bytes_of(entry.tensor())) << name << " " << entry.name;
      }
    }
  }
}

TEST_F(CryptoTensors, PartsOfTensorsAcrossChunksAreThePlainOnes) {
  for (const std::string& name : kNames) {
    const Checkpoint opened = open(file_named(name), {.io = Io::read, .identities = {kKeys}});
    const Tensor tensor = opened.tensor("a.weight");
    const std::vector<std::byte> whole = bytes_of(open(file_named("plain")).tensor("a.weight"));
    for (const std::size_t at : {0U, 1U, 999U, 1000U, 1001U, 3999U, 4799U}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{1000}, whole.size() - at}) {
        if (at + count > whole.size()) continue;
        std::vector<std::byte> part(count);
        tensor.storage()->read(at, part);
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(at)))
            << name << " " << at << " " << count;
      }
    }
  }
}

TEST_F(CryptoTensors, WithoutTheirKeysAreNotOpenedByAnybody) {
  for (const std::string& name : kNames) {
    const std::string file = file_named(name);
    EXPECT_EQ(code_of([&] { static_cast<void>(open(file)); }), Errc::cannot_decrypt) << name;
    EXPECT_EQ(code_of([&] { static_cast<void>(safetensors::open(file)); }), Errc::cannot_decrypt) << name;
    EXPECT_EQ(
        code_of([&] { static_cast<void>(safetensors::open(file, {.mode = safetensors::Mode::reference})); }),
        Errc::cannot_decrypt)
        << name;
    const std::string text = content(file);
    EXPECT_EQ(code_of([&] {
                static_cast<void>(
                    safetensors::parse(Storage::borrow(static_cast<const void*>(text.data()), text.size())));
              }),
              Errc::cannot_decrypt)
        << name;
    EXPECT_EQ(code_of([&] { safetensors::edit(file, path("edited"), {.remove_metadata = true}); }),
              Errc::cannot_decrypt)
        << name;
  }
}

// Keys of age's and JSON Web Keys may be given together, as text too; one kind is no help for the other.
TEST_F(CryptoTensors, TakeKeysAmongOthers) {
  const std::string age = generate_identity().file;
  const std::string file = file_named("default");
  EXPECT_EQ(open(file, {.identities = {age, kKeys}}).size(), 4U);
  EXPECT_EQ(open(file, {.identities = {content(kKeys)}}).size(), 4U);
  EXPECT_EQ(code_of([&] { static_cast<void>(open(file, {.identities = {age}})); }), Errc::cannot_decrypt);
}

TEST_F(CryptoTensors, NeedTheKeyThatSignedThem) {
  const Value keys = read_json(kKeys).find("keys").value();
  const auto only = [&](std::size_t i) { return write_json(keys.element(i), "key"); };
  const std::string enc = only(1);
  const std::string sign = only(3);
  const std::string file = file_named("default");
  EXPECT_EQ(open(file, {.identities = {enc, sign}}).size(), 4U);
  EXPECT_EQ(code_of([&] { static_cast<void>(open(file, {.identities = {enc}})); }), Errc::cannot_decrypt);
  EXPECT_EQ(code_of([&] { static_cast<void>(open(file, {.identities = {sign}})); }), Errc::cannot_decrypt);
  // RFC 8032, test 2: somebody else's.
  const std::string other =
      R"({"kty":"OKP","kid":"signer","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"})";
  EXPECT_EQ(code_of([&] {
              static_cast<void>(open(file, {.identities = {enc, other}}));
            }),
            Errc::wrong_signature);
  // The right name, another key.
  const std::string wrong =
      R"({"kty":"oct","kid":"aes256gcm","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})";
  EXPECT_EQ(code_of([&] {
              static_cast<void>(open(file, {.identities = {wrong, sign}}));
            }),
            Errc::cannot_decrypt);
}

TEST_F(CryptoTensors, APolicyIsNamedAndRefused) {
  EXPECT_EQ(code_of([&] { static_cast<void>(open(file_named("policy"), {.identities = {kKeys}})); }),
            Errc::unsupported);
}

TEST_F(CryptoTensors, KeysThatAreNoneAreRefusedWithoutBeingShown) {
  for (const std::string text :
       {R"({"keys":[{"kty":"oct","k":"c2VjcmV0"}]})", R"({"keys":[{"k":"c2VjcmV0"}]})", R"({"keys":[3]})",
        R"({"kty":"okp","x":"c2VjcmV0"})", R"({"kty":"oct","kty":"oct","k":"c2VjcmV0"})",
        "{\"k\":\"c2VjcmV0"}) {
    try {
      static_cast<void>(open(file_named("default"), {.identities = {text}}));
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("c2Vj"))) << text;
    }
  }
}

// One bit anywhere: length, header, names, keys, tags, signature, data, what fills up.
TEST_F(CryptoTensors, EveryFlippedBitIsRefused) {
  for (const std::string name : {"chacha20poly1305-v2", "some"}) {
    std::string text = content(file_named(name));
    const std::size_t data =
        8 + static_cast<unsigned char>(text[0]) + 256U * static_cast<unsigned char>(text[1]);
    std::size_t refused = 0;
    std::size_t flips = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (at > data + 64 && at % 61 != 0) continue;  // the data is all alike
      for (int bit = 0; bit < 8; ++bit) {
        text[at] = static_cast<char>(text[at] ^ 1 << bit);
        const bool is_refused = refusal_of(text).has_value();
        // Tensors that were left plain by their writer are nobody's secret, and nobody's care.
        const bool is_plain = name == "some" && at >= data + 8 + 4800;
        EXPECT_TRUE(is_refused || is_plain) << name << " byte " << at << " bit " << bit;
        ++flips;
        refused += is_refused || is_plain ? 1 : 0;
        text[at] = static_cast<char>(text[at] ^ 1 << bit);
      }
    }
    EXPECT_EQ(refused, flips);
    EXPECT_GT(flips, 10'000U);
    EXPECT_EQ(refusal_of(text), std::nullopt);
  }
}

// AES-GCM binds no names: only the signature tells that two tensors were exchanged with their keys.
TEST_F(CryptoTensors, TensorsThatChangedPlacesAreRefused) {
  std::string text = content(file_named("default"));
  const std::string a = R"(\"a.weight\")";
  const std::size_t at = text.find(a);
  ASSERT_NE(at, std::string::npos);
  text[at + 3] = '-';
  EXPECT_EQ(refusal_of(text), Errc::wrong_signature);
}

TEST_F(CryptoTensors, InsideAgeAreOpenedToo) {
  write(path("twice.safetensors.age"), seal::age_file(content(file_named("default"))));
  EXPECT_EQ(open(path("twice.safetensors.age"), {.identities = {seal::kIdentity, kKeys}}).size(), 4U);
  EXPECT_EQ(code_of([&] {
              static_cast<void>(open(path("twice.safetensors.age"), {.identities = {seal::kIdentity}}));
            }),
            Errc::cannot_decrypt);
}

}  // namespace
}  // namespace ballast
