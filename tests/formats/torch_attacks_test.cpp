// SPDX-License-Identifier: Apache-2.0
// Every hostile file of tests/attacks is refused with its own code, and every odd but legal one is read:
// mapped and not, and from memory.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/scan.h"

namespace ballast {
namespace {

struct Sample {
  std::string file;
  std::string code;
  std::string category;
  std::string description;
};

// Made by tests/attacks/make.py when the tests are built.
std::string folder() {
  return BALLAST_TEST_OUTPUT "/attacks";
}

std::vector<Sample> samples() {
  std::ifstream table(folder() + "/expect.tsv");
  std::vector<Sample> rows;
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    Sample row;
    std::string* const fields[] = {&row.file, &row.code, &row.category, &row.description};
    std::size_t at = 0;
    for (std::string* field : fields) {
      const std::size_t end = line.find('\t', at);
      *field = line.substr(at, end - at);
      at = end + 1;
    }
    // Safetensors files and shard indexes have tests of their own.
    if (row.category != "index" && row.category != "safetensors") rows.push_back(row);
  }
  return rows;
}

bool is_index(const Sample& sample) {
  return sample.file.ends_with(".index.json");
}

// Opens, and reads every byte of every tensor: what is wrong must show by then.
std::string verdict(const std::function<Checkpoint()>& open_it) {
  try {
    const Checkpoint checkpoint = open_it();
    for (const Entry& entry : checkpoint) {
      const Tensor tensor = entry.tensor();
      if (!tensor.has_data()) continue;
      std::vector<std::byte> bytes(
          static_cast<std::size_t>(std::min<std::uint64_t>(tensor.size_bytes(), 1U << 20U)));
      tensor.read(0, bytes);
    }
    return "ok";
  } catch (const Error& error) {
    return std::string(name(error.code()));
  }
}

void check(const std::function<Checkpoint(const std::string&)>& open_it) {
  std::size_t count = 0;
  for (const Sample& sample : samples()) {
    if (is_index(sample) || sample.code == "not-clean") continue;
    ++count;
    const std::string path = folder() + "/" + sample.file;
    std::string got = verdict([&] { return open_it(path); });
    // What opening has no need to look at: checksums of storages, headers of records nobody reads.
    if (got == "ok" && sample.category == "zip") {
      got = verdict([&] {
        static_cast<void>(check_integrity(path));
        return Checkpoint();
      });
    }
    if (sample.code == "refused-any") {
      EXPECT_NE(got, "ok") << sample.file << ": " << sample.description;
    } else {
      EXPECT_EQ(got, sample.code) << sample.file << ": " << sample.description;
    }
  }
  EXPECT_GE(count, 150U);
}

TEST(TorchAttacks, EveryHostileFileIsRefusedWithItsCode) {
  check([](const std::string& path) { return open(path); });
}

TEST(TorchAttacks, AndWithoutMappingTheFile) {
  check([](const std::string& path) { return open(path, {.io = Io::read}); });
}

TEST(TorchAttacks, ScanCallsNoHostileFileCleanAndNoLegalOneDangerous) {
  for (const Sample& sample : samples()) {
    if (is_index(sample)) continue;
    ScanReport report;
    try {
      report = scan(folder() + "/" + sample.file);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unknown_format) << sample.file << ": " << error.what();
      continue;  // no model file
    }
    EXPECT_TRUE(sample.code == "ok" || !report.clean()) << sample.file << ": " << sample.description;
    if (sample.code == "forbidden-global") {
      EXPECT_EQ(report.verdict(), Verdict::danger) << sample.file << ": " << sample.description;
    } else if (sample.code == "ok") {
      EXPECT_NE(report.verdict(), Verdict::danger) << sample.file << ": " << sample.description;
    }
  }
}

}  // namespace
}  // namespace ballast
