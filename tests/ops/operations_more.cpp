// SPDX-License-Identifier: Apache-2.0
// The operations of cases_more.py, called as a case says.
#include "ops/cases.h"

namespace ballast::ops_tests {
namespace {

using Map = std::map<std::string, Run>;

double real(const Json& a, const char* name) {
  return number_of(a[name]);
}

bool flag(const Json& a, const char* name) {
  return a[name].get<bool>();
}

Map values() {
  return {
      {"remainder",
       [](const Tensors& in, const Json& a) -> Tensors {
         if (!a.contains("number")) return {remainder(in[0], in[1])};
         const Json& number = a["number"];
         return {remainder(in[0], number.is_number_integer() ? Operand(number.get<std::int64_t>())
                                                             : Operand(number.get<double>()))};
       }},
      {"atan2", [](const Tensors& in, const Json&) -> Tensors { return {atan2(in[0], in[1])}; }},
      {"log2", unary(log2)},
      {"isfinite", unary(isfinite)},
      {"tanhshrink", unary(tanhshrink)},
      {"celu", [](const Tensors& in, const Json& a) -> Tensors { return {celu(in[0], real(a, "alpha"))}; }},
      {"hardshrink",
       [](const Tensors& in, const Json& a) -> Tensors { return {hardshrink(in[0], real(a, "lam"))}; }},
      {"softshrink",
       [](const Tensors& in, const Json& a) -> Tensors { return {softshrink(in[0], real(a, "lam"))}; }},
      {"threshold",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {threshold(in[0], real(a, "threshold"), real(a, "value"))};
       }},
      {"glu", [](const Tensors& in, const Json& a) -> Tensors { return {glu(in[0], integer(a, "dim"))}; }},
      {"softmin",
       [](const Tensors& in, const Json& a) -> Tensors { return {softmin(in[0], integer(a, "dim"))}; }},
      {"lerp",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {lerp(in[0], in[1], a.contains("weight") ? Operand(real(a, "weight")) : Operand(in[2]))};
       }},
      {"isclose",
       [](const Tensors& in, const Json& a) -> Tensors {
         const double relative = real(a, "relative");
         const double absolute = real(a, "absolute");
         const Tensor close = isclose(in[0], in[1], relative, absolute, flag(a, "equal_nan"));
         const bool all_of_them = allclose(in[0], in[1], relative, absolute, flag(a, "equal_nan"));
         return all_of_them == all(close).item<bool>() ? Tensors{close} : Tensors{};
       }},
      {"normalize",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {normalize(in[0], real(a, "p"), integer(a, "dim"), real(a, "eps"))};
       }},
      {"cosine_similarity",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {cosine_similarity(in[0], in[1], integer(a, "dim"))};
       }},
      {"pairwise_distance",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {pairwise_distance(in[0], in[1], real(a, "p"), 1e-6, flag(a, "keepdim"))};
       }},
      {"local_response_norm", [](const Tensors& in, const Json& a) -> Tensors {
         return {
             local_response_norm(in[0], integer(a, "size"), real(a, "alpha"), real(a, "beta"), real(a, "k"))};
       }}};
}

Map choices() {
  return {
      {"cumprod",
       [](const Tensors& in, const Json& a) -> Tensors { return {cumprod(in[0], integer(a, "dim"))}; }},
      {"argsort",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {argsort(in[0], integer(a, "dim"), flag(a, "descending"))};
       }},
      {"scatter_add",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {scatter_add(in[0], integer(a, "dim"), in[1], in[2])};
       }},
      {"index_add",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {index_add(in[0], integer(a, "dim"), in[1], in[2])};
       }},
      {"nonzero", unary(nonzero)},
      {"masked_select",
       [](const Tensors& in, const Json&) -> Tensors { return {masked_select(in[0], in[1])}; }},
      {"unbind",
       [](const Tensors& in, const Json& a) -> Tensors { return unbind(in[0], integer(a, "dim")); }},
      {"meshgrid", [](const Tensors& in, const Json& a) -> Tensors { return meshgrid(in, flag(a, "xy")); }},
      {"diag",
       [](const Tensors& in, const Json& a) -> Tensors { return {diag(in[0], integer(a, "diagonal"))}; }},
      {"full_like",
       [](const Tensors& in, const Json& a) -> Tensors {
         const double value = real(a, "value");
         if (value == 0) return {zeros_like(in[0])};
         return {value == 1 ? ones_like(in[0]) : full_like(in[0], value)};
       }},
      {"unflatten",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {unflatten(in[0], integer(a, "dim"), dims_of(a["sizes"]))};
       }},
      {"channel_shuffle", [](const Tensors& in, const Json& a) -> Tensors {
         return {channel_shuffle(in[0], integer(a, "groups"))};
       }}};
}

UnfoldArgs unfold_args(const Json& a) {
  return {
      .dilation = dims_of(a["dilation"]), .padding = dims_of(a["padding"]), .stride = dims_of(a["stride"])};
}

Map patches() {
  return {
      {"unfold",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {unfold(in[0], dims_of(a["kernel"]), unfold_args(a))};
       }},
      {"fold",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {fold(in[0], dims_of(a["output"]), dims_of(a["kernel"]), unfold_args(a))};
       }},
      {"embedding_bag",
       [](const Tensors& in, const Json& a) -> Tensors {
         EmbeddingBagArgs args{.offsets = in[2],
                               .mode = a["mode"] == "sum"    ? BagMode::sum
                                       : a["mode"] == "mean" ? BagMode::mean
                                                             : BagMode::max,
                               .per_sample_weights = in[3],
                               .include_last_offset = flag(a, "last")};
         if (a.contains("padding_idx")) args.padding_idx = integer(a, "padding_idx");
         return {embedding_bag(in[0], in[1], args)};
       }},
      {"einsum",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {einsum(a["equation"].get<std::string>(), in)};
       }},
      {"rotary_embedding",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {rotary_embedding(in[0], {in[1], in[2]},
                                  flag(a, "interleaved") ? RotaryPairs::interleaved : RotaryPairs::halves)};
       }},
      {"rotary_tables",
       [](const Tensors&, const Json& a) -> Tensors {
         const RotaryTables tables = rotary_tables(integer(a, "length"), integer(a, "features"),
                                                   real(a, "base"), integer(a, "first"));
         return {tables.cos, tables.sin};
       }},
      {"grid_sample",
       [](const Tensors& in, const Json& a) -> Tensors {
         const GridMode mode = a["mode"] == "nearest"   ? GridMode::nearest
                               : a["mode"] == "bicubic" ? GridMode::cubic
                                                        : GridMode::linear;
         const GridPadding padding = a["padding"] == "zeros"    ? GridPadding::zeros
                                     : a["padding"] == "border" ? GridPadding::border
                                                                : GridPadding::reflection;
         return {grid_sample(in[0], in[1], {mode, padding, flag(a, "align")})};
       }},
      {"affine_grid", [](const Tensors& in, const Json& a) -> Tensors {
         return {affine_grid(in[0], dims_of(a["size"]), flag(a, "align"))};
       }}};
}

StftArgs stft_args(const Tensors& in, const Json& a) {
  return {.hop_length = integer(a, "hop"),
          .win_length = integer(a, "win"),
          .window = in[1],
          .center = flag(a, "center"),
          .normalized = flag(a, "normalized"),
          .onesided = !a.contains("onesided") || flag(a, "onesided")};
}

std::optional<std::int64_t> maybe(const Json& a, const char* name) {
  return a.contains(name) ? std::optional(integer(a, name)) : std::nullopt;
}

Map spectra() {
  return {
      {"fft", unary(fft)},
      {"ifft", unary(ifft)},
      {"rfft", unary(rfft)},
      {"irfft", [](const Tensors& in, const Json& a) -> Tensors { return {irfft(in[0], maybe(a, "n"))}; }},
      {"stft",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {stft(in[0], integer(a, "n_fft"), stft_args(in, a))};
       }},
      {"istft",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {istft(in[0], integer(a, "n_fft"), stft_args(in, a), maybe(a, "length"))};
       }},
      {"hann_window",
       [](const Tensors&, const Json& a) -> Tensors { return {hann_window(integer(a, "length"))}; }}};
}

}  // namespace

std::map<std::string, Run> more_operations() {
  Map all = values();
  for (Map part : {choices(), patches(), spectra()}) all.merge(part);
  return all;
}

}  // namespace ballast::ops_tests
