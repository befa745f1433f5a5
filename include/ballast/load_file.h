// SPDX-License-Identifier: Apache-2.0
// load(model, path), save(model, path) and load_config<T>(path): load.h and config.h for any file Ballast
// reads or writes. Part of ballast::import.
#pragma once

#include <string>
#include <vector>

#include "ballast/config.h"
#include "ballast/io.h"
#include "ballast/load.h"
#include "ballast/runtime.h"

#pragma GCC visibility push(default)

namespace ballast {

namespace detail {
[[nodiscard]] std::vector<Checkpoint> open_all(const std::vector<std::string>& paths);
}

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

struct SaveModelOptions {
  /// Whose names and layouts are written; automatic: Burn's in Burn's formats, else PyTorch's.
  Adapter adapter = Adapter::automatic;
  Precision dtype = Precision::keep;
  std::vector<std::string> keep_dtype = {};  ///< as in ModelCast
  bool keep_statistics = true;
  std::vector<LayerKind> keep_layers = {};
  Format format = {};  ///< by the extension when none is said
  bool overwrite = false;
  Progress progress = {};
};

/// Writes the model's tensors. Their names and layouts are PyTorch's, so that everybody can read them; Burn's
/// in Burn's formats, and those of `options.adapter` where it is set.
template <Module Model>
void save(const Model& model, const std::string& path, const SaveModelOptions& options = {}) {
  const Adapter adapter = options.adapter == Adapter::automatic
                              ? usual_adapter(format_for(path, options.format))
                              : options.adapter;
  save(to_checkpoint(model, adapter, detail::model_cast(options)), path,
       {.format = options.format, .overwrite = options.overwrite, .progress = options.progress});
}

/// A struct from the object tree of a PyTorch file, or from JSON; `key` is a dotted path into it, empty for
/// all of it.
template <class T>
[[nodiscard]] T load_config(const std::string& path, const std::string& key = {}) {
  return read_config<T>(open_value(path, key), key.empty() ? "config" : key);
}

}  // namespace ballast

#pragma GCC visibility pop
