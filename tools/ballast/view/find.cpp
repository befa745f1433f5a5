// SPDX-License-Identifier: Apache-2.0
// files/F/find: tensors by name, dtype, shape and size.
#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "ballast/error.h"
#include "view/app.h"
#include "view/ascii.h"
#include "written.h"

namespace tool::view {
namespace {

[[noreturn]] void refuse_search(std::string message) {
  throw Refused{400, "invalid-argument", std::move(message)};
}

// "4096,*": each dimension, or any.
class ShapePattern {
 public:
  explicit ShapePattern(std::string_view text) {
    while (true) {
      const std::size_t comma = text.find(',');
      const std::string_view piece = text.substr(0, comma);
      std::int64_t size = -1;
      if (piece != "*") {
        const auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), size);
        if (error != std::errc{} || end != piece.data() + piece.size() || size < 0)
          refuse_search(fmt::format("shape:{} is no shape; write shape:4096,*", ballast::quoted(piece)));
      }
      dims_.push_back(size);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
    }
  }

  [[nodiscard]] bool fits(ballast::ShapeView shape) const {
    return shape.size() == dims_.size() &&
           std::equal(dims_.begin(), dims_.end(), shape.begin(),
                      [](std::int64_t want, std::int64_t is) { return want < 0 || want == is; });
  }

 private:
  std::vector<std::int64_t> dims_;
};

// ">1G", "<=64k", "1024": bytes. A letter alone means powers of 1024, as sizes are shown.
struct SizePattern {
  explicit SizePattern(std::string text) {
    while (!text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '=')) {
      comparison += text[0];
      text.erase(0, 1);
    }
    if (!text.empty() && std::string_view("kKmMgGtT").find(text.back()) != std::string_view::npos)
      text += "iB";
    bytes = parse_size(text, "size:");
  }

  [[nodiscard]] bool fits(std::uint64_t size) const {
    if (comparison == ">") return size > bytes;
    if (comparison == ">=") return size >= bytes;
    if (comparison == "<") return size < bytes;
    if (comparison == "<=") return size <= bytes;
    return size == bytes;
  }

  std::string comparison;
  std::uint64_t bytes = 0;
};

struct Search {
  std::vector<std::string> words;  // of text and fuzzy, in lower case
  std::unique_ptr<RE2> regex;
  bool is_fuzzy = false;
  std::vector<ShapePattern> shapes;
  std::vector<SizePattern> sizes;
  std::vector<ballast::DType> dtypes;

  [[nodiscard]] bool fits(const Row& row, const std::string& lower) const;
};

// Whether the letters of `word` stand in `text` in this order.
bool is_subsequence(std::string_view word, std::string_view text) {
  for (const char c : word) {
    const std::size_t at = text.find(c);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + 1);
  }
  return true;
}

bool Search::fits(const Row& row, const std::string& lower) const {
  if (!dtypes.empty() && std::find(dtypes.begin(), dtypes.end(), row.dtype) == dtypes.end()) return false;
  const auto all = [](const auto& list, auto test) { return std::all_of(list.begin(), list.end(), test); };
  if (!all(shapes, [&](const ShapePattern& shape) { return shape.fits(row.shape); })) return false;
  if (!all(sizes, [&](const SizePattern& size) { return size.fits(row.bytes); })) return false;
  if (regex != nullptr && !RE2::PartialMatch(row.name, *regex)) return false;
  return all(words, [&](const std::string& word) {
    return is_fuzzy ? is_subsequence(word, lower) : lower.find(word) != std::string::npos;
  });
}

void add_dtype(Search& search, const std::string& word) {
  const auto dtype = ballast::dtype_from_name(word);
  if (!dtype) refuse_search(fmt::format("{} is no dtype", ballast::quoted(word)));
  search.dtypes.push_back(*dtype);
}

// `shape:`, `size:` and `dtype:` are taken out; what is left is text to look for.
Search search_of(const Query& query) {
  Search search;
  const std::string mode = query.one_of("mode", {"text", "regex", "fuzzy"});
  search.is_fuzzy = mode == "fuzzy";
  if (const std::string dtype = query.text("dtype"); !dtype.empty()) add_dtype(search, dtype);
  const std::string text = query.text("q");
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<std::string> plain;
  for (const std::string& word : words) {
    if (word.starts_with("shape:"))
      search.shapes.emplace_back(std::string_view(word).substr(6));
    else if (word.starts_with("size:"))
      search.sizes.emplace_back(word.substr(5));
    else if (word.starts_with("dtype:"))
      add_dtype(search, word.substr(6));
    else
      plain.push_back(mode == "regex" ? word : lower_case(word));
  }
  if (mode != "regex") {
    search.words = std::move(plain);
  } else if (!plain.empty()) {
    RE2::Options options;
    options.set_log_errors(false);
    search.regex = std::make_unique<RE2>(fmt::format("{}", fmt::join(plain, " ")), options);
    if (!search.regex->ok()) refuse_search("not a regular expression: " + search.regex->error());
  }
  return search;
}

}  // namespace

Response get_find(const Call& call) {
  Document& document = call.document();
  const Search search = search_of(call.query);
  const auto& order = document.order(call.query.one_of("sort", {"file", "name", "bytes", "parameters"}));
  const auto& names = document.lower_names();
  const Page page = page_of_query(call.query);
  Json rows = Json::array();
  std::size_t total = 0;
  for (const std::uint32_t number : order) {
    const Row& row = document.rows()[number];
    if (!search.fits(row, names[number])) continue;
    if (total >= page.offset && rows.size() < page.limit)
      rows.push_back(tensor_row(document, number, ballast::display(row.name)));
    ++total;
  }
  return json_response({{"total", total}, {"rows", std::move(rows)}});
}

}  // namespace tool::view
