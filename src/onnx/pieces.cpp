// SPDX-License-Identifier: Apache-2.0
// What translations are made of: constants, sizes computed from shapes, operators whose form changed.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "onnx/lowering.h"

namespace ballast::onnx {

std::string Lowering::constant(const Tensor& tensor) {
  if (tensor.numel() > 16) return initializer(place_.empty() ? "constant" : place_ + "/constant", tensor);
  // Small ones are shared.
  const Tensor dense = tensor.contiguous();
  std::string key = fmt::format("constant {} {} ", info(dense.dtype()).code, fmt::join(dense.shape(), ","));
  if (dense.numel() > 0)
    key.append(reinterpret_cast<const char*>(dense.data()), static_cast<std::size_t>(dense.size_bytes()));
  return shared(key, [&] { return initializer("constant", dense.clone()); });
}

std::string Lowering::ints(const Dims& numbers) {
  return constant(Tensor::from(std::span<const std::int64_t>(numbers.data(), numbers.size()),
                               {static_cast<std::int64_t>(numbers.size())}));
}

std::string Lowering::scalar(std::int64_t number) {
  return constant(Tensor::from({number}, {}));
}

std::string Lowering::real(double number, DType dtype) {
  return constant(Tensor::from({number}, {}).to(dtype));
}

std::string Lowering::reals(const std::vector<float>& numbers) {
  return constant(Tensor::from(std::span<const float>(numbers), {static_cast<std::int64_t>(numbers.size())}));
}

std::string Lowering::cast(const std::string& name, DType from, DType to) {
  if (from == to || name.empty()) return name;
  if (opset() < 13 && (from == DType::bf16 || to == DType::bf16)) {
    if (to == DType::f32 && from == DType::bf16) return name;  // stored as F32
    refuse("BF16 needs opset 13");
  }
  return shared(fmt::format("cast {} {}", name, info(to).code), [&] {
    return node("Cast", {name}, {{"to", std::int64_t{onnx_dtype(to).value_or(0)}}});
  });
}

std::string Lowering::dim(const SizeExpr::Dim& one) {
  return shared(fmt::format("dim {} {}", one.value, one.axis), [&] {
    const std::string source = name_of(one.value);
    const std::string shape = shared("shape " + source, [&] { return node("Shape", {source}); });
    return node("Gather", {shape, ints({one.axis})}, {{"axis", std::int64_t{0}}});
  });
}

std::string Lowering::term(const SizeExpr::Term& one) {
  std::string product = one.factor == 1 ? std::string() : ints({one.factor});
  const auto multiply = [&](const std::string& next) {
    product = product.empty() ? next : shared(fmt::format("mul {} {}", product, next), [&] {
      return node("Mul", {product, next});
    });
  };
  for (const SizeExpr::Dim& one_dim : one.dims) multiply(dim(one_dim));
  for (const SizeExpr& part : one.rounded) multiply(size(part));
  return product;
}

// ONNX divides towards zero: what may be negative is made a multiple first.
std::string Lowering::quotient(const std::string& sum, const SizeExpr& expr) {
  const std::string by = ints({expr.divisor});
  const bool positive =
      expr.constant >= 0 && std::all_of(expr.terms.begin(), expr.terms.end(),
                                        [](const SizeExpr::Term& one) { return one.factor >= 0; });
  return shared("div " + sum + " " + by, [&] {
    const std::string whole = positive ? sum : node("Sub", {sum, node("Mod", {sum, by})});
    return node("Div", {whole, by});
  });
}

std::string Lowering::size(const SizeExpr& expr) {
  if (expr.is_constant()) return ints({expr.constant});
  std::string sum;
  for (const SizeExpr::Term& one : expr.terms) {
    const std::string product = term(one);
    sum = sum.empty() ? product : shared(fmt::format("add {} {}", sum, product), [&] {
      return node("Add", {sum, product});
    });
  }
  if (expr.constant != 0) {
    const std::string more = ints({expr.constant});
    sum = shared("add " + sum + " " + more, [&] { return node("Add", {sum, more}); });
  }
  return expr.divisor == 1 ? sum : quotient(sum, expr);
}

std::string Lowering::size_scalar(const SizeExpr& expr) {
  if (expr.is_constant()) return scalar(expr.constant);
  const std::string one = size(expr);
  return shared("scalar " + one, [&] { return squeeze(one, {0}); });
}

std::string Lowering::sizes(const std::vector<SizeExpr>& all) {
  std::vector<std::string> parts;
  Dims run;  // of constants
  bool constant_only = true;
  const auto flush = [&] {
    if (run.empty()) return;
    parts.push_back(ints(run));
    run = {};
  };
  for (const SizeExpr& one : all) {
    if (one.is_constant()) {
      run.push_back(one.constant);
      continue;
    }
    constant_only = false;
    flush();
    parts.push_back(size(one));
  }
  if (constant_only) return ints(run);
  flush();
  if (parts.size() == 1) return parts[0];
  std::string key = "sizes";
  for (const std::string& part : parts) key += " " + part;
  return shared(key, [&] { return node("Concat", parts, {{"axis", std::int64_t{0}}}); });
}

std::string Lowering::shape_of(std::int64_t id) {
  const GraphValue& one = value(id);
  bool fixed = true;
  for (const SizeExpr& expr : one.sizes) fixed = fixed && expr.is_constant();
  if (fixed) return ints(one.shape);
  const std::string source = name_of(id);
  return shared("shape " + source, [&] { return node("Shape", {source}); });
}

std::string Lowering::unsqueeze(const std::string& x, const Dims& axes) {
  if (opset() >= 13) return node("Unsqueeze", {x, ints(axes)});
  return node("Unsqueeze", {x}, {{"axes", axes}});
}

std::string Lowering::squeeze(const std::string& x, const Dims& axes) {
  if (opset() >= 13) return node("Squeeze", {x, ints(axes)});
  return node("Squeeze", {x}, {{"axes", axes}});
}

std::string Lowering::reduce(const std::string& op, const std::string& x, const Dims& axes, bool keepdims) {
  Attributes attributes = {{"keepdims", std::int64_t{keepdims}}};
  if (axes.empty()) return node(op, {x}, std::move(attributes));
  if (op == "ReduceSum" && opset() >= 13) return node(op, {x, ints(axes)}, std::move(attributes));
  attributes.push_back({"axes", axes});
  return node(op, {x}, std::move(attributes));
}

std::string Lowering::slice(const std::string& x, const std::string& starts, const std::string& ends,
                            const std::string& axes, const std::string& steps) {
  return node("Slice", {x, starts, ends, axes, steps});
}

std::string Lowering::slice(const std::string& x, std::int64_t axis, std::int64_t start, std::int64_t end) {
  return slice(x, ints({start}), ints({end}), ints({axis}));
}

std::string Lowering::reshape(const std::string& x, const Dims& shape) {
  return node("Reshape", {x, ints(shape)});
}

}  // namespace ballast::onnx
