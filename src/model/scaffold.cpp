// SPDX-License-Identifier: Apache-2.0
#include "ballast/scaffold.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "ballast/display.h"
#include "base/fail.h"
#include "model/scaffold_layers.h"

namespace ballast {
namespace {

constexpr std::size_t kDeepest = 60;           // segments; a model's paths have at most 64
constexpr std::size_t kLongestSequence = 256;  // positions a Sequential may have
constexpr std::size_t kMostFields = 64;

struct Branch {
  std::optional<Tensor> tensor;
  std::vector<std::pair<std::string, std::unique_ptr<Branch>>> children;  // in the file's order

  Branch& child(std::string_view name) {
    const auto found =
        std::find_if(children.begin(), children.end(), [&](const auto& item) { return item.first == name; });
    if (found != children.end()) return *found->second;
    return *children.emplace_back(std::string(name), std::make_unique<Branch>()).second;
  }
};

// How a member of some type is declared.
struct Member {
  std::string type;
  std::string arguments;  // inside braces
  std::string comment;
  bool is_layer = false;  // its constructor needs the arguments
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == text.npos &&
         (text.size() == 1 || text[0] != '0');
}

bool is_identifier(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word) &&
         !(text[0] >= '0' && text[0] <= '9') && text.find("__") == text.npos && text.back() != '_' &&
         !(text[0] == '_' && text.size() > 1 && text[1] >= 'A' && text[1] <= 'Z');
}

bool is_keyword(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "alignas",  "alignof", "and",     "asm",       "auto",    "bool",     "break",    "case",
      "catch",    "char",    "class",   "compl",     "concept", "const",    "continue", "decltype",
      "default",  "delete",  "do",      "double",    "else",    "enum",     "explicit", "export",
      "extern",   "false",   "float",   "for",       "friend",  "goto",     "if",       "inline",
      "int",      "long",    "mutable", "namespace", "new",     "noexcept", "not",      "nullptr",
      "operator", "or",      "private", "protected", "public",  "register", "requires", "return",
      "short",    "signed",  "sizeof",  "static",    "struct",  "switch",   "template", "this",
      "throw",    "true",    "try",     "typedef",   "typeid",  "typename", "union",    "unsigned",
      "using",    "virtual", "void",    "volatile",  "while",   "xor"};
  return std::find(std::begin(kWords), std::end(kWords), text) != std::end(kWords);
}

std::string camel_case(std::string_view text) {
  std::string out;
  bool upper = true;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9' && !out.empty())) {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return out.empty() ? "Part" : out;
}

std::string cpp_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' ||
        static_cast<unsigned char>(c) >= 0x7F)
      out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

class Scaffold {
 public:
  std::string run(const Checkpoint& checkpoint, const ScaffoldOptions& options) {
    Branch root;
    for (const Entry& entry : checkpoint) plant(root, entry);
    types_.insert(options.name);
    structure(options.name, root, true);
    std::string text = "// Made by `ballast new` from the keys and shapes of " +
                       display(checkpoint.path.empty() ? "a checkpoint" : checkpoint.path) +
                       ".\n// Layers are guesses from names and shapes; what a file does not say is left to "
                       "you.\n#pragma once\n\n#include <vector>\n\n#include <ballast/nn.h>\n\n";
    if (!options.space.empty()) text += "namespace " + options.space + " {\n\n";
    text += "namespace nn = ballast::nn;\n";
    for (const std::string& part : structs_) text += "\n" + part;
    if (!options.space.empty()) text += "\n}  // namespace " + options.space + "\n";
    return text;
  }

 private:
  static void plant(Branch& root, const Entry& entry) {
    Branch* at = &root;
    std::size_t depth = 0;
    for (std::string_view rest = entry.name;;) {
      const std::size_t dot = depth++ < kDeepest ? rest.find('.') : rest.npos;
      at = &at->child(rest.substr(0, dot));
      if (dot == rest.npos) break;
      rest.remove_prefix(dot + 1);
    }
    at->tensor = entry.tensor();
  }

  static void tensors_below(const Branch& branch, const std::string& prefix,
                            std::map<std::string, Tensor>& out) {
    if (branch.tensor) out.emplace(prefix, *branch.tensor);
    for (const auto& [name, child] : branch.children)
      tensors_below(*child, prefix.empty() ? name : prefix + "." + name, out);
  }

  static Member plain_tensor(const Tensor& tensor) {
    std::string shape;
    for (const std::int64_t size : tensor.shape())
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    const std::string_view code = info(tensor.dtype()).code;
    // Dtypes whose enumerator is spelled like their code; the others take what the file has.
    static constexpr std::string_view kSame[] = {"F16", "BF16", "F32", "F64", "I8",  "I16",
                                                 "I32", "I64",  "U8",  "U16", "U32", "U64"};
    if (std::find(std::begin(kSame), std::end(kSame), code) == std::end(kSame))
      return {"ballast::Tensor", "", fmt::format("{} [{}]", code, shape)};
    std::string lower(code);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return {"ballast::Tensor", fmt::format("ballast::DType::{}, {{{}}}", lower, shape), ""};
  }

  Member member(const std::string& name, const Branch& branch) {
    if (branch.children.empty()) return plain_tensor(*branch.tensor);
    std::map<std::string, Tensor> below;
    if (!branch.tensor) tensors_below(branch, "", below);
    if (!below.empty() && below.size() <= 64) {
      if (auto layer = guess_layer(name, below)) return {layer->type, layer->arguments, layer->comment, true};
    }
    if (!branch.tensor && std::all_of(branch.children.begin(), branch.children.end(),
                                      [](const auto& item) { return is_number(item.first); })) {
      if (auto found = numbered(name, branch)) return *found;
    }
    return structure(camel_case(name), branch);
  }

  // Children 0, 1, 2, …: a vector when they are alike, else a Sequential with nn::Identity at the numbers
  // that have no tensors.
  std::optional<Member> numbered(const std::string& name, const Branch& branch) {
    std::map<int, const Branch*> ordered;
    for (const auto& [number, child] : branch.children) ordered.emplace(std::stoi(number), child.get());
    std::vector<std::pair<int, Member>> members;
    const std::string singular =
        name.size() > 1 && name.back() == 's' ? name.substr(0, name.size() - 1) : name + "_item";
    for (const auto& [number, child] : ordered) members.emplace_back(number, member(singular, *child));
    const Member& first = members[0].second;
    const bool alike = std::all_of(members.begin(), members.end(), [&](const auto& item) {
      return item.second.type == first.type && item.second.arguments == first.arguments;
    });
    const bool without_gaps = members.back().first + 1 == static_cast<int>(members.size());
    if (alike && without_gaps && !first.is_layer && first.type != "ballast::Tensor") {
      return Member{fmt::format("std::vector<{}>", first.type),
                    fmt::format("nn::repeat<{}>({})", first.type, members.size()), ""};
    }
    if (members.back().first >= static_cast<int>(kLongestSequence)) return std::nullopt;
    std::string types;
    std::string arguments;
    int next = 0;
    for (const auto& [number, item] : members) {
      for (; next < number; ++next) {
        types += "nn::Identity, ";
        arguments += "{}, ";
      }
      types += item.type + ", ";
      // {{1, 2}} alone could be a copy as well: then the type is said.
      arguments += (members.size() == 1 ? item.type : "") + "{" + item.arguments + "}, ";
      ++next;
    }
    return Member{"nn::Sequential<" + types.substr(0, types.size() - 2) + ">",
                  arguments.substr(0, arguments.size() - 2), ""};
  }

  // A struct with the branch's children as fields; one that is the same as an earlier one is that one.
  Member structure(const std::string& wanted, const Branch& branch, bool outermost = false) {
    std::string body;
    std::string visits;
    bool plain = branch.children.size() < kMostFields && !branch.tensor;
    std::set<std::string> taken;
    const auto add = [&](const std::string& key, const Member& item) {
      std::string field = is_keyword(key) ? key + "_" : key;
      if (!is_identifier(key)) {
        plain = false;
        field = "field_" + camel_case(key);
      }
      // A field may not have the name of a type that is used beside it.
      while (types_.contains(field) || !taken.insert(field).second) {
        field += "x";
        plain = false;
      }
      const std::string initial = item.arguments.empty()                 ? ""
                                  : item.type.starts_with("std::vector") ? " = " + item.arguments
                                                                         : "{" + item.arguments + "}";
      body += fmt::format("  {} {}{};{}\n", item.type, field, initial,
                          item.comment.empty() ? "" : "  // " + item.comment);
      visits += fmt::format("    visit({}, self.{});\n", cpp_literal(key), field);
    };
    if (branch.tensor) add("", plain_tensor(*branch.tensor));
    for (const auto& [name, child] : branch.children) add(name, member(name, *child));
    if (!plain) body += "  static void visit_fields(auto& self, auto&& visit) {\n" + visits + "  }\n";
    if (const auto same = by_body_.find(body); same != by_body_.end() && !outermost)
      return {same->second, "", ""};
    std::string type = wanted;
    for (int i = 2; !outermost && !types_.insert(type).second; ++i) type = wanted + std::to_string(i);
    by_body_.emplace(body, type);
    structs_.push_back("struct " + type + " {\n" + body + "};\n");
    return {type, "", ""};
  }

  std::vector<std::string> structs_;  // inner ones first
  std::map<std::string, std::string> by_body_;
  std::set<std::string> types_{"nn", "ballast", "std"};
};

}  // namespace

std::string scaffold(const Checkpoint& checkpoint, const ScaffoldOptions& options) {
  if (!is_identifier(options.name) || is_keyword(options.name))
    fail(Errc::invalid_argument, quoted(options.name), "is not the name of a C++ struct");
  if (checkpoint.empty())
    fail(Errc::invalid_argument, display(checkpoint.path), "has no tensors to make a struct of");
  return Scaffold().run(checkpoint, options);
}

}  // namespace ballast
