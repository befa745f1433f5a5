// SPDX-License-Identifier: Apache-2.0
#include "tensor/view_operations.h"

namespace ballast {
namespace {

using Forms = std::vector<Tensor>;

std::optional<Forms> form_of_reshape(const OperationCall& call) {
  return Forms{Tensor(call.dtype(0), call.shape(0)).reshape(call.list("shape"))};
}

std::optional<Forms> form_of_clone(const OperationCall& call) {
  return Forms{{call.dtype(0), call.shape(0)}};
}

std::optional<Forms> form_of_cast(const OperationCall& call) {
  const auto dtype = dtype_from_code(call.text("dtype"));
  if (!dtype) return std::nullopt;
  return Forms{{*dtype, call.shape(0)}};
}

constexpr Operation view(const char* name, std::array<const char*, 8> attributes, FormRule form = nullptr) {
  return {
      .name = name, .inputs = {"x"}, .attributes = attributes, .form = form, .kind = Operation::Kind::views};
}

}  // namespace

// Those without a form cost nothing to run.
namespace operations {

constinit const Operation permute = view("permute", {"order"});
constinit const Operation narrow = view("narrow", {"dim", "start", "length"});
constinit const Operation unsqueeze = view("unsqueeze", {"dim"});
constinit const Operation squeeze = view("squeeze", {"dim"});
constinit const Operation expand = view("expand", {"shape"});
constinit const Operation reshape = view("reshape", {"shape"}, form_of_reshape);
constinit const Operation slice = view("slice", {"dim", "start", "stop", "step"});
constinit const Operation select = view("select", {"dim", "index"});
constinit const Operation clone = view("clone", {}, form_of_clone);
constinit const Operation cast = view("cast", {"dtype"}, form_of_cast);

}  // namespace operations
}  // namespace ballast
