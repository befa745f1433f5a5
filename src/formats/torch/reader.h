// SPDX-License-Identifier: Apache-2.0
// Whole PyTorch files: which container it is, what its pickles hold, and where its storages lie.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/io.h"
#include "formats/torch/objects.h"
#include "formats/torch/script.h"
#include "formats/torch/storage_id.h"
#include "tensor/source_storage.h"

namespace ballast::torch {

/// What a file holds, before it is flattened into named tensors.
struct Document {
  Ref root;
  Format format;
  std::vector<std::string> notes;
  ScriptClasses script;  // TorchScript only, and
  Ref constants;         // what its program holds: the weights of a frozen one
};

class Reader {
 public:
  Reader(std::shared_ptr<const ByteSource> source, Settings settings);

  [[nodiscard]] Document read();

  [[nodiscard]] Objects& objects() noexcept { return objects_; }

  [[nodiscard]] const ByteSource& source() const noexcept { return *source_; }

 private:
  Ref read_container(const ByteSource& source, Document& document);
  Ref read_nested(std::shared_ptr<const Storage> bytes, const std::string& where);

  std::shared_ptr<const ByteSource> source_;
  Objects objects_;
  std::size_t depth_ = 0;  // of streams inside streams
};

// The containers. Each gives the root object; the bytes it needs stay alive with the objects' tree.
[[nodiscard]] Ref read_zip(Objects& objects, const ByteSource& source, Document& document);
[[nodiscard]] Ref read_tar(Objects& objects, const ByteSource& source, Document& document);
/// A legacy stream, or a bare pickle.
[[nodiscard]] Ref read_pickles(Objects& objects, const ByteSource& source, Document& document);

/// What a storage of some key was first said to be: some releases of PyTorch go by that, whatever a later
/// mention says, and others do not.
struct FirstMention {
  std::optional<DType> dtype;
  TypeId type = 0;
  std::uint64_t numel = 0;
  std::uint64_t bytes = 0;

  explicit FirstMention(const StorageId& id)
      : dtype(id.dtype), type(id.type), numel(id.numel), bytes(id.bytes) {}

  FirstMention() = default;

  /// Errc::size_mismatch, Errc::bad_dtype when `again` is something else.
  void check(const Objects& objects, const StorageId& again) const;
};

[[nodiscard]] StorageId parse_storage_id(Objects& objects, Ref id);
/// A storage's or tensor's key: text, or an integer as its decimal.
[[nodiscard]] std::string key_text(Objects& objects, Ref key, const char* what);

/// Runs one pickle of `bytes`, which the tree keeps alive. `used` gets the bytes it took. Its budget grows
/// with its bytes, once, when it is no stream inside a stream.
[[nodiscard]] Ref run_pickle(Objects& objects, const std::shared_ptr<const Storage>& bytes,
                             std::size_t offset, Stream stream, std::size_t& used);
/// The same for bytes that hold one pickle and nothing else: Errc::trailing_data otherwise (a finding in
/// inert mode).
[[nodiscard]] Ref run_whole_pickle(Objects& objects, const std::shared_ptr<const Storage>& bytes,
                                   Stream stream);
/// Errc::trailing_data, unless the file is read inertly.
void refuse_trailing(Objects& objects, const std::string& where, const std::string& entry,
                     std::uint64_t offset, std::uint64_t bytes);

/// The tensors of checkpoint.tree by their names, within the reader's budget.
void name_tensors(Reader& reader, const Document& document, Checkpoint& checkpoint);

/// Opens a source that is no Safetensors file.
[[nodiscard]] Checkpoint open(const ByteSource& source, const OpenOptions& options);

}  // namespace ballast::torch
