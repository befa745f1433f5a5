// SPDX-License-Identifier: Apache-2.0
// Reductions, order, elements chosen by numbers.
#include "base/fail.h"
#include "ops/args.h"
#include "ops/forms.h"

namespace ballast::ops::forms {
namespace {

std::optional<Forms> reduced(const OperationCall& call, DType dtype) {
  const Dims& dims = call.list("dims");
  const Shape& x = call.shape(0);
  if (x.empty()) return std::nullopt;
  for (const std::int64_t size : x)
    if (size == 0) return std::nullopt;  // some refuse it
  std::vector<bool> gone(x.size(), dims.empty());
  for (const std::int64_t dim : dims) {
    const std::size_t axis = axis_of(call.name(), dim, call.inputs[0]);
    if (gone[axis]) return std::nullopt;  // refused
    gone[axis] = true;
  }
  Shape shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!gone[i])
      shape.push_back(x[i]);
    else if (call.number("keepdim") != 0)
      shape.push_back(1);
  }
  return Forms{{dtype, shape}};
}

bool is_index(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32;
}

// Only where sizes are equal but for the dimension itself: the rest is the operation's to judge.
bool index_fits(const OperationCall& call) {
  const Shape& x = call.shape(0);
  const Shape& index = call.shape(1);
  if (!is_index(call.dtype(1)) || x.empty() || index.size() != x.size()) return false;
  const std::size_t axis = axis_of(call.name(), call.number("dim"), call.inputs[0]);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i != axis && index[i] != x[i]) return false;
  return true;
}

}  // namespace

std::optional<Forms> sum(const OperationCall& call) {
  return reduced(call, is_floating(call.dtype(0)) ? call.dtype(0) : DType::i64);
}

std::optional<Forms> mean(const OperationCall& call) {
  if (!is_floating(call.dtype(0))) return std::nullopt;  // refused
  return reduced(call, call.dtype(0));
}

std::optional<Forms> extreme(const OperationCall& call) {
  return reduced(call, call.dtype(0));
}

std::optional<Forms> truth(const OperationCall& call) {
  return reduced(call, DType::boolean);
}

std::optional<Forms> place(const OperationCall& call) {
  return reduced(call, DType::i64);
}

std::optional<Forms> cumsum(const OperationCall& call) {
  static_cast<void>(axis_of(call.name(), call.number("dim"), call.inputs[0]));
  return Forms{{is_floating(call.dtype(0)) ? call.dtype(0) : DType::i64, call.shape(0)}};
}

std::optional<Forms> ordered(const OperationCall& call) {
  Shape shape = call.shape(0);
  if (shape.empty()) return std::nullopt;
  shape[axis_of(call.name(), call.number("dim"), call.inputs[0])] = call.number("count");
  return Forms{{call.dtype(0), shape}, {DType::i64, shape}};
}

std::optional<Forms> embedding(const OperationCall& call) {
  if (!is_index(call.dtype(0)) || call.shape(1).size() != 2) return std::nullopt;
  Shape shape = call.shape(0);
  shape.push_back(call.shape(1)[1]);
  return Forms{{call.dtype(1), shape}};
}

std::optional<Forms> index_select(const OperationCall& call) {
  const Shape& index = call.shape(1);
  Shape shape = call.shape(0);
  if (!is_index(call.dtype(1)) || index.size() != 1 || shape.empty()) return std::nullopt;
  std::int64_t& size = shape[axis_of(call.name(), call.number("dim"), call.inputs[0])];
  if (size == 0) return std::nullopt;  // there is nothing to choose from
  size = index[0];
  return Forms{{call.dtype(0), shape}};
}

std::optional<Forms> gather(const OperationCall& call) {
  if (!index_fits(call)) return std::nullopt;
  return Forms{{call.dtype(0), call.shape(1)}};
}

std::optional<Forms> scatter(const OperationCall& call) {
  const Shape& source = call.shape(2);
  if (!index_fits(call) || !(source.empty() || source == call.shape(1))) return std::nullopt;
  if (!source.empty() && call.dtype(2) != call.dtype(0)) return std::nullopt;
  return Forms{{call.dtype(0), call.shape(0)}};
}

std::optional<Forms> scatter_add(const OperationCall& call) {
  const DType dtype = call.dtype(0);
  const bool computable = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16 ||
                          dtype == DType::f64 || dtype == DType::i64 || dtype == DType::i32;
  if (!computable || call.shape(2).empty()) return std::nullopt;
  return scatter(call);
}

std::optional<Forms> one_hot(const OperationCall& call) {
  if (!is_index(call.dtype(0)) || call.number("classes") < 1) return std::nullopt;
  Shape shape = call.shape(0);
  shape.push_back(call.number("classes"));
  return Forms{{DType::i64, shape}};
}

}  // namespace ballast::ops::forms
