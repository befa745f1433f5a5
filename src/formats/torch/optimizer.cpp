// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "ballast/error.h"
#include "ballast/torch.h"
#include "base/fail.h"
#include "base/key_path.h"
#include "checkpoint/flatten.h"
#include "checkpoint/root_choice.h"
#include "formats/torch/modules.h"

namespace ballast {
namespace {

constexpr std::array<std::string_view, 3> kStatistics = {"running_mean", "running_var",
                                                         "num_batches_tracked"};
constexpr std::size_t kLooks = 10'000;

struct ModelParameter {
  std::string name;
  Tensor tensor;
};

std::vector<std::string> optimizers_in(const Value& root) {
  struct Look {
    Value value;
    std::string path;
    std::size_t depth;
  };

  std::vector<std::string> found;
  std::vector<Look> looks = {{root, {}, 0}};
  for (std::size_t next = 0; next < looks.size() && next < kLooks; ++next) {
    const Look look = looks[next];
    if (torch::is_optimizer(look.value)) {
      found.push_back(look.path);
      continue;
    }
    const bool is_dict = look.value.kind() == Kind::dict;
    if ((!is_dict && look.value.kind() != Kind::list) || look.depth == 3) continue;
    for (std::size_t i = 0; i < look.value.size(); ++i) {
      const Value below = is_dict ? look.value.value(i) : look.value.element(i);
      if (below.kind() != Kind::dict && below.kind() != Kind::list) continue;
      const std::string label = is_dict ? key_name(look.value.key(i)) : std::to_string(i);
      looks.push_back({below, key_path::joined(look.path, label), look.depth + 1});
    }
  }
  return found;
}

std::string find_optimizer(const Checkpoint& checkpoint) {
  const auto found = optimizers_in(*checkpoint.tree);
  if (found.empty())
    fail(Errc::not_found, display(checkpoint.path),
         "holds no optimizer state (a dict with state and param_groups)");
  if (found.size() == 1) return found.front();
  std::string list;
  for (const std::string& path : found) list += (list.empty() ? "" : ", ") + quoted(path);
  fail(Errc::invalid_argument, display(checkpoint.path), "holds {} optimizers, say which: {}", found.size(),
       list);
}

std::string family_of(const OptimizerState& state) {
  const auto keeps = [&](std::string_view key) {
    return std::any_of(state.parameters.begin(), state.parameters.end(),
                       [&](const ParameterState& parameter) {
                         return std::any_of(parameter.values.begin(), parameter.values.end(),
                                            [&](const auto& value) { return value.first == key; });
                       });
  };
  const auto has = [&](std::string_view key) {
    return std::any_of(state.groups.begin(), state.groups.end(), [&](const auto& group) {
      return std::any_of(group.begin(), group.end(), [&](const auto& value) { return value.first == key; });
    });
  };
  if (keeps("exp_avg_sq")) return "adam";
  if (keeps("square_avg") && !keeps("acc_delta")) return "rmsprop";
  if (keeps("sum")) return "adagrad";
  if (has("nesterov") || keeps("momentum_buffer")) return "sgd";
  if (has("betas") && has("amsgrad")) return "adam";
  return "unknown";
}

// The shape of what is kept for a parameter is the parameter's own; counters have none.
std::optional<Shape> shape_of(const ParameterState& parameter) {
  for (const auto& [key, value] : parameter.values) {
    if (key == "step" || value.kind() != Kind::tensor) continue;
    return value.as_tensor().shape();
  }
  return std::nullopt;
}

std::string mismatch(const OptimizerState& state, const std::vector<ModelParameter>& names) {
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    const auto shape = shape_of(state.parameters[i]);
    if (shape && !(*shape == names[i].tensor.shape())) {
      return fmt::format("parameter {} keeps {}, but {} has shape {}", state.parameters[i].index,
                         to_string(*shape), quoted(names[i].name), to_string(names[i].tensor.shape()));
    }
  }
  return {};
}

void drop_ties(std::vector<ModelParameter>& parameters) {
  std::vector<ModelParameter> kept;
  for (ModelParameter& parameter : parameters) {
    const bool is_tied = std::any_of(kept.begin(), kept.end(), [&](const ModelParameter& other) {
      return other.tensor.same_view(parameter.tensor);
    });
    if (!is_tied) kept.push_back(std::move(parameter));
  }
  parameters = std::move(kept);
}

// An average beside the model (EMA) has the same parameters: the first will do.
FoundRoot model_beside(const Checkpoint& checkpoint) {
  const RootChoice choice = root_choice(checkpoint);
  if (choice.whole) return {checkpoint, {}};
  return take_found(checkpoint, choice.candidates.front().path);
}

// The model beside the optimizer: as a state dict, or whole. A whole model says itself what is a parameter.
std::vector<ModelParameter> model_parameters(const Checkpoint& checkpoint) {
  const FoundRoot found = model_beside(checkpoint);
  const Value tree = found.checkpoint.tree ? *found.checkpoint.tree : Value();
  const bool is_whole = is_model(tree);
  if (!is_whole && found.path.empty() && torch::is_optimizer(tree)) return {};
  std::vector<ModelParameter> parameters;
  for (const Entry& entry : found.checkpoint) {
    const std::string_view last = key_path::last(entry.name);
    if (is_whole) {
      const auto value = tree.find_path(entry.name);
      if (!value || value->kind() != Kind::tensor || !value->tensor_value().is_parameter) continue;
    } else if (std::find(kStatistics.begin(), kStatistics.end(), last) != kStatistics.end()) {
      continue;
    }
    parameters.push_back({std::string(entry.name), entry.tensor()});
  }
  drop_ties(parameters);
  return parameters;
}

using Split = bool (*)(const ModelParameter&);

// Two groups are nearly always weights and biases, or matrices and vectors: the first group's first.
std::vector<ModelParameter> reordered(const std::vector<ModelParameter>& parameters, Split first) {
  std::vector<ModelParameter> order;
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(order), first);
  std::copy_if(parameters.begin(), parameters.end(), std::back_inserter(order),
               [&](const ModelParameter& parameter) { return !first(parameter); });
  return order;
}

std::vector<std::vector<ModelParameter>> possible_orders(const OptimizerState& state,
                                                         const std::vector<ModelParameter>& parameters) {
  std::vector<std::vector<ModelParameter>> orders = {parameters};
  if (state.groups.size() != 2) return orders;
  const auto in_first =
      static_cast<std::size_t>(std::count_if(state.parameters.begin(), state.parameters.end(),
                                             [](const ParameterState& p) { return p.group == 0; }));
  constexpr std::array<Split, 4> kSplits = {[](const ModelParameter& p) { return !p.name.ends_with("bias"); },
                                            [](const ModelParameter& p) { return p.name.ends_with("bias"); },
                                            [](const ModelParameter& p) { return p.tensor.rank() >= 2; },
                                            [](const ModelParameter& p) { return p.tensor.rank() < 2; }};
  for (const Split split : kSplits) {
    if (static_cast<std::size_t>(std::count_if(parameters.begin(), parameters.end(), split)) == in_first)
      orders.push_back(reordered(parameters, split));
  }
  return orders;
}

bool same_names(const std::vector<ModelParameter>& a, const std::vector<ModelParameter>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ModelParameter& x, const ModelParameter& y) { return x.name == y.name; });
}

void name_by_model(const Checkpoint& checkpoint, OptimizerState& state) {
  const std::vector<ModelParameter> parameters = model_parameters(checkpoint);
  if (parameters.empty()) return;
  if (parameters.size() != state.parameters.size()) {
    fail(Errc::shape_mismatch, display(checkpoint.path), "the optimizer has {} parameters, the model {}",
         state.parameters.size(), parameters.size());
  }
  const std::vector<ModelParameter>* fitting = nullptr;
  const auto orders = possible_orders(state, parameters);
  for (const auto& order : orders) {
    if (!mismatch(state, order).empty()) continue;
    if (fitting != nullptr && !same_names(*fitting, order)) {
      fail(Errc::shape_mismatch, display(checkpoint.path),
           "the groups of the optimizer fit the model in more than one way");
    }
    fitting = &order;
  }
  if (fitting == nullptr)
    fail(Errc::shape_mismatch, display(checkpoint.path), "the optimizer does not fit the model: {}",
         mismatch(state, parameters));
  for (std::size_t i = 0; i < parameters.size(); ++i) state.parameters[i].name = (*fitting)[i].name;
}

// One group: hyper-parameters as they are, parameters by number; true when the group names them itself.
bool read_group(const Checkpoint& checkpoint, const Value& group, const Value& entries,
                OptimizerState& state) {
  if (group.kind() != Kind::dict)
    fail(Errc::type_mismatch, display(checkpoint.path), "a parameter group that is {}", name(group.kind()));
  const auto numbers = group.find("params");
  if (!numbers || (numbers->kind() != Kind::list && numbers->kind() != Kind::tuple)) {
    fail(Errc::type_mismatch, display(checkpoint.path), "a parameter group without a list of params");
  }
  const auto names = group.find("param_names");
  const bool is_named = names && names->kind() == Kind::list && names->size() == numbers->size();
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    const Value number = numbers->element(i);
    ParameterState parameter;
    parameter.group = state.groups.size();
    if (number.kind() == Kind::string)
      parameter.name = number.as_string();  // keyed by name: distributed checkpoints
    else
      parameter.index = number.as_int();
    if (is_named && names->element(i).kind() == Kind::string) parameter.name = names->element(i).as_string();
    if (const auto kept = entries.find(number.kind() == Kind::string ? number.as_string()
                                                                     : std::to_string(parameter.index));
        kept && kept->kind() == Kind::dict) {
      for (std::size_t j = 0; j < kept->size(); ++j)
        parameter.values.emplace_back(key_name(kept->key(j)), kept->value(j));
    }
    state.parameters.push_back(std::move(parameter));
  }
  state.groups.emplace_back();
  for (std::size_t i = 0; i < group.size(); ++i) {
    const std::string key = key_name(group.key(i));
    if (key != "params" && key != "param_names") state.groups.back().emplace_back(key, group.value(i));
  }
  return is_named;
}

}  // namespace

const Value& ParameterState::value(std::string_view key) const {
  for (const auto& [own, held] : values) {
    if (own == key) return held;
  }
  fail(Errc::not_found, quoted(name), "the optimizer keeps no {} for it", quoted(key));
}

const ParameterState& OptimizerState::at(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const ParameterState& parameter : parameters) {
    if (parameter.name == name) return parameter;
    names.push_back(parameter.name);
  }
  fail(Errc::not_found, quoted(path), "the optimizer has no parameter {}{}", quoted(name),
       did_you_mean(name, names));
}

OptimizerState optimizer_state(const Checkpoint& checkpoint, std::string_view path) {
  if (!checkpoint.tree) fail(Errc::not_found, display(checkpoint.path), "holds tensors only, no optimizer");
  OptimizerState state;
  state.path = path.empty() ? find_optimizer(checkpoint) : std::string(path);
  const Value optimizer = checkpoint.tree->at(state.path);
  if (!torch::is_optimizer(optimizer))
    fail(Errc::type_mismatch, display(checkpoint.path), "{} is no optimizer's state_dict",
         quoted(state.path));
  const Value groups = *optimizer.find("param_groups");
  bool is_named = groups.size() != 0;
  for (std::size_t i = 0; i < groups.size(); ++i)
    is_named = read_group(checkpoint, groups.element(i), *optimizer.find("state"), state) && is_named;
  state.family = family_of(state);
  const bool has_names = std::all_of(state.parameters.begin(), state.parameters.end(),
                                     [](const ParameterState& p) { return !p.name.empty(); });
  if (!is_named && !has_names) name_by_model(checkpoint, state);
  return state;
}

}  // namespace ballast
