// SPDX-License-Identifier: Apache-2.0
// The steps between opening and using a file, from Python's keywords (docs/options.md).
#pragma once

#include "ballast/steps.h"
#include "py.h"
#include "tensor.h"
#include "values.h"

namespace py {

/// Into Steps, or options that have its fields.
template <class Target>
void set_steps(Target& target, const Options& given) {
  if (given.find("root") != nullptr) target.root = given.text("root");
  target.rename = rename_rules_of(given.find("rename"));
  if (given.find("rules") != nullptr) target.rules = ballast::rules::read(given.path("rules"));
  target.strip_prefixes = given.flag("strip_prefixes");
  target.include = given.texts("include");
  target.exclude = given.texts("exclude");
  target.reindex = given.texts("reindex");
  target.keep_positions = given.texts("keep_positions");
  if (given.find("dtype") != nullptr) target.dtype = dtype_named(given.text("dtype"));
  target.keep_dtype = given.texts("keep_dtype");
  target.keep_statistics = given.flag("keep_statistics", true);
}

}  // namespace py
