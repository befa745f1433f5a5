// SPDX-License-Identifier: Apache-2.0
// files: what is looked at.
#include <algorithm>
#include <map>

#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {
namespace {

constexpr std::size_t kMostMetadata = 200;
constexpr std::size_t kLongestMetadata = 4096;  // bytes of one value
constexpr int kHeartbeatSeconds = 30;

Json dtypes_json(const std::vector<Row>& rows) {
  struct Sum {
    std::uint64_t tensors = 0;
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
  };
  std::map<ballast::DType, Sum> sums;
  for (const Row& row : rows) {
    Sum& sum = sums[row.dtype];
    sum.tensors += 1;
    if (!row.tied_to.empty()) continue;
    sum.parameters += row.parameters;
    sum.bytes += row.bytes;
  }
  Json list = Json::array();
  for (const auto& [dtype, sum] : sums) {
    list.push_back({{"dtype", ballast::info(dtype).code},
                    {"tensors", sum.tensors},
                    {"parameters", sum.parameters},
                    {"bytes", sum.bytes}});
  }
  return list;
}

bool holds_pickle(ballast::Format format) {
  using namespace ballast::formats;
  return format == torch_zip || format == torch_legacy || format == torchscript || format == pickle ||
         format == torch_tar;
}

// A scan that cannot be made is unknown: nobody has looked.
std::string verdict_of(Document& document) {
  try {
    return std::string(name(document.scan().verdict()));
  } catch (const ballast::Error&) {
    return "unknown";
  }
}

Json file_json(Document& document) {
  const ballast::Checkpoint& checkpoint = document.checkpoint();
  const Totals totals = totals_of(document.rows());
  Json metadata = Json::array();
  const ballast::Metadata all = checkpoint.metadata.value_or(ballast::Metadata());
  for (const auto& [key, value] : all) {
    if (metadata.size() == kMostMetadata) break;
    metadata.push_back({ballast::display(key), ballast::display(value, kLongestMetadata)});
  }
  Json notes = Json::array();
  for (const std::string& note : checkpoint.notes) notes.push_back(ballast::display(note, kLongestMetadata));
  return {{"name", ballast::display(document.path())},
          {"format", checkpoint.format.name()},
          {"bytes", document.file_bytes()},
          {"tensors", totals.tensors},
          {"parameters", totals.parameters},
          {"tensor_bytes", totals.bytes},
          {"dtypes", dtypes_json(document.rows())},
          {"metadata", metadata},
          {"metadata_total", all.size()},
          {"notes", notes},
          {"verdict", verdict_of(document)},
          {"has_objects", checkpoint.tree.has_value()},
          {"has_pickle", holds_pickle(checkpoint.format)},
          {"has_onnx", checkpoint.format == ballast::formats::onnx}};
}

}  // namespace

Response get_files(const Call& call) {
  Json files = Json::array();
  for (const auto& document : call.app.documents) files.push_back(file_json(*document));
  return json_response(
      {{"version", BALLAST_VERSION}, {"heartbeat_s", kHeartbeatSeconds}, {"files", std::move(files)}});
}

}  // namespace tool::view
