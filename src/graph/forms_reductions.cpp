// SPDX-License-Identifier: Apache-2.0
// Reductions, order, elements chosen by numbers.
#include "base/fail.h"
#include "graph/forms.h"
#include "ops/args.h"

namespace ballast::graph {
namespace {

std::optional<Forms> reduced(const Asked& asked, DType dtype) {
  const Dims& dims = asked.list("dims");
  const Shape& x = asked.shape(0);
  if (x.empty()) return std::nullopt;
  for (const std::int64_t size : x)
    if (size == 0) return std::nullopt;  // some refuse it
  std::vector<bool> gone(x.size(), dims.empty());
  for (const std::int64_t dim : dims) {
    const std::size_t axis = ops::axis_of(asked.op, dim, asked.inputs[0]);
    if (gone[axis]) return std::nullopt;  // refused
    gone[axis] = true;
  }
  Shape shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!gone[i])
      shape.push_back(x[i]);
    else if (asked.number("keepdim") != 0)
      shape.push_back(1);
  }
  return Forms{{dtype, shape}};
}

std::optional<Forms> sum(const Asked& asked) {
  return reduced(asked, is_floating(asked.dtype(0)) ? asked.dtype(0) : DType::i64);
}

std::optional<Forms> mean(const Asked& asked) {
  if (!is_floating(asked.dtype(0))) return std::nullopt;  // refused
  return reduced(asked, asked.dtype(0));
}

std::optional<Forms> extreme(const Asked& asked) {
  return reduced(asked, asked.dtype(0));
}

std::optional<Forms> truth(const Asked& asked) {
  return reduced(asked, DType::boolean);
}

std::optional<Forms> place(const Asked& asked) {
  return reduced(asked, DType::i64);
}

std::optional<Forms> cumsum(const Asked& asked) {
  static_cast<void>(ops::axis_of(asked.op, asked.number("dim"), asked.inputs[0]));
  return Forms{{is_floating(asked.dtype(0)) ? asked.dtype(0) : DType::i64, asked.shape(0)}};
}

std::optional<Forms> ordered(const Asked& asked) {
  Shape shape = asked.shape(0);
  if (shape.empty()) return std::nullopt;
  shape[ops::axis_of(asked.op, asked.number("dim"), asked.inputs[0])] = asked.number("count");
  return Forms{{asked.dtype(0), shape}, {DType::i64, shape}};
}

bool is_index(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32;
}

std::optional<Forms> embedding(const Asked& asked) {
  if (!is_index(asked.dtype(0)) || asked.shape(1).size() != 2) return std::nullopt;
  Shape shape = asked.shape(0);
  shape.push_back(asked.shape(1)[1]);
  return Forms{{asked.dtype(1), shape}};
}

std::optional<Forms> index_select(const Asked& asked) {
  const Shape& index = asked.shape(1);
  Shape shape = asked.shape(0);
  if (!is_index(asked.dtype(1)) || index.size() != 1 || shape.empty()) return std::nullopt;
  std::int64_t& size = shape[ops::axis_of(asked.op, asked.number("dim"), asked.inputs[0])];
  if (size == 0) return std::nullopt;  // there is nothing to choose from
  size = index[0];
  return Forms{{asked.dtype(0), shape}};
}

// Only where sizes are equal but for the dimension itself: the rest is the operation's to judge.
bool index_fits(const Asked& asked) {
  const Shape& x = asked.shape(0);
  const Shape& index = asked.shape(1);
  if (!is_index(asked.dtype(1)) || x.empty() || index.size() != x.size()) return false;
  const std::size_t axis = ops::axis_of(asked.op, asked.number("dim"), asked.inputs[0]);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i != axis && index[i] != x[i]) return false;
  return true;
}

std::optional<Forms> gather(const Asked& asked) {
  if (!index_fits(asked)) return std::nullopt;
  return Forms{{asked.dtype(0), asked.shape(1)}};
}

std::optional<Forms> scatter(const Asked& asked) {
  const Shape& source = asked.shape(2);
  if (!index_fits(asked) || !(source.empty() || source == asked.shape(1))) return std::nullopt;
  if (!source.empty() && asked.dtype(2) != asked.dtype(0)) return std::nullopt;
  return Forms{{asked.dtype(0), asked.shape(0)}};
}

std::optional<Forms> one_hot(const Asked& asked) {
  if (!is_index(asked.dtype(0)) || asked.number("classes") < 1) return std::nullopt;
  Shape shape = asked.shape(0);
  shape.push_back(asked.number("classes"));
  return Forms{{DType::i64, shape}};
}

}  // namespace

void add_reduction_forms(FormTable& table) {
  table.insert({{"sum", sum},
                {"prod", sum},
                {"mean", mean},
                {"var", mean},
                {"norm", mean},
                {"logsumexp", mean},
                {"max", extreme},
                {"min", extreme},
                {"any", truth},
                {"all", truth},
                {"argmax", place},
                {"argmin", place},
                {"cumsum", cumsum},
                {"sort", ordered},
                {"topk", ordered},
                {"embedding", embedding},
                {"index_select", index_select},
                {"gather", gather},
                {"scatter", scatter},
                {"one_hot", one_hot}});
}

}  // namespace ballast::graph
