// SPDX-License-Identifier: Apache-2.0
#include "json.h"

#include <cmath>

#include "output.h"

namespace tool {

std::string to_text(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

void write_document(Output& out, const Json& object) {
  out.write("{");
  bool first = true;
  for (const auto& [key, value] : object.items()) {
    out.print("{}{}:", first ? "" : ",\n ", to_text(key));
    first = false;
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      out.write(to_text(value));
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i)
      out.print("{}\n  {}", i == 0 ? "[" : ",", to_text(value[i]));
    out.write("]");
  }
  out.write("}\n");
}

Json error_object(std::string_view code, std::string_view where, std::string_view message) {
  return {{"schema", 1}, {"error", {{"code", code}, {"where", where}, {"message", message}}}};
}

Json shape_array(ballast::ShapeView shape) {
  Json array = Json::array();
  for (const std::int64_t dim : shape) array.push_back(dim);
  return array;
}

Json metadata_object(const ballast::Checkpoint& checkpoint) {
  Json object = Json::object();
  if (!checkpoint.metadata) return object;
  for (const auto& [key, value] : *checkpoint.metadata) object[key] = value;
  return object;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace tool
