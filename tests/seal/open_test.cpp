// SPDX-License-Identifier: Apache-2.0
// Encrypted files through the doors that users take: open(), save() and what stands on them.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <functional>

#include "ballast/convert.h"
#include "ballast/format.h"
#include "ballast/io.h"
#include "ballast/scan.h"
#include "ballast/verify.h"
#include "base/ascii.h"
#include "base/scratch.h"
#include "formats/found_in.h"
#include "seal/age_files.h"

namespace ballast::seal {
namespace {

namespace fs = std::filesystem;

Checkpoint numbers(std::int64_t tensors, std::int64_t size) {
  Checkpoint made;
  for (std::int64_t i = 0; i < tensors; ++i) {
    Tensor tensor = Tensor::zeros(DType::f32, {size});
    for (float& value : tensor.mutable_span<float>()) value = static_cast<float>(i + 1);
    made.add("t" + std::to_string(i), std::move(tensor));
  }
  return made;
}

class Encrypted : public Scratch {
 protected:
  Encrypted() { write(path("key"), kIdentity + "\n"); }
  ~Encrypted() override { set_identities({}); }

  [[nodiscard]] OpenOptions with_key() const { return {.identities = {path("key")}}; }
};

TEST_F(Encrypted, EveryFixtureIsTheSameInsideAnEncryptedFile) {
  int opened = 0;
  for (const char* folder : {"torch", "torch_current", "burn", "import"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(BALLAST_TEST_DATA) + "/fixtures/" + folder)) {
      const std::string extension = entry.path().extension().string();
      const bool is_text = extension == ".py" || extension == ".md" || extension == ".json";
      if (!entry.is_regular_file() || is_text || entry.file_size() > 300'000) continue;
      const std::string want = found_in([&] { return open(entry.path().string()); });
      const std::string sealed = path(entry.path().filename().string() + ".age");
      write(sealed, age_file(content(entry.path().string())));
      EXPECT_EQ(found_in([&] { return open(sealed, with_key()); }), want) << entry.path();
      EXPECT_EQ(found_in([&] { return open(sealed); }), "refused: cannot-decrypt") << entry.path();
      opened += want.starts_with("refused") ? 0 : 1;
      fs::remove(sealed);
    }
  }
  EXPECT_GT(opened, 100);
}

TEST_F(Encrypted, BytesInMemoryAreOpenedToo) {
  save(numbers(2, 10), path("a.safetensors"));
  const auto source = source_of(age_file(content(path("a.safetensors"))));
  EXPECT_EQ(open(source, with_key()).size(), 2U);
  EXPECT_EQ(open(source, {.identities = {kIdentity}}).size(), 2U);
}

TEST_F(Encrypted, IdentitiesOfTheProcessServeCallsThatTakeNone) {
  save(numbers(3, 5), path("a.pt.age"), {.recipients = {kRecipient}});
  EXPECT_EQ(code_of([&] { static_cast<void>(verify(path("a.pt.age"))); }), Errc::cannot_decrypt);
  set_identities({path("key")});
  EXPECT_TRUE(verify(path("a.pt.age")).clean());
  EXPECT_TRUE(scan(path("a.pt.age")).clean());
  EXPECT_GT(check_integrity(path("a.pt.age")).checked, 0U);
  convert(path("a.pt.age"), path("b.safetensors"));
  EXPECT_EQ(open(path("b.safetensors")).size(), 3U);
  // A call's own go first.
  EXPECT_EQ(code_of([&] { static_cast<void>(open(path("a.pt.age"), {.identities = {kOtherIdentity}})); }),
            Errc::cannot_decrypt);
}

TEST_F(Encrypted, EveryFormatIsWrittenAsItWouldBeInTheOpen) {
  const Checkpoint one = numbers(1, 100'000);
  for (const Format format : writable_formats()) {
    SCOPED_TRACE(format.name());
    save(one, path("plain"), {.format = format, .overwrite = true});
    save(one, path("sealed.age"), {.format = format, .recipients = {kRecipient}, .overwrite = true});
    const std::string sealed = content(path("sealed.age"));
    EXPECT_EQ(text_of(*open_age(sealed)), content(path("plain")));
  }
}

TEST_F(Encrypted, OneTensorOpensItsChunksAlone) {
  constexpr std::int64_t kTensors = 100;
  save(numbers(kTensors, 100'000), path("a.safetensors.age"), {.recipients = {kRecipient}});
  const Checkpoint checkpoint = open(path("a.safetensors.age"), with_key());
  const Tensor tensor = checkpoint.tensor("t37");
  const auto span = tensor.storage()->source_span();
  ASSERT_TRUE(span);
  const auto* source = dynamic_cast<const AgeSource*>(span->source.get());
  ASSERT_NE(source, nullptr);
  EXPECT_LE(source->opened_chunks(), 2U);  // the last, and the header's
  std::array<float, 10> some{};
  tensor.read(200'000, std::as_writable_bytes(std::span(some)));  // a part of it
  EXPECT_LE(source->opened_chunks(), 4U);
  EXPECT_EQ(some[9], 38);
  const std::uint64_t before = source->opened_chunks();
  std::vector<float> values(100'000);
  tensor.read(0, std::as_writable_bytes(std::span(values)));
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return value == 38; }));
  EXPECT_LE(source->opened_chunks() - before, 400'000 / kChunkBytes + 2);
}

TEST_F(Encrypted, NamesAndRecipientsMustAgree) {
  const Checkpoint one = numbers(1, 1);
  EXPECT_EQ(code_of([&] { save(one, path("a.safetensors.age")); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { save(one, path("a.safetensors"), {.recipients = {kRecipient}}); }),
            Errc::invalid_argument);
  EXPECT_EQ(code_of([&] {
              save(one, path("a.safetensors.age"),
                   {.recipients = {kRecipient}, .passphrase_file = path("key")});
            }),
            Errc::invalid_argument);
  EXPECT_EQ(
      code_of([&] { save(one, path("m.safetensors"), {.shard_bytes = 10, .recipients = {kRecipient}}); }),
      Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { save(one, path("m.safetensors.age"), {.shard_bytes = 10}); }),
            Errc::invalid_argument);
  EXPECT_EQ(names(), std::vector<std::string>{"key"});
}

// A slip of the hand: recipient and identity stand in one file. Nothing secret is shown.
TEST_F(Encrypted, AnIdentityIsNeverPartOfAMessage) {
  const Checkpoint one = numbers(1, 1);
  save(one, path("a.safetensors.age"), {.recipients = {kRecipient}});
  const std::string secret = kIdentity.substr(30, 20);
  for (const std::string& spelled :
       {kIdentity, " " + kIdentity, "# public key: " + kRecipient + "\n" + kIdentity, lowered(kIdentity),
        "x" + kIdentity, kIdentity + "\n", "key=" + kIdentity}) {
    const auto message = [&](const std::function<void()>& act) {
      try {
        act();
        return std::string();
      } catch (const Error& error) {
        return lowered(error.what());
      }
    };
    EXPECT_THAT(
        message([&] { save(one, path("b.safetensors.age"), {.recipients = {spelled}}); }),
        testing::AllOf(testing::Not(testing::IsEmpty()), testing::Not(testing::HasSubstr(lowered(secret)))));
    EXPECT_THAT(
        message([&] { static_cast<void>(open(path("a.safetensors.age"), {.identities = {spelled}})); }),
        testing::Not(testing::HasSubstr(lowered(secret))));
  }
  EXPECT_THAT(names(), testing::UnorderedElementsAre("key", "a.safetensors.age"));
}

void save_in_the_open(const Checkpoint&, const std::string& path, const SaveOptions&) {
  save_text("secret", path);
}

constexpr FormatRow kStranger = {.name = "stranger", .save = save_in_the_open};

TEST_F(Encrypted, FormatsOfOthersAreNotEncryptedAndNotWrittenInTheOpen) {
  EXPECT_EQ(
      code_of([&] { save(numbers(1, 1), path("a.age"), {.format = kStranger, .recipients = {kRecipient}}); }),
      Errc::unsupported);
  EXPECT_EQ(names(), std::vector<std::string>{"key"});
}

TEST_F(Encrypted, ANewIdentityOpensWhatIsEncryptedForIt) {
  const NewIdentity made = generate_identity();
  EXPECT_NE(made.recipient, generate_identity().recipient);
  save_secret(made.file, path("mine"));
  EXPECT_EQ(fs::status(path("mine")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  save(numbers(1, 3), path("a.npz.age"), {.recipients = {made.recipient}});
  EXPECT_EQ(open(path("a.npz.age"), {.identities = {path("mine")}}).size(), 1U);
  EXPECT_EQ(open(path("a.npz.age"), {.identities = {made.file}}).size(), 1U);
}

TEST_F(Encrypted, AReceiptOfAFileWithAPassphraseIsMade) {
  save(numbers(2, 3), path("a.safetensors"));
  write(path("phrase"), "correct horse\n");
  convert(path("a.safetensors"), path("b.safetensors.age"),
          {.passphrase_file = path("phrase"), .receipt = path("r.json")});
  EXPECT_EQ(read_receipt(path("r.json")).input.root, read_receipt(path("r.json")).output.root);
  EXPECT_EQ(code_of([&] {
              convert(path("a.safetensors"), path("c.safetensors.age"),
                      {.recipients = {kOtherRecipient}, .receipt = path("s.json")});
            }),
            Errc::cannot_decrypt);
  EXPECT_FALSE(std::filesystem::exists(path("c.safetensors.age")));
}

}  // namespace
}  // namespace ballast::seal
