// SPDX-License-Identifier: Apache-2.0
// From a model's tensors to a Checkpoint.
#include <algorithm>

#include "ballast/error.h"
#include "base/fail.h"
#include "containers/expansion.h"
#include "formats/onnx/external.h"
#include "formats/onnx/model.h"
#include "formats/onnx/onnx.h"
#include "formats/onnx/sparse.h"

namespace ballast::onnx_file {
namespace {

constexpr std::size_t kNamesInANote = 5;

// "3 tensors are STRING: …", with the first few names.
struct Skipped {
  std::string why;
  std::uint64_t count = 0;
  std::string names;
};

class Collector {
 public:
  Collector(const ByteSource& source, double expansion)
      : source_(source), expansion_(expansion), external_(source) {}

  Checkpoint collect() {
    const TensorSink sink{.tensor = [this](const TensorDescription& tensor, Origin) { add(tensor); },
                          .sparse = [this](const SparseDescription& sparse, Origin) { add_sparse(sparse); }};
    const Info info = read_model(source_, sink);
    external_.check_overlaps(expansion_);
    checkpoint_.format = formats::onnx;
    if (!info.metadata.empty()) checkpoint_.metadata = info.metadata;
    note(info);
    return std::move(checkpoint_);
  }

 private:
  std::shared_ptr<const Storage> bytes_of(const TensorDescription& tensor) {
    return tensor.data == DataIn::external ? external_.storage(tensor) : storage_of(source_, tensor);
  }

  void add(const TensorDescription& tensor) {
    if (tensor.skipped()) return skip(tensor.name, tensor.why_skipped);
    put(tensor.name, *tensor.type->dtype, tensor.shape, bytes_of(tensor));
  }

  void add_sparse(const SparseDescription& sparse) {
    const std::string& name = sparse.values.name;
    if (sparse.values.skipped()) return skip(name, sparse.values.why_skipped);
    if (sparse.indices.skipped())
      fail(Errc::bad_dtype, source_.where(), "tensor {}: sparse indices are {}", quoted(name),
           sparse.indices.why_skipped);
    // Few bytes may stand for many: all sparse tensors together are held against the file.
    const std::uint64_t bytes = dense_bytes(sparse, source_.where());
    const std::uint64_t most = containers::expansion_limit(source_.size());
    if (bytes > most || (dense_ += bytes) > most)
      fail(Errc::expansion_limit, source_.where(), "tensor {}: sparse tensors of {} bytes when dense",
           quoted(name), bytes > most ? bytes : dense_);
    put(name, *sparse.values.type->dtype, sparse.shape,
        dense_storage(sparse, bytes_of(sparse.values), bytes_of(sparse.indices), source_.where()));
    ++sparse_;
  }

  void put(const std::string& name, DType dtype, ShapeView shape, std::shared_ptr<const Storage> bytes) {
    const std::uint32_t storage = CheckpointBuilder(checkpoint_).add_storage(std::move(bytes));
    static_cast<void>(CheckpointBuilder(checkpoint_)
                          .add_view(CheckpointBuilder(checkpoint_).store_name(name), dtype, shape, storage,
                                    0));  // names were settled before
  }

  void skip(const std::string& name, const std::string& why) {
    auto kind = std::find_if(skipped_.begin(), skipped_.end(),
                             [&](const Skipped& known) { return known.why == why; });
    if (kind == skipped_.end()) kind = skipped_.insert(skipped_.end(), {.why = why, .count = 0, .names = {}});
    if (kind->count++ < kNamesInANote) kind->names += (kind->names.empty() ? "" : ", ") + quoted(name);
  }

  void note(const Info& info) {
    for (const Skipped& kind : skipped_) {
      std::string names = kind.names;
      if (kind.count > kNamesInANote) names += fmt::format(" and {} more", kind.count - kNamesInANote);
      checkpoint_.notes.push_back(
          fmt::format("left out, as Ballast has no dtype for {}: {}", kind.why, names));
    }
    const std::uint64_t constants = info.constants.tensors;
    if (constants > 0)
      checkpoint_.notes.push_back(
          constants == 1 ? "1 of the tensors is the value of a Constant node"
                         : fmt::format("{} of the tensors are values of Constant nodes", constants));
    if (sparse_ > 0)
      checkpoint_.notes.push_back(
          fmt::format("{} sparse tensor{} read as dense", sparse_, sparse_ == 1 ? " is" : "s are"));
  }

  const ByteSource& source_;
  double expansion_;
  ExternalFiles external_;
  Checkpoint checkpoint_;
  std::vector<Skipped> skipped_;
  std::uint64_t dense_ = 0;
  std::uint64_t sparse_ = 0;
};

}  // namespace

Checkpoint open_onnx(const ByteSource& source, double expansion) {
  return Collector(source, expansion).collect();
}

}  // namespace ballast::onnx_file
