// SPDX-License-Identifier: Apache-2.0
// Einstein's sums as permutations, products of matrices and sums.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/matmul.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "ops/made_of_others.h"

namespace ballast {
namespace {

using Labels = std::vector<int>;  // a letter for each dimension; those under "..." count down to -1, the last
constexpr const char* kEinsum = "einsum";

bool has_label(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::size_t place_of_label(const Labels& labels, int label) {
  return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
}

struct Term {
  Tensor value;
  Labels labels;

  [[nodiscard]] std::int64_t size(int label) const { return value.shape()[place_of_label(labels, label)]; }
};

// `dots`: how many dimensions "..." stands for.
Labels read_labels(std::string_view text, std::int64_t dots) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(c);
    } else if (text.substr(i, 3) == "..." && text.rfind("...") == i) {
      for (std::int64_t k = -dots; k < 0; ++k) labels.push_back(static_cast<int>(k));
      i += 2;
    } else {
      fail(Errc::invalid_argument, kEinsum, R"("{}": letters and one "..." are wanted)", text);
    }
  }
  return labels;
}

// A label that stands twice: the elements where both numbers are the same.
void take_diagonals(Term& term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const auto twin = std::find(term.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, term.labels.end(),
                                term.labels[i]);
    if (twin == term.labels.end()) continue;
    const auto j = static_cast<std::size_t>(twin - term.labels.begin());
    const Shape& shape = term.value.shape();
    if (shape[i] != shape[j])
      fail(Errc::shape_mismatch, kEinsum, "dimensions {} and {} of {} have one letter", i, j,
           ops::form(term.value));
    const std::int64_t n = shape[i];
    Dims order;
    Shape flat;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d == i || d == j) continue;
      order.push_back(static_cast<std::int64_t>(d));
      flat.push_back(shape[d]);
    }
    order.push_back(static_cast<std::int64_t>(i));
    order.push_back(static_cast<std::int64_t>(j));
    flat.push_back(n * n);
    const int label = term.labels[i];
    term.value = term.value.permute(order).reshape(flat).index({ellipsis, Slice{0, {}, n + 1}});
    term.labels.erase(twin);
    term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
    term.labels.push_back(label);
    return take_diagonals(term);
  }
}

void sum_labels_out(Term& term, const Labels& needed) {
  Dims gone;
  Labels kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has_label(needed, term.labels[i]))
      kept.push_back(term.labels[i]);
    else
      gone.push_back(static_cast<std::int64_t>(i));
  }
  if (gone.empty()) return;
  term.value = sum(term.value, gone);
  term.labels = kept;
}

Tensor in_label_order(const Term& term, const Labels& order) {
  if (order == term.labels) return term.value;
  Dims places;
  for (const int label : order)
    places.push_back(static_cast<std::int64_t>(place_of_label(term.labels, label)));
  return term.value.permute(places);
}

Labels joined_labels(std::initializer_list<Labels> parts) {
  Labels all;
  for (const Labels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::int64_t size_of_labels(const Term& term, const Labels& labels) {
  std::int64_t size = 1;
  for (const int label : labels) size *= term.size(label);
  return size;
}

Shape with_batch(bool batched, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  return batched ? Shape{batch, rows, columns} : Shape{rows, columns};
}

// The product of two terms, without the labels that nobody needs any more.
Term contracted(Term a, Term b, const Labels& needed) {
  sum_labels_out(a, joined_labels({needed, b.labels}));
  sum_labels_out(b, joined_labels({needed, a.labels}));
  Labels both;
  Labels summed;
  Labels of_a;
  Labels of_b;
  for (const int label : a.labels)
    (!has_label(b.labels, label) ? of_a : has_label(needed, label) ? both : summed).push_back(label);
  for (const int label : b.labels)
    if (!has_label(a.labels, label)) of_b.push_back(label);
  const Labels result = joined_labels({both, of_a, of_b});
  Shape shape;
  for (const int label : both) shape.push_back(a.size(label));
  for (const int label : of_a) shape.push_back(a.size(label));
  for (const int label : of_b) shape.push_back(b.size(label));
  const std::int64_t batch = size_of_labels(a, both);
  const std::int64_t rows = size_of_labels(a, of_a);
  const std::int64_t columns = size_of_labels(b, of_b);
  const std::int64_t inner = size_of_labels(a, summed);
  const bool batched = !both.empty();
  const Tensor x =
      in_label_order(a, joined_labels({both, of_a, summed})).reshape(with_batch(batched, batch, rows, inner));
  const Tensor y = in_label_order(b, joined_labels({both, summed, of_b}))
                       .reshape(with_batch(batched, batch, inner, columns));
  if (is_floating(x.dtype())) return {matmul(x, y).reshape(shape), result};
  // I64, which matmul does not compute: every product, then their sums.
  const Tensor products = mul(x.unsqueeze(-1), y.unsqueeze(-3));
  return {sum(products, -2).reshape(shape), result};
}

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  bool has_output = false;
};

Equation parsed_equation(std::string_view text, std::size_t operands) {
  std::string clean;
  for (const char c : text)
    if (c != ' ') clean += c;
  Equation equation;
  const std::size_t arrow = clean.find("->");
  equation.has_output = arrow != std::string::npos;
  if (equation.has_output) equation.output = clean.substr(arrow + 2);
  std::string left = clean.substr(0, arrow) + ",";
  for (std::size_t begin = 0, comma = 0; (comma = left.find(',', begin)) != std::string::npos;
       begin = comma + 1)
    equation.inputs.push_back(left.substr(begin, comma - begin));
  if (equation.inputs.size() != operands)
    fail(Errc::invalid_argument, kEinsum, "\"{}\" has {} operands, {} are given", text,
         equation.inputs.size(), operands);
  return equation;
}

// What stays when the equation does not say: "..." and then the letters that stand once, in their order.
Labels labels_that_stay(const std::vector<std::string>& inputs, std::int64_t dots) {
  std::map<int, int> count;
  for (const std::string& input : inputs)
    for (const int label : read_labels(input, 0)) ++count[label];
  Labels stay = read_labels("...", dots);
  for (const auto& [label, times] : count)
    if (times == 1) stay.push_back(label);
  return stay;
}

std::int64_t dots_of(const std::string& input, const Tensor& value) {
  const bool has_dots = input.find("...") != std::string::npos;
  const auto letters = static_cast<std::int64_t>(input.size()) - (has_dots ? 3 : 0);
  const std::int64_t rest = static_cast<std::int64_t>(value.rank()) - letters;
  if (rest < 0 || (rest > 0 && !has_dots))
    fail(Errc::shape_mismatch, kEinsum, "\"{}\" for {}", input, ops::form(value));
  return rest;
}

// Every dimension with the size its label has elsewhere: 1 is spread.
void spread_sizes(std::vector<Term>& terms) {
  std::map<int, std::int64_t> sizes;
  for (const Term& term : terms) {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      std::int64_t& known = sizes.try_emplace(term.labels[i], 1).first->second;
      const std::int64_t own = term.value.shape()[i];
      if (known != 1 && own != 1 && own != known)
        fail(Errc::shape_mismatch, kEinsum, "dimension {} of {} is {} elsewhere", i, ops::form(term.value),
             known);
      known = known == 1 ? own : known;
    }
  }
  for (Term& term : terms) {
    Shape shape;
    for (const int label : term.labels) shape.push_back(sizes.at(label));
    if (!(shape == term.value.shape())) term.value = term.value.expand(shape);
  }
}

Labels checked_output(const Labels& output, const std::vector<Term>& terms) {
  for (std::size_t i = 0; i < output.size(); ++i) {
    const bool known = std::any_of(terms.begin(), terms.end(),
                                   [&](const Term& term) { return has_label(term.labels, output[i]); });
    if (!known || place_of_label(output, output[i]) != i)
      fail(Errc::invalid_argument, kEinsum, "the output names a letter {}",
           known ? "twice" : "no operand has");
  }
  return output;
}

Tensor einsum_of(const Equation& equation, std::span<const Tensor> operands, DType dtype) {
  std::vector<Term> terms;
  std::int64_t dots = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::int64_t own = dots_of(equation.inputs[i], operands[i]);
    dots = std::max(dots, own);
    terms.push_back({operands[i].to(dtype), read_labels(equation.inputs[i], own)});
    take_diagonals(terms.back());
  }
  spread_sizes(terms);
  const Labels output = equation.has_output ? checked_output(read_labels(equation.output, dots), terms)
                                            : labels_that_stay(equation.inputs, dots);
  Term result = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) {
    Labels needed = output;
    for (std::size_t k = i + 1; k < terms.size(); ++k) needed = joined_labels({needed, terms[k].labels});
    result = contracted(result, terms[i], needed);
  }
  sum_labels_out(result, output);
  return in_label_order(result, output).contiguous();
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  if (operands.empty()) fail(Errc::invalid_argument, kEinsum, "no operands");
  const DType dtype = operands[0].dtype();
  if (!is_floating(dtype) && dtype != DType::i64)
    fail(Errc::bad_dtype, kEinsum, "{}: floating dtypes and I64 are summed", ops::form(operands[0]));
  for (const Tensor& operand : operands)
    if (operand.dtype() != dtype)
      fail(Errc::bad_dtype, kEinsum, "{} and {} do not have one dtype", ops::form(operands[0]),
           ops::form(operand));
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  const Tensor result =
      einsum_of(parsed_equation(equation, operands.size()), operands, half ? DType::f32 : dtype);
  return half ? result.to(dtype) : result;
}

}  // namespace ballast
