// SPDX-License-Identifier: Apache-2.0
// A template gets out of Jinja by names: ".__class__", ".gi_frame", and as well ["_" ~ "_class_" ~ "_"],
// since Jinja takes an attribute where it finds no item. So no such name may stand in it, and none may be put
// together: what asks a value for a part of it is a name, a number, or a text that stands there; or a
// variable that holds what the caller gave, and not what the template made. So does Python's str.format,
// whose text asks by names, too ("{0.x}"): its text stands there, or the caller gave it.
#include "formats/beside_template.h"

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/words.h"
#include "formats/template_words.h"

namespace ballast {
namespace {

using jinja::Sort;
using jinja::Word;

constexpr std::size_t kLongest = std::size_t{1} << 20U;  // real ones have some kilobytes
constexpr int kMostPasses = 16;
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 20U;  // looks at a word; real ones take thousands

// What is given by its caller, and Jinja's own that are no text.
constexpr std::string_view kGiven[] = {"messages", "message", "tools",     "documents", "functions",
                                       "loop",     "range",   "namespace", "dict",      "conversation"};
constexpr std::string_view kKeywords[] = {"if",   "else", "in",    "not",   "and",  "or",
                                          "true", "True", "false", "False", "none", "None"};
// Filters after which it is what it was, or a number.
constexpr std::string_view kKeeping[] = {"length", "count", "int",     "float", "abs",    "first",
                                         "last",   "list",  "items",   "round", "sort",   "dictsort",
                                         "trim",   "lower", "reverse", "upper", "unique", "default"};
// Filters that are told an attribute, or another filter.
constexpr std::string_view kByName[] = {"map", "select", "reject", "selectattr", "rejectattr", "groupby",
                                        "sum", "unique", "min",    "max",        "sort",       "join"};
constexpr std::string_view kAdding[] = {"append", "insert", "extend", "update", "setdefault"};
// Of a text: it takes the names that the text has in braces.
constexpr std::string_view kFormatting[] = {"format", "format_map"};
constexpr std::string_view kOthersCode[] = {"import", "from", "include", "extends"};

// Generators, frames, functions, tracebacks and code lead to Python's modules as dunders do.
bool is_inside(std::string_view name) {
  constexpr std::string_view kInsides[] = {"gi_", "cr_", "ag_", "f_", "tb_", "co_", "im_", "func_"};
  return name.find("__") != name.npos || name == "mro" ||
         std::any_of(std::begin(kInsides), std::end(kInsides),
                     [&](std::string_view start) { return name.starts_with(start); });
}

// An escape that is a letter of ASCII: "\x5f", "\137", "\N{LOW LINE}".
bool has_hidden_letter(std::string_view text) {
  for (std::size_t at = text.find('\\'); at + 1 < text.size() && at != text.npos;
       at = text.find('\\', at + 2)) {
    const char kind = text[at + 1];
    if (kind == 'x' || kind == 'N' || is_digit(kind)) return true;
    if (kind == 'u' && text.substr(at + 2, 2) == "00") return true;
    if (kind == 'U' && text.substr(at + 2, 6) == "000000") return true;
  }
  return false;
}

bool is_text_inside(std::string_view text) {
  if (has_hidden_letter(text)) return true;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (is_inside(text.substr(0, dot))) return true;
    if (dot == text.npos) return false;
    text.remove_prefix(dot + 1);
  }
}

// What a value can be: given by the caller, a text that stands in the template, or made there.
enum class Made : std::uint8_t { given, text, made };

class Template {
 public:
  explicit Template(std::vector<std::vector<Word>> pieces) : pieces_(std::move(pieces)) {}

  bool reaches() {
    for (const jinja::Words words : pieces_)
      if (names_insides(words)) return true;
    for (int pass = 0; pass < kMostPasses; ++pass) {
      changed_ = false;
      for (const jinja::Words words : pieces_) bind(words);
      if (!changed_) break;
    }
    return changed_ || is_tired() || std::any_of(pieces_.begin(), pieces_.end(), [&](jinja::Words words) {
             return asks_by_made_name(words);
           });
  }

 private:
  static bool names_insides(jinja::Words words) {
    if (is_among(kOthersCode, words[0].text)) return true;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const bool is_attribute = i > 0 && words[i - 1].is('.');
      const bool is_name = words[i].sort == Sort::name;
      const bool is_text = words[i].sort == Sort::text;
      if (is_name && (words[i].text.find("__") != std::string_view::npos || words[i].text == "attr"))
        return true;
      if (is_attribute && is_name && (is_inside(words[i].text) || words[i].text.starts_with('_')))
        return true;
      if (is_text && (is_text_inside(words[i].text) || words[i].text == "attr")) return true;
      if (is_text && i > 0 && words[i - 1].sort == Sort::text) return true;  // which are one text
    }
    return false;
  }

  // What stands alone in brackets behind a value is an attribute's name: x["role"].
  static bool is_lone_subscript(jinja::Words words, std::size_t i) {
    return i > 0 && i + 1 < words.size() && words[i + 1].is(']') && is_subscript(words, i - 1);
  }

  static bool is_test(jinja::Words words, std::size_t i) {
    return i > 0 && (words[i - 1].is_name("is") ||
                     (i > 1 && words[i - 1].is_name("not") && words[i - 2].is_name("is")));
  }

  static bool is_keyword_argument(jinja::Words words, std::size_t i) {
    return i + 1 < words.size() && words[i + 1].is('=') && !(i + 2 < words.size() && words[i + 2].is('='));
  }

  [[nodiscard]] Made made_of_name(jinja::Words words, std::size_t i) const {
    const std::string_view name = words[i].text;
    if (i > 0 && words[i - 1].is('.')) return Made::given;  // whatever the value before it is
    if (i > 0 && words[i - 1].is('|')) return is_among(kKeeping, name) ? Made::given : Made::made;
    if (is_among(kKeywords, name) || name == "is" || is_test(words, i) || is_keyword_argument(words, i))
      return Made::given;
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    return is_among(kGiven, name) ? Made::given : Made::made;
  }

  // Of a template that was made to keep its reader busy.
  [[nodiscard]] bool is_tired(std::uint64_t more = 0) const { return (steps_ += more) > kMostSteps; }

  [[nodiscard]] Made made(jinja::Words words) const {
    if (is_tired(words.size())) return Made::made;
    Made most = Made::given;
    bool has_text = false;
    bool does_something = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].is('~') || words[i].is('%')) return Made::made;
      does_something =
          does_something || words[i].is('+') || words[i].is('*') || words[i].is('.') || words[i].is('|');
      if (words[i].sort == Sort::text && !is_lone_subscript(words, i)) has_text = true;
      if (words[i].sort != Sort::name) continue;
      most = std::max(most, made_of_name(words, i));
      if (!is_among(kKeywords, words[i].text) && !is_keyword_argument(words, i)) does_something = true;
    }
    if (has_text) most = std::max(most, does_something ? Made::made : Made::text);
    const bool is_one = words.size() == 1;
    return most == Made::text && does_something && !is_one ? Made::made : most;
  }

  void hold(std::string_view name, Made what) {
    const auto [at, is_new] = names_.emplace(name, what);
    if (!is_new && at->second >= what) return;
    at->second = what;
    changed_ = true;
  }

  void bind(jinja::Words words) {
    const std::string_view first = words[0].text;
    if (first == "for") bind_loop(words.subspan(1));
    if (first == "set" || first == "with") bind_set(words.subspan(1));
    if (first == "macro" && words.size() > 2) bind_macro(words.subspan(1));
    for (std::size_t i = 0; i < words.size() && !is_tired(1); ++i) {
      if (words[i].sort != Sort::name) continue;
      const bool is_called = i + 1 < words.size() && words[i + 1].is('(');
      const auto inner =
          is_called ? words.subspan(i + 2, jinja::closing(words, i + 1) - i - 2) : jinja::Words();
      if (is_called && i > 1 && words[i - 1].is('.') && is_among(kAdding, words[i].text))
        add_to_all(words.first(i - 1), made(inner));
      const auto macro = macros_.find(words[i].text);
      if (macro != macros_.end() && !(first == "macro" && i == 1)) bind_call(macro->second, is_called, inner);
    }
  }

  // "a.b[c].append(…)": whatever it is that it is added to, a name before it leads there.
  void add_to_all(jinja::Words before, Made what) {
    if (is_tired(before.size())) return;
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i].sort == Sort::name && (i == 0 || !before[i - 1].is('.'))) hold(before[i].text, what);
  }

  // "for a, b in it if …"
  void bind_loop(jinja::Words words) {
    const auto at_name = [&](jinja::Words some, std::string_view name) {
      std::size_t i = 0;
      for (; i < some.size() && !some[i].is_name(name); ++i)
        if (some[i].is('(') || some[i].is('[') || some[i].is('{')) i = jinja::closing(some, i);
      return std::min(i, some.size());
    };
    const std::size_t in = at_name(words, "in");
    const jinja::Words rest = words.subspan(std::min(in + 1, words.size()));
    const Made what = rest.empty() ? Made::made : made(rest.first(at_name(rest, "if")));
    for (const Word& word : words.first(in))
      if (word.sort == Sort::name) hold(word.text, what);
  }

  // Up to the first '=': names; without one it is a block.
  void bind_set(jinja::Words words) {
    const auto equals =
        std::find_if(words.begin(), words.end(), [](const Word& word) { return word.is('='); });
    const auto at = static_cast<std::size_t>(equals - words.begin());
    const Made what = equals == words.end() ? Made::made : made(words.subspan(at + 1));
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i].sort == Sort::name && (i < at || is_keyword_argument(words, i)) &&
          (i == 0 || !words[i - 1].is('.')))
        hold(words[i].text, what);
  }

  void bind_macro(jinja::Words words) {
    std::vector<std::string_view>& parameters = macros_[words[0].text];
    parameters.clear();
    for (const jinja::Words one : jinja::arguments_in(words.subspan(2, jinja::closing(words, 1) - 2))) {
      if (one.empty()) continue;
      parameters.push_back(one[0].text);
      hold(one[0].text, one.size() > 2 ? made(one.subspan(2)) : Made::given);
    }
  }

  // A macro that is not called here may be called anywhere.
  void bind_call(const std::vector<std::string_view>& parameters, bool is_called, jinja::Words inner) {
    if (is_tired(parameters.size() + inner.size())) return;
    const std::vector<jinja::Words> given = jinja::arguments_in(inner);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!is_called) hold(parameters[i], Made::made);
      if (i < given.size() && !(given[i].size() > 1 && is_keyword_argument(given[i], 0)))
        hold(parameters[i], made(given[i]));
    }
    for (const jinja::Words one : given)
      if (one.size() > 2 && is_keyword_argument(one, 0))
        hold(one[0].text, made(one.subspan(2)));
      else if (!one.empty() && one[0].is('*'))
        for (const std::string_view parameter : parameters) hold(parameter, Made::made);
  }

  // What "x.y[0]" begins with, before words[end], is text that the template made.
  [[nodiscard]] bool is_made_before(jinja::Words words, std::size_t end) const {
    while (end > 0 && !is_tired(1)) {
      const Word& before = words[end - 1];
      if (before.sort == Sort::text) return false;
      if (before.is(']')) {
        if (is_tired(end)) return true;
        const std::size_t open = jinja::opening(words, end - 1);
        if (!jinja::is_subscript(words, open)) return true;
        end = open;
      } else if (before.sort != Sort::name) {
        return true;
      } else if (end > 1 && words[end - 2].is('.')) {
        end -= 2;
      } else {
        return made_of_name(words, end - 1) == Made::made;
      }
    }
    return true;
  }

  // "(a ~ b).format", "x['format']", "map(attribute='format')"
  [[nodiscard]] bool formats_made_text(jinja::Words words) const {
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!is_among(kFormatting, words[i].text)) continue;
      const bool is_attribute = words[i].sort == Sort::name && words[i - 1].is('.');
      const bool is_subscript_text = words[i].sort == Sort::text && is_lone_subscript(words, i);
      if ((is_attribute || is_subscript_text) && is_made_before(words, i - 1)) return true;
      if (words[i].sort == Sort::text && i > 1 && words[i - 1].is('=') && words[i - 2].is_name("attribute"))
        return true;
    }
    return false;
  }

  [[nodiscard]] bool asks_by_made_name(jinja::Words words) const {
    if (formats_made_text(words)) return true;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (is_tired(1)) return true;
      const std::size_t open = i + 1;
      const bool is_filter = i > 0 && (words[i - 1].is('|') || words[i - 1].is_name("filter")) &&
                             is_among(kByName, words[i].text) && words[open].is('(');
      if (!is_filter && !is_subscript(words, open)) continue;
      const auto inner = words.subspan(open + 1, jinja::closing(words, open) - open - 1);
      const bool is_separator = is_filter && words[i].text == "join" && jinja::arguments_in(inner).size() < 2;
      const Made what = is_separator ? Made::given : made(inner);
      const bool is_one = inner.size() == 1;
      if (what == Made::made || (what == Made::text && !is_filter && !is_one)) return true;
    }
    return false;
  }

  std::vector<std::vector<Word>> pieces_;
  NameViewMap<Made> names_;
  NameViewMap<std::vector<std::string_view>> macros_;
  bool changed_ = false;
  mutable std::uint64_t steps_ = 0;
};

}  // namespace

bool reaches_into_python(std::string_view text) {
  if (text.find("{{") == text.npos && text.find("{%") == text.npos) return false;
  if (text.size() > kLongest) return true;
  auto pieces = jinja::words_of(text);
  return !pieces || Template(*std::move(pieces)).reaches();
}

}  // namespace ballast
