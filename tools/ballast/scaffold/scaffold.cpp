// SPDX-License-Identifier: Apache-2.0
#include "scaffold/scaffold.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ballast/adapter.h"
#include "ballast/detail/name_tree.h"
#include "ballast/error.h"
#include "fail.h"
#include "scaffold/layers.h"
#include "scaffold/names.h"

namespace tool {
namespace {

using ballast::detail::Branch;
using ballast::detail::kNoTensor;
using ballast::detail::NameTree;

constexpr std::size_t kLongestSequence = 256;  // positions a Sequential may have
constexpr std::size_t kMostFields = 64;
constexpr std::size_t kMostOfALayer = 256;  // tensors

constexpr std::size_t kDeepestLayer = 2;      // segments of its tensors' names: out_proj.weight
constexpr std::size_t kLongestOfALayer = 64;  // characters of them
// What a header may take, in text made on the way to it and in segments of names: models have far less, and
// no compiler takes more.
constexpr std::size_t kMostText = std::size_t{16} << 20U;
constexpr std::size_t kTextPerTensor = 256;
constexpr std::size_t kAroundAStruct = 32;  // characters

// How a member of some type is declared.
struct Member {
  std::string type;
  std::string arguments;  // inside braces
  std::string comment;
  std::string made_by = {};  // the whole expression, where braces would mean something else

  [[nodiscard]] std::string value() const { return made_by.empty() ? type + "{" + arguments + "}" : made_by; }
};

struct Struct {
  std::string type;
  std::string body;
};

using Field = std::pair<std::string_view, Member>;  // by its key

// Names that many ask for: wanted, wanted2, wanted3, …
struct Numbering {
  std::set<std::string> taken;
  std::map<std::string, std::size_t> next;

  template <class Take>
  std::string free_name(const std::string& wanted, const Take& take) {
    if (take(wanted)) return wanted;
    std::size_t& number = next.try_emplace(wanted, 2).first->second;
    for (;;) {
      std::string name = wanted + std::to_string(number++);
      if (take(name)) return name;
    }
  }
};

class Scaffold {
 public:
  /// `usual`: how matrices lie where nothing around shows it.
  Scaffold(const ballast::Checkpoint& checkpoint, Lying usual)
      : checkpoint_(checkpoint), usual_(usual), tree_(checkpoint) {
    for (const Branch& branch : tree_.branches())
      if (is_identifier(branch.name)) segments_.insert(branch.name);  // others are never asked for
  }

  std::string run(const ScaffoldOptions& options) {
    types_.insert(options.name);
    outermost(options.name, tree_.root());
    const std::string file = checkpoint_.path.substr(checkpoint_.path.rfind('/') + 1);
    std::string text = "// Made by `ballast new` from the keys and shapes of " +
                       (file.empty() ? "a checkpoint" : ballast::display(file)) +
                       ".\n// Layers are guesses from names and shapes; what a file does not say is left to "
                       "you.\n#pragma once\n\n#include <vector>\n\n#include <ballast/nn.h>\n\n";
    if (!options.space.empty()) text += "namespace " + options.space + " {\n\n";
    text += "namespace nn = ballast::nn;\n";
    std::size_t size = text.size();
    for (const Struct& part : structs_) size += part.type.size() + part.body.size() + kAroundAStruct;
    text.reserve(size + options.space.size() + kAroundAStruct);
    for (Struct& part : structs_)
      text.append("\nstruct ")
          .append(part.type)
          .append(" {\n")
          .append(std::exchange(part.body, {}))
          .append("};\n");
    if (!options.space.empty()) text += "\n}  // namespace " + options.space + "\n";
    return text;
  }

 private:
  // A file may be one layer, saved by itself: its keys have no name before them.
  void outermost(const std::string& name, const Branch& root) {
    const auto layer = layer_of("", root, usual_);
    if (!layer) {
      structure(name, root, true);
      return;
    }
    structs_.push_back(
        {name, fmt::format("  ballast::Flat<{}> layer{{{{{}}}}};{}\n", layer->type, layer->arguments,
                           layer->comment.empty() ? "" : "  // " + layer->comment)});
  }

  // False when there are more than a layer could have, or others.
  bool tensors_below(const Branch& branch, const std::string& prefix, std::size_t depth,
                     std::map<std::string, ballast::Tensor>& out) const {
    if (branch.tensor != kNoTensor) out.emplace(prefix, tensor_of(branch));
    if (out.size() > kMostOfALayer) return false;
    for (const Branch* child = branch.first; child != nullptr; child = child->next) {
      if (depth == kDeepestLayer || prefix.size() + child->name.size() > kLongestOfALayer) return false;
      std::string name = prefix.empty() ? std::string(child->name) : prefix + "." + std::string(child->name);
      if (!tensors_below(*child, name, depth + 1, out)) return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<GuessedLayer> layer_of(const std::string& name, const Branch& branch,
                                                     Lying lying) const {
    std::map<std::string, ballast::Tensor> below;
    if (!tensors_below(branch, "", 0, below)) return std::nullopt;
    return guess_layer(name, below, lying);
  }

  [[nodiscard]] ballast::Tensor tensor_of(const Branch& branch) const {
    return checkpoint_[branch.tensor].tensor();
  }

  // So much text more was made.
  void count(std::size_t characters) {
    made_ += characters;
    const std::size_t most = kMostText + checkpoint_.size() * kTextPerTensor;
    if (made_ <= most) return;
    fail(ballast::Errc::too_many, ballast::display(checkpoint_.path),
         "a struct for its {} tensors takes more than {} bytes of C++", checkpoint_.size(), most);
  }

  static Member plain_tensor(const ballast::Tensor& tensor) {
    std::string shape;
    for (const std::int64_t size : tensor.shape())
      shape += (shape.empty() ? "" : ", ") + std::to_string(size);
    const std::string_view code = ballast::info(tensor.dtype()).code;
    // Dtypes whose enumerator is spelled like their code; the others take what the file has.
    static constexpr std::string_view kSame[] = {"F16", "BF16", "F32", "F64", "I8",  "I16",
                                                 "I32", "I64",  "U8",  "U16", "U32", "U64"};
    if (std::find(std::begin(kSame), std::end(kSame), code) == std::end(kSame))
      return {"ballast::Tensor", "", fmt::format("{} [{}]", code, shape)};
    return {"ballast::Tensor", fmt::format("ballast::DType::{}, {{{}}}", lowered(code), shape), ""};
  }

  // As the nearest around show it that are not square; those of one block come from one hand.
  [[nodiscard]] Lying lying_around() const {
    const auto nearest = std::find_if(around_.rbegin(), around_.rend(), [](const Branch* branch) {
      return branch->has_out_in || branch->has_in_out;
    });
    if (nearest == around_.rend()) return usual_;
    if ((*nearest)->has_out_in && (*nearest)->has_in_out) return Lying::unknown;
    return (*nearest)->has_out_in ? Lying::out_in : Lying::in_out;
  }

  Member member(const std::string& name, const Branch& branch) {
    Member made = guessed_member(name, branch);
    count(made.type.size() + made.arguments.size() + made.comment.size() + made.made_by.size());
    return made;
  }

  Member guessed_member(const std::string& name, const Branch& branch) {
    if (branch.first == nullptr) return plain_tensor(tensor_of(branch));
    const Lying lying = lying_around();
    if (branch.tensor == kNoTensor) {
      if (auto layer = layer_of(name, branch, lying)) return {layer->type, layer->arguments, layer->comment};
    }
    Member made = several(name, branch);
    if (tree_.is_square_with_bias(branch) && lying == Lying::unknown)
      made.comment =
          "square: nn::Linear when it is [out, in], as PyTorch has it; GPT-2's Conv1D is [in, out]";
    return made;
  }

  Member several(const std::string& name, const Branch& branch) {
    bool is_numbered = branch.tensor == kNoTensor;
    for (const Branch* child = branch.first; is_numbered && child != nullptr; child = child->next)
      is_numbered = is_position(child->name);
    return is_numbered ? numbered(name, branch) : structure(camel_case(name), branch);
  }

  // Children 0, 1, 2, …: a vector when they are alike, else a Sequential with nn::Identity at the numbers
  // that have no tensors, or a struct when these are too many.
  Member numbered(const std::string& name, const Branch& branch) {
    std::map<int, const Branch*> ordered;
    for (const Branch* child = branch.first; child != nullptr; child = child->next)
      ordered.emplace(std::stoi(std::string(child->name)), child);
    const std::string singular =
        name.size() > 1 && name.back() == 's' ? name.substr(0, name.size() - 1) : name + "_item";
    std::vector<Field> members;
    around_.push_back(&branch);
    for (const auto& [number, child] : ordered) members.emplace_back(child->name, member(singular, *child));
    around_.pop_back();
    const int last = ordered.rbegin()->first;
    if (last + 1 == static_cast<int>(members.size())) {
      if (auto found = repeated(members)) return *found;
    }
    if (last < static_cast<int>(kLongestSequence)) return sequential(members);
    Body body;
    for (const auto& [key, item] : members) add_field(body, key, item);
    return finish(camel_case(name), std::move(body), false);
  }

  static std::optional<Member> repeated(const std::vector<Field>& members) {
    const Member& first = members[0].second;
    const std::string value = first.value();
    const bool alike = std::all_of(members.begin(), members.end(), [&](const Field& item) {
      return item.second.type == first.type && item.second.value() == value;
    });
    if (!alike) return std::nullopt;
    const std::string type = fmt::format("std::vector<{}>", first.type);
    const bool has_default = first.arguments.empty() && first.made_by.empty();
    return Member{type, "", first.comment,
                  has_default ? fmt::format("nn::repeat<{}>({})", first.type, members.size())
                              : fmt::format("{}({}, {})", type, members.size(), value)};
  }

  static Member sequential(const std::vector<Field>& members) {
    std::string types;
    std::string arguments;
    int next = 0;
    for (const auto& [number, item] : members) {
      for (; next < std::stoi(std::string(number)); ++next) {
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

  // A struct in the making.
  struct Body {
    std::string fields;
    std::string visits;
    Numbering names;
    std::size_t count = 0;
    bool plain = true;  // what reflection finds by itself
  };

  // A struct with the branch's children as fields.
  Member structure(const std::string& wanted, const Branch& branch, bool outermost = false) {
    around_.push_back(&branch);
    Body body;
    if (branch.tensor != kNoTensor) add_field(body, "", plain_tensor(tensor_of(branch)));
    for (const Branch* child = branch.first; child != nullptr; child = child->next)
      add_field(body, child->name, member(std::string(child->name), *child));
    around_.pop_back();
    return finish(wanted, std::move(body), outermost);
  }

  void add_field(Body& body, std::string_view key, const Member& item) {
    const std::string field = field_for(key, body);
    const std::string initial = !item.made_by.empty()    ? " = " + item.made_by
                                : item.arguments.empty() ? ""
                                                         : "{" + item.arguments + "}";
    const std::size_t before = body.fields.size() + body.visits.size();
    body.fields += fmt::format("  {} {}{};{}\n", item.type, field, initial,
                               item.comment.empty() ? "" : "  // " + item.comment);
    body.visits += fmt::format("    visit({}, self.{});\n", cpp_literal(key), field);
    count(body.fields.size() + body.visits.size() - before);
    if (++body.count >= kMostFields || key.empty()) body.plain = false;
  }

  // One that is the same as an earlier one is that one.
  Member finish(const std::string& wanted, Body body, bool outermost) {
    std::string text = std::move(body.fields);
    if (!body.plain) {
      text.reserve(text.size() + body.visits.size() + 2 * kAroundAStruct);  // and no more
      text.append("  static void visit_fields(auto& self, auto&& visit) {\n").append(body.visits);
      text.append("  }\n");
    }
    if (const auto same = by_body_.find(text); same != by_body_.end() && !outermost)
      return {same->second, "", ""};
    const std::string type = outermost ? wanted : type_names_.free_name(wanted, [&](const std::string& name) {
      return !segments_.contains(name) && !made_fields_.contains(name) && types_.insert(name).second;
    });
    structs_.push_back({type, std::move(text)});
    by_body_.emplace(structs_.back().body, type);
    return {type, "", ""};
  }

  // A field may not have the name of its struct, nor of what is used beside it.
  std::string field_for(std::string_view name, Body& body) {
    const std::string key(name);
    std::string wanted = is_taken_by_cpp(key) ? key + "_" : key;
    if (!is_identifier(key)) {
      body.plain = false;
      wanted = is_position(key) ? "layer_" + key : "field_" + camel_case(key);
    }
    std::string field = body.names.free_name(wanted, [&](const std::string& candidate) {
      return !types_.contains(candidate) && body.names.taken.insert(candidate).second;
    });
    if (field != wanted) {
      made_fields_.insert(field);
      body.plain = false;
    }
    return field;
  }

  const ballast::Checkpoint& checkpoint_;
  Lying usual_;
  NameTree tree_;
  std::set<std::string_view> segments_;
  std::deque<Struct> structs_;         // inner ones first; they stay where they are
  std::vector<const Branch*> around_;  // what the one looked at lies in, from outside
  std::map<std::string_view, std::string> by_body_;
  std::set<std::string> types_{"nn", "ballast", "std"};
  std::set<std::string> made_fields_;  // beside the segments of names: no type is named like one
  Numbering type_names_;
  std::size_t made_ = 0;
};

// a::b::c
void require_namespace(std::string_view text) {
  const std::string_view whole = text;
  for (;;) {
    const std::size_t end = text.find("::");
    const std::string_view part = text.substr(0, end);
    const std::string why =
        part == "std" || part == "ballast" ? "belongs to somebody else" : why_no_name(part);
    if (!why.empty())
      fail(ballast::Errc::invalid_argument, ballast::quoted(whole),
           "is not the name of a C++ namespace: {} {}", ballast::quoted(part), why);
    if (end == text.npos) return;
    text.remove_prefix(end + 2);
  }
}

}  // namespace

std::string scaffold(const ballast::Checkpoint& checkpoint, const ScaffoldOptions& options) {
  if (const std::string why = why_no_name(options.name); !why.empty())
    fail(ballast::Errc::invalid_argument, ballast::quoted(options.name),
         "is not the name of a C++ struct: it {}", why);
  if (!options.space.empty()) require_namespace(options.space);
  if (checkpoint.empty())
    fail(ballast::Errc::invalid_argument, ballast::display(checkpoint.path),
         "has no tensors to make a struct of");
  const ballast::Adapter from = ballast::adapter_of(checkpoint);
  if (from != ballast::Adapter::burn && from != ballast::Adapter::none)
    return Scaffold(checkpoint, Lying::unknown).run(options);
  // Layers are guessed by PyTorch's names and shapes; load() adapts the file by itself. Nothing but Linears
  // has a matrix and a bias there.
  const ballast::Checkpoint adapted =
      ballast::adapt(checkpoint, {.to = ballast::Adapter::pytorch, .undecided = ballast::OnUndecided::keep})
          .checkpoint;
  return Scaffold(adapted, Lying::out_in).run(options);
}

}  // namespace tool
