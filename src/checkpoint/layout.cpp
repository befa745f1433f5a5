// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/layout.h"

#include <algorithm>
#include <optional>

#include "ballast/error.h"
#include "base/fail.h"
#include "checkpoint/record_metadata.h"

namespace ballast::layout {
namespace {

constexpr std::string_view kUsual = "pytorch";
constexpr std::string_view kBurn = "burn";

// How other programs' files say whose they are.
struct Mark {
  std::string_view layout;
  const char* key;
  std::string_view value;
};

constexpr Mark kMarks[] = {
    {kBurn, "producer", "burn"}, {"flax", "format", "flax"}, {"keras", "format", "keras"},
    {"keras", "format", "tf"},   {kUsual, "format", "pt"},
};

// The first tensor of each kind that tells Burn's layout from PyTorch's; empty: there is none.
struct Evidence {
  std::string in_out;       // a matrix [in, out] beside a bias [out]: Burn's Linear
  std::string out_in;       // [out, in] beside [out]: PyTorch's
  std::string gamma;        // a norm with Burn's names
  std::string norm_weight;  // with PyTorch's
  bool has_matrix = false;  // something whose layout matters

  [[nodiscard]] const std::string& burn() const { return in_out.empty() ? gamma : in_out; }

  [[nodiscard]] const std::string& pytorch() const { return out_in.empty() ? norm_weight : out_in; }

  [[nodiscard]] bool is_some() const { return !burn().empty() || !pytorch().empty(); }

  // Shapes prove more than names do.
  [[nodiscard]] bool contradicts_itself() const {
    if (!in_out.empty() || !out_in.empty()) return !in_out.empty() && !out_in.empty();
    return !gamma.empty() && !norm_weight.empty();
  }
};

class Look {
 public:
  explicit Look(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Evidence run() {
    for (const Entry& entry : checkpoint_) {
      const std::size_t dot = entry.name.rfind('.') + 1;  // 0 when there is none
      const std::string_view field = entry.name.substr(dot);
      if (field == "weight") weight(entry, entry.name.substr(0, dot));
      if (field == "gamma") gamma(entry, entry.name.substr(0, dot));
    }
    return std::move(evidence_);
  }

 private:
  // Of a sibling that is a vector of at least one.
  [[nodiscard]] std::optional<std::int64_t> length(std::string_view layer, std::string_view field) const {
    const auto at = checkpoint_.position(std::string(layer) + std::string(field));
    if (!at || checkpoint_[*at].shape.size() != 1) return std::nullopt;
    return checkpoint_[*at].shape[0];
  }

  static void note(std::string& first, const Entry& entry) {
    if (first.empty()) first = entry.name;
  }

  void weight(const Entry& entry, std::string_view layer) {
    const ShapeView shape = entry.shape;
    if (shape.size() == 2) {
      evidence_.has_matrix = true;
      const auto bias = shape[0] == shape[1] ? std::nullopt : length(layer, "bias");
      if (bias == shape[0]) note(evidence_.out_in, entry);
      if (bias == shape[1]) note(evidence_.in_out, entry);
    } else if (shape.size() == 1 &&
               (length(layer, "bias") == shape[0] || length(layer, "running_mean") == shape[0])) {
      note(evidence_.norm_weight, entry);
    }
  }

  void gamma(const Entry& entry, std::string_view layer) {
    const ShapeView shape = entry.shape;
    if (shape.size() == 1 && (length(layer, "beta") == shape[0] || length(layer, "running_mean") == shape[0]))
      note(evidence_.gamma, entry);
  }

  const Checkpoint& checkpoint_;
  Evidence evidence_;
};

struct Claim {
  std::string layout;
  bool is_own_mark = false;
};

// By what others write into their files.
std::string_view layout_of_marks(const Checkpoint& checkpoint) {
  for (const Mark& mark : kMarks) {
    const std::string* found = record::find(checkpoint, mark.key);
    if (found != nullptr && *found == mark.value) return mark.layout;
  }
  return kUsual;
}

Claim claim_of(const Checkpoint& checkpoint) {
  if (const std::string* own = record::find(checkpoint, kKey)) return {*own, true};
  const std::string_view usual = checkpoint.format ? checkpoint.format->layout : kUsual;
  return {std::string(usual != kUsual ? usual : layout_of_marks(checkpoint))};
}

std::string described(const Checkpoint& checkpoint, const std::string& name) {
  return fmt::format("{} {}", quoted(name), to_string(checkpoint.at(name).shape));
}

Found claimed_as_burn(const Checkpoint& checkpoint, const Claim& claim, Evidence evidence) {
  // Recorders had no adapters: a layer of somebody's own may have a weight and a bias.
  const bool is_recorders = !claim.is_own_mark && record::find(checkpoint, "burn.format") != nullptr;
  if (is_recorders || claim.is_own_mark) evidence.norm_weight.clear();  // names prove less than a mark
  if (evidence.contradicts_itself())
    fail(Errc::invalid_argument, display(checkpoint.path),
         "{} has Burn's layout, {} PyTorch's: which of them the file follows must be said (adapter: burn or "
         "pytorch)",
         described(checkpoint, evidence.burn()), described(checkpoint, evidence.pytorch()));
  const bool is_pytorch =
      !evidence.out_in.empty() || (evidence.in_out.empty() && !evidence.norm_weight.empty());
  if (is_pytorch && claim.is_own_mark)
    fail(Errc::invalid_argument, display(checkpoint.path),
         "says that its layout is Burn's, and {} has PyTorch's: which it is must be said (adapter: burn or "
         "pytorch)",
         described(checkpoint, evidence.pytorch()));
  if (is_pytorch)
    return {std::string(kUsual),
            fmt::format("a file of Burn's with PyTorch's layout, as {} shows: it is taken for that",
                        described(checkpoint, evidence.pytorch()))};
  Found found{std::string(kBurn)};
  const bool is_told = claim.is_own_mark || !evidence.burn().empty() || !evidence.has_matrix;
  if (!is_told && !is_recorders)
    found.note =
        "nothing in the file shows whether its layout is Burn's or, through BurnToPyTorchAdapter, PyTorch's; "
        "Burn's is taken (adapter: pytorch for the other)";
  return found;
}

Found claimed_as_pytorch(const Evidence& evidence) {
  Found found{std::string(kUsual)};
  // GPT-2 has matrices [in, out] and BERT norms with gamma, in PyTorch: neither alone is a doubt.
  if (!evidence.has_matrix || evidence.gamma.empty() || !evidence.out_in.empty() ||
      !evidence.norm_weight.empty())
    return found;
  found.note = fmt::format(
      "its norms have Burn's names ({}); PyTorch's layout is taken all the same (adapter: burn for the "
      "other)",
      quoted(evidence.gamma));
  return found;
}

}  // namespace

Found find(const Checkpoint& checkpoint) {
  const Claim claim = claim_of(checkpoint);
  if (claim.layout == kBurn) return claimed_as_burn(checkpoint, claim, Look(checkpoint).run());
  Found found{claim.layout};
  if (claim.layout == kUsual) found = claimed_as_pytorch(Look(checkpoint).run());
  const bool is_unusual = checkpoint.format && checkpoint.format->layout != kUsual;
  if (is_unusual && found.note.empty())
    found.note = fmt::format("the file says that its layout is {}, where files of its format have {}",
                             display(claim.layout), checkpoint.format->layout);
  return found;
}

void keep_evidence(Checkpoint& checkpoint) {
  const Claim claim = claim_of(checkpoint);
  if (claim.layout != kBurn || claim.is_own_mark) return;
  const Evidence evidence = Look(checkpoint).run();
  if (!evidence.is_some() || evidence.contradicts_itself()) return;  // the latter is find()'s to refuse
  Found found = claimed_as_burn(checkpoint, claim, evidence);
  if (!found.note.empty()) checkpoint.notes.push_back(std::move(found.note));
  set(checkpoint, found.layout);
}

bool is_told(const Checkpoint& checkpoint) {
  const Claim claim = claim_of(checkpoint);
  return claim.layout != kBurn || claim.is_own_mark || Look(checkpoint).run().is_some();
}

std::string of(const Checkpoint& checkpoint) {
  const Claim claim = claim_of(checkpoint);
  return claim.layout == kBurn && !claim.is_own_mark ? find(checkpoint).layout : claim.layout;
}

void set(Checkpoint& checkpoint, std::string_view layout) {
  if (!checkpoint.metadata) checkpoint.metadata.emplace();
  (*checkpoint.metadata)[kKey] = layout;
}

void label(Checkpoint& checkpoint, std::string_view layout) {
  if (!checkpoint.metadata) checkpoint.metadata.emplace();
  for (const Mark& mark : kMarks) {
    if (mark.layout == layout && layout != kBurn) checkpoint.metadata->emplace(mark.key, mark.value);
  }
  state(checkpoint, layout);
}

void state(Checkpoint& checkpoint, std::string_view layout) {
  // Burn's has other words, but those stand in files of both layouts.
  if (layout == kBurn || layout_of_marks(checkpoint) != layout) set(checkpoint, layout);
}

void state_for_safetensors(Checkpoint& checkpoint, std::string_view layout) {
  const bool is_of_pytorch = checkpoint.format && checkpoint.format->holds_tree;  // nobody else's do
  if (is_of_pytorch && layout == kUsual)
    label(checkpoint, layout);
  else
    state(checkpoint, layout);
}

Value in_tree(std::string_view layout) {
  return Value::dict({{Value(kKey), Value(layout)}});
}

void take_from_tree(Checkpoint& checkpoint) {
  if (!checkpoint.tree) return;
  const Value attributes = checkpoint.tree->attributes();
  const auto metadata = attributes.kind() == Kind::dict ? attributes.find("_metadata") : std::nullopt;
  const auto layout = metadata && metadata->kind() == Kind::dict ? metadata->find(kKey) : std::nullopt;
  if (!layout || layout->kind() != Kind::string) return;
  if (!checkpoint.metadata) checkpoint.metadata.emplace();
  checkpoint.metadata->emplace(kKey, layout->as_string());
}

}  // namespace ballast::layout
