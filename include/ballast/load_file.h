// SPDX-License-Identifier: Apache-2.0
// load(model, path), save(model, path) and load_config<T>(path): load.h and config.h for any file Ballast
// reads or writes. Part of ballast::import.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; and what open(), load() and save() throw. Owns: the model's tensors keep the mapped
// file. Threads: several at once for different models and paths; nobody else may use a model that is loaded
// meanwhile. Costs: as io.h and load.h.
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

/// load(model, open(path), options): the file's format is found by its content. Tensors are views of the
/// mapped file, which they keep open as long as they live; no byte is copied unless a step must compute it.
/// Throws what open() throws for the file, and LoadError when the two do not fit; the model is as it was
/// then. Nobody else may use the model meanwhile.
template <Module Model>
LoadReport load(Model& model, const std::string& path, const LoadOptions& options = {}) {
  return load(model, open(path), options);
}

/// Several files make up one model; Errc::duplicate_key when a name is in two of them.
template <Module Model>
LoadReport load(Model& model, const std::vector<std::string>& paths, const LoadOptions& options = {}) {
  return load(model, detail::open_all(paths), options);
}

/// Writes the model's tensors. Their names and layouts are PyTorch's, so that everybody can read them; Burn's
/// in Burn's formats, and those of `options.adapter` where it is set. Quantized are tensors of two dimensions
/// and more; only save_record() takes a configuration. Atomic, and streamed: memory stays flat.
/// Errc::already_exists without `overwrite`, invalid_argument when a tensor has no data or the extension says
/// no format, not_representable for what the format cannot hold, and what save() of a checkpoint throws;
/// nothing is written then.
template <Module Model>
void save(const Model& model, const std::string& path, const SaveModelOptions& options = {}) {
  detail::save_model(detail::collect_slots(model, detail::Collector::Alternatives::held_only), path, options);
}

/// A struct from the object tree of a PyTorch file, or from JSON; `key` is a dotted path into it, empty for
/// all of it. Errc::not_found for a key or a field that is not there (std::optional fields may be absent),
/// type_mismatch for a value that does not fit its field; both with the path; and what open_value() throws.
/// Tensors are not read.
template <class T>
[[nodiscard]] T load_config(const std::string& path, const std::string& key = {}) {
  return read_config<T>(open_value(path, key), display(path) + ": " + (key.empty() ? "config" : key));
}

}  // namespace ballast

#pragma GCC visibility pop
