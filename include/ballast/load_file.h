// SPDX-License-Identifier: Apache-2.0
// load(model, path), save(model, path) and load_config<T>(path): load.h and config.h for any file Ballast
// reads or writes. Part of ballast::import.
#pragma once

#include <string>
#include <vector>

#include "ballast/config.h"
#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/load.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

namespace detail {
[[nodiscard]] std::vector<Checkpoint> open_all(const std::vector<std::string>& paths);
void save_model(const Slots& slots, const std::string& path, const SaveModelOptions& options);
}  // namespace detail

/// The file's format is found by its content. Tensors are views of the mapped file; they keep it open as long
/// as they live.
template <Module Model>
LoadReport load(Model& model, const std::string& path, const LoadOptions& options = {}) {
  return load(model, open(path), options);
}

/// Several files make up one model.
template <Module Model>
LoadReport load(Model& model, const std::vector<std::string>& paths, const LoadOptions& options = {}) {
  return load(model, detail::open_all(paths), options);
}

/// Writes the model's tensors. Their names and layouts are PyTorch's, so that everybody can read them; Burn's
/// in Burn's formats, and those of `options.adapter` where it is set. Quantized are tensors of two dimensions
/// and more; only save_record() takes a configuration. Atomic.
template <Module Model>
void save(const Model& model, const std::string& path, const SaveModelOptions& options = {}) {
  detail::save_model(detail::collect_slots(model, detail::Collector::Alternatives::held_only), path, options);
}

/// A struct from the object tree of a PyTorch file, or from JSON; `key` is a dotted path into it, empty for
/// all of it.
template <class T>
[[nodiscard]] T load_config(const std::string& path, const std::string& key = {}) {
  return read_config<T>(open_value(path, key), display(path) + ": " + (key.empty() ? "config" : key));
}

}  // namespace ballast

#pragma GCC visibility pop
