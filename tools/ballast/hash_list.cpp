// SPDX-License-Identifier: Apache-2.0
// A list has the lines of a file's tensors and then the line of the file, whose hash is the root; or the
// latter alone (--root-only). Only the file itself tells which names are tensors, so that lists are taken
// from the end: a file, then the lines above it that are its tensors, then the next file.
#include "hash_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "ballast/error.h"
#include "fail.h"
#include "text.h"

namespace tool {
namespace {

constexpr std::size_t kDigits = 64;
constexpr std::size_t kLongestLine = 8192;  // names are shown cut, paths are 4096 bytes at most

struct Line {
  std::string sha256;
  std::string name;  // as it was printed
  std::string found = {};
  std::string why = {};  // it failed, where that is not said by the two hashes
  Json error = nullptr;  // of a file that could not be read

  [[nodiscard]] bool ok() const { return why.empty() && sha256 == found; }
};

Line parse_line(const std::string& list, std::size_t number, const std::string& text) {
  const bool has_form =
      text.size() >= kDigits + 2 && text.compare(kDigits, 2, "  ") == 0 &&
      text.find_first_not_of("0123456789abcdef") == kDigits;  // the first space is the first other letter
  if (!has_form)
    fail(ballast::Errc::invalid_argument, fmt::format("{}, line {}", ballast::display(list), number),
         "is not 'SHA-256  NAME', as ballast hash prints it");
  return {text.substr(0, kDigits), text.substr(kDigits + 2)};
}

std::vector<Line> read_list(const std::string& path) {
  struct stat status {};

  if (stat(path.c_str(), &status) != 0)
    fail(ballast::Errc::file_not_found, ballast::display(path), "No such file or directory");
  if (!S_ISREG(status.st_mode))
    fail(ballast::Errc::not_regular_file, ballast::display(path), "is not a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ballast::Errc::permission_denied, ballast::display(path), "cannot be opened");
  std::vector<Line> lines;
  std::string text;
  for (std::size_t number = 1; std::getline(file, text); ++number) {
    if (text.ends_with('\r')) text.pop_back();
    if (text.size() > kLongestLine) text.clear();
    lines.push_back(parse_line(path, number, text));
  }
  if (file.bad()) fail(ballast::Errc::io_error, ballast::display(path), "cannot be read");
  if (lines.empty()) fail(ballast::Errc::invalid_argument, ballast::display(path), "is empty: no list");
  return lines;
}

bool is_there(const std::string& path) {
  struct stat status {};

  return stat(path.c_str(), &status) == 0;
}

class ListCheck {
 public:
  ListCheck(Session& session, const std::string& list, const HashFile& hash_file)
      : session_(session), lines_(read_list(list)), hash_file_(hash_file) {}

  int run() {
    std::size_t end = lines_.size();
    while (end > 0) end = check_file(end);
    const bool failed =
        std::any_of(lines_.begin(), lines_.end(), [](const Line& line) { return !line.ok(); });
    return unreadable_ ? kFailed : (failed ? kFound : kFine);
  }

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }

 private:
  // The file whose line is the last before `end`, and its tensors; returns where they begin.
  std::size_t check_file(std::size_t end) {
    Line& file = lines_[end - 1];
    std::map<std::string, std::vector<std::string>> hashes;  // by name as printed, where cut names may meet
    std::string last;
    try {
      const ballast::Manifest manifest = hash_file_(file.name);
      for (const ballast::TensorHash& tensor : manifest.tensors)
        hashes[last = ballast::display(tensor.name)].push_back(tensor.sha256);
      file.found = manifest.root;
    } catch (...) {
      unreadable_ = true;
      file.why = "could not be read";
      file.error = session_.current_exception_as_json();
    }
    std::size_t begin = end - 1;
    // All tensors of a file are listed or none, and a tensor may be called like a file that is there.
    if (begin > 0 && lines_[begin - 1].name != last && is_there(lines_[begin - 1].name)) return begin;
    while (begin > 0 && is_tensor(lines_[begin - 1], file, hashes)) --begin;
    return begin;
  }

  // Whether the line is about a tensor of the file; it has its verdict then.
  static bool is_tensor(Line& line, const Line& file,
                        std::map<std::string, std::vector<std::string>>& hashes) {
    const auto found = hashes.find(line.name);
    if (found != hashes.end() && !found->second.empty()) {
      line.found = found->second.back();
      found->second.pop_back();
      return true;
    }
    if (is_there(line.name)) return false;
    line.why = !file.why.empty() ? "its file could not be read"
                                 : fmt::format("neither a file nor a tensor of {}", file.name);
    return true;
  }

  Session& session_;
  std::vector<Line> lines_;
  const HashFile& hash_file_;
  bool unreadable_ = false;
};

void print_lines(Session& session, const std::vector<Line>& lines) {
  std::uint64_t failed = 0;
  for (const Line& line : lines) {
    const std::string name = ballast::display(line.name, line.name.size());
    failed += line.ok() ? 0U : 1U;
    if (!line.ok())
      session.out.print("{}: {}{}\n", name, session.stdout_terminal.paint("FAILED", Style::red),
                        line.why.empty() ? "" : fmt::format(" ({})", ballast::display(line.why)));
    else if (!session.quiet)
      session.out.print("{}: {}\n", name, session.stdout_terminal.paint("OK", Style::green));
  }
  if (!session.quiet)
    session.out.line(
        session.stdout_terminal.paint(fmt::format("{}: {} OK, {} FAILED", counted(lines.size(), "line"),
                                                  grouped(lines.size() - failed), grouped(failed)),
                                      Style::bold));
}

void write_lines(JsonStream& json, const std::vector<Line>& lines) {
  const auto ok = static_cast<std::uint64_t>(
      std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.ok(); }));
  json.member("ok", ok).member("failed", lines.size() - ok).key("lines").begin_rows();
  for (const Line& line : lines) {
    json.begin_object().member("name", line.name).member("ok", line.ok()).member("expected", line.sha256);
    json.member("found", line.found.empty() ? Json(nullptr) : Json(line.found));
    if (!line.error.is_null()) json.member("error", line.error);
    json.end();
  }
  json.end();
}

}  // namespace

int check_list(Session& session, const std::string& path, JsonStream& json, const HashFile& hash_file) {
  ListCheck check(session, path, hash_file);
  const int result = check.run();
  if (session.json) {
    write_lines(json, check.lines());
    return result;
  }
  print_lines(session, check.lines());
  session.out.flush();
  for (const Line& line : check.lines())
    if (!line.error.is_null())
      session.report(line.error["code"].get<std::string>(), line.error["where"].get<std::string>(),
                     line.error["message"].get<std::string>());
  return result;
}

}  // namespace tool
