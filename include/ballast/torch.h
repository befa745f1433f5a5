// SPDX-License-Identifier: Apache-2.0
// PyTorch files. Written: what torch.save would write, readable by torch.load(weights_only=True) and, with a
// plain dict as its root, by libtorch. docs/formats/pytorch-writing.md describes the bytes and which Python
// values can be written. Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what the functions say; a save() that throws leaves no new file behind. Owns:
// values of an optimizer keep the checkpoint's tree alive. Threads: every function may be called from several
// at once, writers for different paths. Costs: save() streams every byte once in flat memory;
// optimizer_state() reads none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/detail/file_options.h"
#include "ballast/runtime.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)

namespace ballast::torch {

/// A state dict of the checkpoint's tensors; or its whole tree, when it has one that is no pickled model and
/// its tensors are still those of the tree (reset `tree` to write the tensors alone). Tensors on one storage
/// stay on one storage, strides and offsets stay as they are. String metadata has no place in these files and
/// is not written. Atomic; memory does not grow with the tensors. A shape alone is written as PyTorch's meta
/// tensors are. Errc::not_representable for dtypes PyTorch has not, and values it would refuse;
/// unsupported for a tensor on another device; already_exists without `overwrite`, file_not_found, no_space,
/// io_error, file_changed. Of the options it knows format (torch_zip, torch_legacy), plain_dict, simplify,
/// extent, metadata; others are Errc::invalid_argument.
void save(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options = {});

/// Any tree of values: a training checkpoint with its epoch, model and optimizer. Shared parts and cycles
/// stay what they are. Errc::not_representable, with the path of the value, for what
/// torch.load(weights_only=True) would refuse, unsupported for a tensor on another device.
void save(const Value& root, const std::string& path, const SaveOptions& options = {});

}  // namespace ballast::torch

namespace ballast {

// The optimizer inside a training checkpoint, by parameter name. PyTorch saves it by number; the names come
// from the model beside it.

/// What an optimizer keeps for one parameter.
struct ParameterState {
  std::string name;        ///< empty when the file does not hold the model
  std::int64_t index = 0;  ///< the file's number for it
  std::size_t group = 0;   ///< which of the groups it is in
  std::vector<std::pair<std::string, Value>>
      values;  ///< "exp_avg", "step", …; empty when it never had a gradient

  /// Errc::not_found when there is no such value; valid as long as the state it is asked of.
  [[nodiscard]] const Value& value(std::string_view key) const;
};

/// What an optimizer's state_dict() holds, by the parameters' names.
struct OptimizerState {
  std::string path;    ///< where in the tree it was found
  std::string family;  ///< "adam", "sgd", "rmsprop", "adagrad" by what it keeps, "unknown" otherwise
  std::vector<std::vector<std::pair<std::string, Value>>> groups;  ///< hyper-parameters: lr, betas, …
  std::vector<ParameterState> parameters;                          ///< in the optimizer's order

  /// Errc::not_found with the nearest names; valid as long as the state.
  [[nodiscard]] const ParameterState& at(std::string_view name) const;
};

/// `path` is where the optimizer's state_dict() lies; found by itself when empty and there is one
/// (Errc::not_found, Errc::invalid_argument otherwise). Names come from the file's own list (`param_names`),
/// from a whole model, or from the state dict: in its order without batch-norm statistics, tied tensors once,
/// or split by weights and biases where there are two groups. Errc::shape_mismatch when the shapes of moments
/// do not fit, type_mismatch when what lies there is no optimizer's state_dict().
[[nodiscard]] OptimizerState optimizer_state(const Checkpoint& checkpoint, std::string_view path = {});

}  // namespace ballast

#pragma GCC visibility pop
