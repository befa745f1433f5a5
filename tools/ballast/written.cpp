// SPDX-License-Identifier: Apache-2.0
#include "written.h"

#include <sys/stat.h>

#include <array>
#include <charconv>

#include "ballast/display.h"
#include "ballast/error.h"
#include "rows.h"
#include "text.h"

namespace tool {

std::uint64_t parse_size(const std::string& word, const std::string& option) {
  struct Unit {
    std::string_view name;
    std::uint64_t bytes;
  };

  constexpr std::array<Unit, 10> kUnits = {{{"", 1},
                                            {"B", 1},
                                            {"KB", 1'000},
                                            {"MB", 1'000'000},
                                            {"GB", 1'000'000'000},
                                            {"TB", 1'000'000'000'000},
                                            {"KiB", 1ULL << 10U},
                                            {"MiB", 1ULL << 20U},
                                            {"GiB", 1ULL << 30U},
                                            {"TiB", 1ULL << 40U}}};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(word.data() + word.size() - end));
  for (const Unit& unit : kUnits) {
    std::uint64_t bytes = 0;
    if (error == std::errc() && rest == unit.name && number > 0 &&
        !__builtin_mul_overflow(number, unit.bytes, &bytes))
      return bytes;
  }
  throw ballast::Error(ballast::Errc::invalid_argument, option,
                       fmt::format("{} is no size; 5GB, 500MB, 512MiB are", ballast::quoted(word)));
}

bool exists(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0;
}

std::uint64_t size_of_file(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
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

Written write_shards(const ballast::Checkpoint& checkpoint, const std::string& path,
                     std::uint64_t shard_bytes, bool overwrite, ProgressBar& bar) {
  return written_shards(ballast::save_shards(
      checkpoint, path, {.shard_bytes = shard_bytes, .overwrite = overwrite, .progress = bar.callback()}));
}

}  // namespace tool
