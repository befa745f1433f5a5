// SPDX-License-Identifier: Apache-2.0
#include "written.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "ballast/error.h"
#include "fail.h"
#include "rows.h"
#include "scaffold/names.h"
#include "text.h"

namespace tool {

namespace {

struct Unit {
  std::string_view name;  // in lower case
  double bytes;
};

constexpr std::array<Unit, 10> kUnits = {{{"", 1},
                                          {"b", 1},
                                          {"kb", 1e3},
                                          {"mb", 1e6},
                                          {"gb", 1e9},
                                          {"tb", 1e12},
                                          {"kib", 1024.0},
                                          {"mib", 1048576.0},
                                          {"gib", 1073741824.0},
                                          {"tib", 1099511627776.0}}};

}  // namespace

std::vector<std::string_view> names_of_formats() {
  std::vector<std::string_view> names;
  for (const ballast::Format format : ballast::writable_formats()) names.push_back(format.name());
  return names;
}

void add_format_option(CLI::App& command, ballast::Format& format) {
  command
      .add_option_function<std::string>(
          "--to", [&format](const std::string& name) { format = ballast::format_named(name); },
          fmt::format("The format to write (default: by the extension): {}",
                      fmt::join(names_of_formats(), ", ")))
      ->type_name("FORMAT");
}

void add_receipt_option(CLI::App& command, std::string& path) {
  command
      .add_option("--receipt", path,
                  "Write what was read, done and written, with SHA-256 of every tensor, to FILE")
      ->type_name("FILE");
}

void add_meta_option(CLI::App& command, std::vector<std::string>& words) {
  command
      .add_option("--meta", words,
                  "Say this in the metadata of OUT, too (Safetensors, records); may be given again")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_pack_option(CLI::App& command, std::string& name) {
  command
      .add_option("--pack", name,
                  "Make Safetensors files and records smaller, without loss: fast (BF16 and F32, unpacked at "
                  "the speed of "
                  "memory) or small (the smallest size)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"fast", "small", "none"}));
}

void add_recipient_option(CLI::App& command, std::vector<std::string>& recipients) {
  command
      .add_option("--recipient", recipients,
                  "Encrypt OUT with age for age1…, whose name then ends in .age; may be given several times. "
                  "With a passphrase instead: --passphrase-file")
      ->type_name("AGE1…")
      ->allow_extra_args(false);
}

std::string passphrase_for(const Session& session, const std::string& out,
                           const std::vector<std::string>& recipients) {
  return recipients.empty() && out.ends_with(".age") ? session.passphrase_file : "";
}

ballast::Pack pack_of(const std::string& name) {
  return name.empty() ? ballast::Pack::none : ballast::pack_named(name);
}

ballast::Metadata parse_meta(const std::vector<std::string>& words) {
  ballast::Metadata metadata;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(ballast::Errc::invalid_argument, "--meta", "{} is not KEY=VALUE", ballast::quoted(word));
    const std::string key = word.substr(0, equals);
    if (!metadata.emplace(key, word.substr(equals + 1)).second)
      fail(ballast::Errc::invalid_argument, "--meta", "{} is given twice", ballast::quoted(key));
  }
  return metadata;
}

void add_no_check_option(CLI::App& command, bool& check) {
  command.add_flag_callback(
      "--no-check", [&check] { check = false; },
      "Do not compare the checksums the input holds (zip, records, packed): to rescue what is left of a "
      "damaged "
      "file");
}

std::uint64_t parse_size(const std::string& word, const std::string& option) {
  double number = 0;
  const char* const last = word.data() + word.size();
  const auto [end, error] = std::from_chars(word.data(), last, number, std::chars_format::fixed);
  const std::string unit = lowered({end, last});
  const auto* const found =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& each) { return each.name == unit; });
  constexpr double kMost = 9.2e18;
  const double bytes = found == kUnits.end() || error != std::errc() ? 0 : number * found->bytes;
  if (bytes >= 1 && bytes < kMost) return static_cast<std::uint64_t>(bytes);
  fail(ballast::Errc::invalid_argument, option, "{} is no size; 5GB, 500MB, 512MiB are",
       ballast::quoted(word));
}

void require_free(const std::string& path, bool force) {
  struct stat status {};

  if (stat(path.c_str(), &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    fail(ballast::Errc::not_regular_file, ballast::display(path), "is a folder; name a file in it");
  }
  if (!force) fail(ballast::Errc::already_exists, ballast::display(path), kOverwriteHint);
}

std::uint64_t size_of_file(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t size_of_files(const std::string& path, const ballast::Checkpoint& checkpoint) {
  struct stat status {};

  const bool is_file = stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && checkpoint.format != ballast::formats::sharded) return size_of_file(path);
  std::set<std::string> files{is_file ? path : checkpoint.path};
  for (const ballast::Entry entry : checkpoint) {
    const ballast::Tensor tensor = entry.tensor();
    if (!tensor.has_data()) continue;
    if (const auto span = tensor.storage()->source_span()) files.insert(innermost(*span).source->name());
  }
  std::uint64_t bytes = 0;
  for (const std::string& file : files) bytes += size_of_file(file);
  return bytes;
}

std::string Written::text() const {
  if (shards.empty()) return ballast::display(file);
  return fmt::format("{} ({})", ballast::display(file), counted(shards.size(), "shard"));
}

void Written::describe(Json& object) const {
  object["file"] = file;
  object["file_bytes"] = bytes;
  if (!shards.empty()) object["shards"] = shards;
}

void report_written(Session& session, Json about, const Written& written,
                    const ballast::Checkpoint& checkpoint, std::chrono::steady_clock::time_point start) {
  const Totals totals = totals_of(rows_of(checkpoint));
  if (session.json) {
    about["schema"] = 1;
    about["output"] = {
        {"tensors", totals.tensors}, {"parameters", totals.parameters}, {"bytes", totals.bytes}};
    written.describe(about["output"]);
    write_document(session.out, about);
  } else if (!session.quiet) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    session.out.print("wrote {}: {}, in {}\n", written.text(), totals.text(), human_seconds(seconds));
  }
}

Written written_shards(const ballast::SavedShards& saved) {
  Written written{.file = saved.index, .bytes = size_of_file(saved.index), .shards = saved.files};
  for (const std::string& shard : written.shards) written.bytes += size_of_file(shard);
  return written;
}

}  // namespace tool
