// SPDX-License-Identifier: Apache-2.0
// Records of models: convert once, ship the record, load it with nothing left to do. save_record() writes a
// model's tensors in the native layout, load_record() maps them: no transposes, no copies, no importer. Part
// of ballast::core.
//
// Throws: of every path Errc::file_not_found, permission_denied, not_regular_file and io_error, where it is
// written no_space, too; as load.h and detail/record_file.h, and what the functions say. Owns: as load(): the
// model's tensors keep the mapped file. Threads: several at once for different models and paths; nobody else
// may use a model that is loaded meanwhile. Costs: loading takes what the header takes; saving reads every
// byte twice, quantized ones once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "ballast/config.h"
#include "ballast/detail/record_file.h"
#include "ballast/load.h"
#include "ballast/quantized.h"

#pragma GCC visibility push(default)

namespace ballast {

/// What save_record() did to the values.
struct RecordReport {
  std::uint64_t rounded = 0;               ///< values that the cast changed
  std::uint64_t overflowed = 0;            ///< finite values that are finite no more
  std::vector<QuantizedTensor> quantized;  ///< with the error of each
};

namespace detail {
RecordReport save_record(const Slots& slots, const std::string& path, const SaveModelOptions& options);
}  // namespace detail

/// The model's tensors under their own names and in the native layout; quantized are weights of linear,
/// convolutional, embedding and recurrent layers. Atomic. Errc::invalid_argument for an adapter or a format
/// of another kind and for a tensor without data, already_exists without `overwrite`, and what
/// safetensors::save() throws.
template <Module Model>
RecordReport save_record(const Model& model, const std::string& path, const SaveModelOptions& options = {}) {
  return detail::save_record(detail::collect_slots(model, detail::Collector::Alternatives::held_only), path,
                             options);
}

/// The model's tensors are views of the mapped file. Throws LoadError as load() does.
template <Module Model>
LoadReport load_record(Model& model, const std::string& path, const LoadOptions& options = {},
                       const OpenOptions& how = {}) {
  return load(model, open_record(path, how), options);
}

/// The same for a record linked into the program.
template <Module Model>
LoadReport load_record(Model& model, std::span<const std::byte> bytes, const LoadOptions& options = {},
                       const OpenOptions& how = {}) {
  return load(model, open_record(bytes, how), options);
}

/// The configuration saved with it. Errc::not_found when there is none, Errc::type_mismatch when it does not
/// fit.
template <class T>
[[nodiscard]] T record_config(const Checkpoint& checkpoint) {
  return read_config<T>(record_config_value(checkpoint), "config");
}

/// The same for a file.
template <class T>
[[nodiscard]] T record_config(const std::string& path) {
  return record_config<T>(open_record(path));
}

}  // namespace ballast

#pragma GCC visibility pop
