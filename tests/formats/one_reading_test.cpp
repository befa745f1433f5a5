// SPDX-License-Identifier: Apache-2.0
// What writers make of tensors and names that were chosen so that the file becomes something else.
#include "formats/one_reading.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "ballast/scan.h"
#include "base/error_of.h"
#include "base/file.h"
#include "base/scratch.h"
#include "formats/format_table.h"
#include "formats/polyglot.h"

namespace ballast {
namespace {

Tensor bytes_tensor(std::string_view text) {
  return Tensor::from(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()),
                      {static_cast<std::int64_t>(text.size())});
}

class OneReading : public Scratch {
 protected:
  // Written and clean, or refused with nothing left of it. True when it was written.
  bool is_written_clean_or_refused(const Checkpoint& checkpoint, const std::string& path,
                                   const SaveOptions& options = {}) {
    try {
      save(checkpoint, path, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::not_representable) << error.what();
      EXPECT_FALSE(std::filesystem::exists(path)) << path;
      return false;
    }
    EXPECT_EQ(other_readings(*File::open(path)).size(), 0U) << path;
    EXPECT_EQ(scan(path).verdict(), Verdict::clean) << path;
    return true;
  }

  std::string archive() {
    Checkpoint one;
    one.add("a", bytes_tensor("abc"));
    save(one, path("payload.npz"), {.overwrite = true});
    return content(path("payload.npz"));
  }
};

TEST_F(OneReading, NoWriterMakesAnArchiveOrAnHdf5FileOfATensor) {
  std::string hdf5;
  while (hdf5.size() < 8192) hdf5 += "\x89HDF\r\n\x1A\n";
  int refused = 0;
  int written = 0;
  for (const std::string& payload : {archive(), archive() + std::string(70'000, 'x'), hdf5}) {
    for (const Format format : writable_formats()) {
      for (std::size_t shift = 0; shift < 8; ++shift) {
        Checkpoint checkpoint;
        checkpoint.add("w", bytes_tensor(payload + std::string(shift, 'y')));
        const std::string out = path("out." + std::string(format.name()) + std::to_string(shift));
        ++(is_written_clean_or_refused(checkpoint, out, {.format = format}) ? written : refused);
        std::filesystem::remove(out);
      }
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(written, 50);
}

TEST_F(OneReading, NoPytorchFileHasAStorageThatIsAnArrayToNumpy) {
  Checkpoint checkpoint;
  checkpoint.add("honest", bytes_tensor("abc"));
  checkpoint.add("w", bytes_tensor(std::string("\x93NUMPY\1\0", 8) + std::string(300, 'x')));
  int written = 0;
  for (const Format format : writable_formats()) {
    if (format == formats::npy) continue;  // which holds one tensor
    written +=
        is_written_clean_or_refused(checkpoint, path(std::string(format.name())), {.format = format}) ? 1 : 0;
  }
  EXPECT_GT(written, 3);
  EXPECT_FALSE(is_written_clean_or_refused(checkpoint, path("x.pt")));
}

TEST_F(OneReading, NoIndexOfShardsIsATarByANameInIt) {
  const std::string before = "{\n  \"metadata\": {\n    \"total_size\": 1\n  },\n  \"weight_map\": {\n    \"";
  std::string header = before + std::string(512 - before.size(), 'a');
  const auto put = [&](std::size_t begin, std::size_t end, std::string text) {
    text.resize(end - begin, ' ');
    header.replace(begin, end - begin, text);
  };
  put(100, 156, "");  // numbers that are blank are 0
  put(156, 157, "0");
  put(329, 345, "");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, 156, fmt::format("{:o}", sum));
  Checkpoint checkpoint;
  checkpoint.add(header.substr(before.size()) + "more", bytes_tensor("x"));
  EXPECT_EQ(code_of([&] { save_shards(checkpoint, path("model.safetensors")); }), Errc::not_representable);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(OneReading, NoSafetensorsFileBecomesAPickleByItsNamesWhateverTheLengthOfItsHeader) {
  const std::string code = "\n0cposix\nsystem\n(S'true'\ntR.";
  int refused = 0;
  for (std::size_t length = 8900; length < 9400; ++length) {
    for (const std::string hop : {"0V", "0S", "0c", "0("}) {
      std::string name(length, 'n');
      name.replace(30, 2, hop);
      Checkpoint checkpoint;
      checkpoint.add(name, bytes_tensor(code));
      try {
        static_cast<void>(safetensors::serialize(checkpoint));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::not_representable);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_F(OneReading, ShardsRecordsEditsAndStreamsAreLookedAtToo) {
  const std::string payload = archive();
  Checkpoint checkpoint;
  checkpoint.add("a", bytes_tensor("x"));
  checkpoint.add("w", bytes_tensor(payload));
  EXPECT_EQ(Errc::not_representable,
            code_of([&] { save_shards(checkpoint, path("shards/"), {.shard_bytes = 2}); }));
  EXPECT_EQ(Errc::not_representable, code_of([&] { safetensors::save(checkpoint, path("a.safetensors")); }));
  EXPECT_EQ(Errc::not_representable, code_of([&] {
              safetensors::StreamWriter writer(
                  path("s.safetensors"), {{"w", DType::u8, {static_cast<std::int64_t>(payload.size())}}});
              writer.write("w", bytes_tensor(payload));
              writer.finish();
            }));
  // A file that somebody else made, whose header is edited.
  const std::string header = R"({"w":{"dtype":"U8","shape":[)" + std::to_string(payload.size()) +
                             R"(],"data_offsets":[0,)" + std::to_string(payload.size()) + "]}}";
  std::string file(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  std::ofstream(path("other.safetensors"), std::ios::binary) << file << header << payload;
  EXPECT_EQ(Errc::not_representable, code_of([&] {
              safetensors::edit(path("other.safetensors"), path("edited.safetensors"),
                                {.metadata = Metadata{{"a", "b"}}});
            }));
  EXPECT_THAT(names(), testing::UnorderedElementsAre("payload.npz", "other.safetensors"));
}

}  // namespace
}  // namespace ballast
