// SPDX-License-Identifier: Apache-2.0
// files/F/t/N: what a tensor is and where it lies.
#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {

Response get_tensor(const Call& call) {
  Document& document = call.document();
  const std::size_t number = call.tensor_number();
  const ballast::Tensor tensor = call.tensor();
  const Row& row = document.rows()[number];
  Json offset = nullptr;
  Json file = nullptr;
  if (tensor.has_data()) {
    if (const auto span = tensor.storage()->source_span()) {
      const ballast::SourceSpan place = innermost(*span);
      offset = place.offset + tensor.bit_offset() / 8;
      if (document.checkpoint().format == ballast::formats::sharded)
        file = ballast::display(place.source->name().substr(place.source->name().find_last_of('/') + 1));
    }
  }
  Json note = nullptr;
  if (!tensor.has_data())
    note = "shape only: no data in the file";
  else if (offset.is_null())
    note = "its bytes are compressed, encrypted or computed when they are read";
  return json_response({{"n", number},
                        {"name", ballast::display(row.name)},
                        {"dtype", ballast::info(row.dtype).code},
                        {"shape", shape_array(row.shape)},
                        {"strides", shape_array(tensor.strides())},
                        {"parameters", row.parameters},
                        {"bytes", row.bytes},
                        {"offset", offset},
                        {"file", file},
                        {"tied", document.tied(number, 1000)},
                        {"note", note},
                        {"layout", tensor.is_contiguous() ? "contiguous" : "strided"}});
}

}  // namespace tool::view
