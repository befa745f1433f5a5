// SPDX-License-Identifier: Apache-2.0
#include "ballast/scaffold.h"

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "ballast/display.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "model/scaffold_layers.h"
#include "model/scaffold_names.h"

namespace ballast {
namespace {

constexpr std::size_t kDeepestPath = 60;       // segments; a model's paths have at most 64
constexpr std::size_t kLongestSequence = 256;  // positions a Sequential may have
constexpr std::size_t kMostFields = 64;
constexpr std::size_t kMostOfALayer = 256;  // tensors

struct Branch {
  std::optional<Tensor> tensor;
  std::vector<std::pair<std::string, std::unique_ptr<Branch>>> children;  // in the file's order

  std::map<std::string, Branch*, std::less<>> by_name;
  bool has_out_in = false;  // at or below it: a matrix with a bias that is not square, and how it lies
  bool has_in_out = false;

  [[nodiscard]] const Tensor* find(std::string_view name, std::size_t rank) const {
    const auto found = by_name.find(name);
    const bool is_there = found != by_name.end() && found->second->tensor;
    return is_there && found->second->tensor->rank() == rank ? &*found->second->tensor : nullptr;
  }

  [[nodiscard]] bool is_square_with_bias() const {
    const Tensor* weight = find("weight", 2);
    return weight != nullptr && find("bias", 1) != nullptr && weight->shape()[0] == weight->shape()[1];
  }

  void look_at_matrices() {
    const Tensor* weight = find("weight", 2);
    const Tensor* bias = find("bias", 1);
    if (weight != nullptr && bias != nullptr && weight->shape()[0] != weight->shape()[1]) {
      has_out_in = bias->shape()[0] == weight->shape()[0];
      has_in_out = bias->shape()[0] == weight->shape()[1];
    }
    for (const auto& [name, child] : children) {
      child->look_at_matrices();
      has_out_in = has_out_in || child->has_out_in;
      has_in_out = has_in_out || child->has_in_out;
    }
  }

  Branch& child(std::string_view name) {
    if (const auto found = by_name.find(name); found != by_name.end()) return *found->second;
    Branch& made = *children.emplace_back(std::string(name), std::make_unique<Branch>()).second;
    by_name.emplace(name, &made);
    return made;
  }
};

// How a member of some type is declared.
struct Member {
  std::string type;
  std::string arguments;  // inside braces
  std::string comment;
  std::string made_by = {};  // the whole expression, where braces would mean something else

  [[nodiscard]] std::string value() const { return made_by.empty() ? type + "{" + arguments + "}" : made_by; }
};

class Scaffold {
 public:
  std::string run(const Checkpoint& checkpoint, const ScaffoldOptions& options) {
    Branch root;
    for (const Entry& entry : checkpoint) plant(root, entry);
    root.look_at_matrices();
    types_.insert(options.name);
    outermost(options.name, root);
    const std::string file = checkpoint.path.substr(checkpoint.path.rfind('/') + 1);
    std::string text = "// Made by `ballast new` from the keys and shapes of " +
                       (file.empty() ? "a checkpoint" : display(file)) +
                       ".\n// Layers are guesses from names and shapes; what a file does not say is left to "
                       "you.\n#pragma once\n\n#include <vector>\n\n#include <ballast/nn.h>\n\n";
    if (!options.space.empty()) text += "namespace " + options.space + " {\n\n";
    text += "namespace nn = ballast::nn;\n";
    for (const std::string& part : structs_) text += "\n" + part;
    if (!options.space.empty()) text += "\n}  // namespace " + options.space + "\n";
    return text;
  }

 private:
  // A file may be one layer, saved by itself: its keys have no name before them.
  void outermost(const std::string& name, const Branch& root) {
    std::map<std::string, Tensor> below;
    const auto layer = tensors_below(root, "", below) ? guess_layer("", below, Lying::unknown) : std::nullopt;
    if (!layer) {
      structure(name, root, true);
      return;
    }
    structs_.push_back(fmt::format("struct {} {{\n  ballast::Flat<{}> layer{{{{{}}}}};{}\n}};\n", name,
                                   layer->type, layer->arguments,
                                   layer->comment.empty() ? "" : "  // " + layer->comment));
  }

  void plant(Branch& root, const Entry& entry) {
    Branch* at = &root;
    std::size_t depth = 0;
    for (std::string_view rest = entry.name;;) {
      std::size_t dot = depth++ < kDeepestPath ? rest.find('.') : rest.npos;
      if (dot == 0 || dot + 1 == rest.size()) dot = rest.npos;  // no segment is empty: the rest is one name
      keys_.emplace(rest.substr(0, dot));
      at = &at->child(rest.substr(0, dot));
      if (dot == rest.npos) break;
      rest.remove_prefix(dot + 1);
    }
    at->tensor = entry.tensor();
  }

  // False when there are more than a layer could have.
  static bool tensors_below(const Branch& branch, const std::string& prefix,
                            std::map<std::string, Tensor>& out) {
    if (branch.tensor) out.emplace(prefix, *branch.tensor);
    if (out.size() > kMostOfALayer) return false;
    return std::all_of(branch.children.begin(), branch.children.end(), [&](const auto& item) {
      return tensors_below(*item.second, prefix.empty() ? item.first : prefix + "." + item.first, out);
    });
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

  // As the nearest around show it that are not square; those of one block come from one hand.
  [[nodiscard]] Lying lying_around() const {
    const auto nearest = std::find_if(around_.rbegin(), around_.rend(), [](const Branch* branch) {
      return branch->has_out_in || branch->has_in_out;
    });
    if (nearest == around_.rend() || ((*nearest)->has_out_in && (*nearest)->has_in_out))
      return Lying::unknown;
    return (*nearest)->has_out_in ? Lying::out_in : Lying::in_out;
  }

  Member member(const std::string& name, const Branch& branch) {
    if (branch.children.empty()) return plain_tensor(*branch.tensor);
    const Lying lying = lying_around();
    std::map<std::string, Tensor> below;
    if (!branch.tensor && tensors_below(branch, "", below)) {
      if (auto layer = guess_layer(name, below, lying))
        return {layer->type, layer->arguments, layer->comment};
    }
    Member made = several(name, branch);
    if (branch.is_square_with_bias() && lying == Lying::unknown)
      made.comment =
          "square: nn::Linear when it is [out, in], as PyTorch has it; GPT-2's Conv1D is [in, out]";
    return made;
  }

  Member several(const std::string& name, const Branch& branch) {
    if (!branch.tensor && std::all_of(branch.children.begin(), branch.children.end(),
                                      [](const auto& item) { return is_position(item.first); })) {
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
    around_.push_back(&branch);
    for (const auto& [number, child] : ordered) members.emplace_back(number, member(singular, *child));
    around_.pop_back();
    const Member& first = members[0].second;
    const bool alike = std::all_of(members.begin(), members.end(), [&](const auto& item) {
      return item.second.type == first.type && item.second.value() == first.value();
    });
    const bool without_gaps = members.back().first + 1 == static_cast<int>(members.size());
    if (alike && without_gaps) {
      const std::string type = fmt::format("std::vector<{}>", first.type);
      const bool has_default = first.arguments.empty() && first.made_by.empty();
      return Member{type, "", first.comment,
                    has_default ? fmt::format("nn::repeat<{}>({})", first.type, members.size())
                                : fmt::format("{}({}, {})", type, members.size(), first.value())};
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
      arguments += members.size() == 1 || !item.made_by.empty() ? item.value() : "{" + item.arguments + "}";
      arguments += ", ";
      ++next;
    }
    return Member{"nn::Sequential<" + types.substr(0, types.size() - 2) + ">",
                  arguments.substr(0, arguments.size() - 2), ""};
  }

  // A struct with the branch's children as fields; one that is the same as an earlier one is that one.
  Member structure(const std::string& wanted, const Branch& branch, bool outermost = false) {
    around_.push_back(&branch);
    std::string body;
    std::string visits;
    bool plain = branch.children.size() < kMostFields && !branch.tensor;
    std::set<std::string> taken;
    const auto add = [&](const std::string& key, const Member& item) {
      std::string field = is_taken_by_cpp(key) ? key + "_" : key;
      if (!is_identifier(key)) {
        plain = false;
        field = is_position(key) ? "layer_" + key : "field_" + camel_case(key);
      }
      // A field may not have the name of its struct, nor of what is used beside it.
      while (types_.contains(field) || !taken.insert(field).second) {
        field += "x";
        keys_.insert(field);
        plain = false;
      }
      const std::string initial = !item.made_by.empty()    ? " = " + item.made_by
                                  : item.arguments.empty() ? ""
                                                           : "{" + item.arguments + "}";
      body += fmt::format("  {} {}{};{}\n", item.type, field, initial,
                          item.comment.empty() ? "" : "  // " + item.comment);
      visits += fmt::format("    visit({}, self.{});\n", cpp_literal(key), field);
    };
    if (branch.tensor) add("", plain_tensor(*branch.tensor));
    for (const auto& [name, child] : branch.children) add(name, member(name, *child));
    around_.pop_back();
    if (!plain) body += "  static void visit_fields(auto& self, auto&& visit) {\n" + visits + "  }\n";
    if (const auto same = by_body_.find(body); same != by_body_.end() && !outermost)
      return {same->second, "", ""};
    std::string type = wanted;
    for (int i = 2; !outermost && (keys_.contains(type) || !types_.insert(type).second); ++i)
      type = wanted + std::to_string(i);
    by_body_.emplace(body, type);
    structs_.push_back("struct " + type + " {\n" + body + "};\n");
    return {type, "", ""};
  }

  std::vector<std::string> structs_;   // inner ones first
  std::vector<const Branch*> around_;  // what the one looked at lies in, from outside
  std::map<std::string, std::string> by_body_;
  std::set<std::string> types_{"nn", "ballast", "std"};
  std::set<std::string, std::less<>> keys_;  // segments, which become fields: no type is named like one
};

// a::b::c
bool is_namespace(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find("::");
    const std::string_view part = text.substr(0, end);
    if (!is_identifier(part) || is_taken_by_cpp(part) || part == "std" || part == "ballast") return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 2);
  }
}

}  // namespace

std::string scaffold(const Checkpoint& checkpoint, const ScaffoldOptions& options) {
  if (!is_identifier(options.name) || is_taken_by_cpp(options.name))
    fail(Errc::invalid_argument, quoted(options.name), "is not the name of a C++ struct");
  if (!options.space.empty() && !is_namespace(options.space))
    fail(Errc::invalid_argument, quoted(options.space), "is not the name of a C++ namespace");
  if (checkpoint.empty())
    fail(Errc::invalid_argument, display(checkpoint.path), "has no tensors to make a struct of");
  return Scaffold().run(checkpoint, options);
}

void save_scaffold(std::string_view header, const std::string& path, bool overwrite) {
  AtomicFile file(path, overwrite);
  file.append(header);
  file.commit();
}

}  // namespace ballast
