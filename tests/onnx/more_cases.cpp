// SPDX-License-Identifier: Apache-2.0
// Operations made of others, angles, spectra, grids, cells.
#include "ballast/nn.h"
#include "onnx/operations.h"

namespace onnx_cases {
namespace {

using namespace ballast;

// What opsets below have no operator for.
void only_from_16(std::vector<Case>& cases) {
  cases.back().opsets = {16, 17};
  cases.back().all_opsets = false;
}

void add_values(std::vector<Case>& cases) {
  add_case(
      cases, "remainder", {{{"x", {"n", 3}}, -5, 5}, {{"y", {"n", 3}}, 0.5, 2}},
      [](auto in) {
        return Tensors{remainder(in[0], in[1]), remainder(in[0], neg(in[1])), remainder(in[0], 2)};
      },
      kTwo);
  add_case(
      cases, "remainder_integers", {{{"x", {"n", 3}, DType::i64}, -9, 9}},
      [](auto in) {
        return Tensors{remainder(in[0], 4), remainder(in[0], -3)};
      },
      kTwo);
  add_case(
      cases, "angles", {{{"y", {"n", 7}}, -2, 2}, {{"x", {"n", 7}}, -2, 2}},
      [](auto in) { return Tensors{atan2(in[0], in[1])}; }, kTwo);
  one(cases, "made_of_others", [](auto in) {
    return Tensors{glu(concat({in[0], in[0]}, 1), 1),
                   normalize(in[0]),
                   cosine_similarity(in[0], flip(in[0], {1}), 2),
                   lerp(in[0], neg(in[0]), 0.25),
                   celu(in[0], 0.5),
                   softshrink(in[0]),
                   hardshrink(in[0]),
                   local_response_norm(in[0], 3),
                   isfinite(in[0]),
                   threshold(in[0], 0.1, 2)};
  });
  one(cases, "more_made_of_others", [](auto in) {
    return Tensors{argsort(in[0], 1, true),
                   argsort(in[0], 2),
                   zeros_like(in[0]),
                   full_like(in[0], 3),
                   isclose(in[0], in[0] + 0.5, 0.5, 0.1),
                   pairwise_distance(in[0], neg(in[0])),
                   index_select(in[0], 1, argsort(in[0].index({0, Slice{}, 0}))),
                   unflatten(in[0], 2, {5, -1}),
                   tanhshrink(in[0]),
                   softmin(in[0], 1)};
  });
  one(cases, "cumprod", [](auto in) {
    return Tensors{cumprod(in[0], 0), cumprod(in[0], 1), cumprod(in[0], -1)};
  });
  one(cases, "einsum", [](auto in) {
    return Tensors{einsum("nij,nkj->nik", {in[0], in[0]}), einsum("nij->jn", {in[0]}),
                   einsum("...j,kj->...k", {in[0], linspace(0, 1, 10).reshape({2, 5})}),
                   einsum("nij,nij->", {in[0], in[0]})};
  });
  one(cases, "unbind_meshgrid_diag", [](auto in) {
    Tensors all = unbind(in[0], 1);
    const Tensors lists = {all[0].index({0}), all[1].index({0})};
    for (const Tensor& grid : meshgrid(lists)) all.push_back(grid);
    all.push_back(diag(lists[0], 1));
    all.push_back(diag(in[0].index({0}), -1));
    return all;
  });
  add_case(cases, "rotary", {{{"x", {"n", 2, "length", 8}}, -2, 2}},
           [](auto in) {
             const RotaryTables tables = rotary_tables(in[0].shape()[2], 8);
             return Tensors{rotary_embedding(in[0], tables),
                            rotary_embedding(in[0], tables, RotaryPairs::interleaved)};
           },
           {{{"n", 1}, {"length", 4}}, {{"n", 2}, {"length", 7}}});
}

void add_choices(std::vector<Case>& cases) {
  add_case(
      cases, "scatter_add",
      {{{"x", {"n", 4}}, -2, 2}, {{"i", {"n", 6}, DType::i64}, 0, 4}, {{"s", {"n", 6}}, -2, 2}},
      [](auto in) { return Tensors{scatter_add(in[0], 1, in[1], in[2])}; }, kTwo);
  only_from_16(cases);
  add_case(cases, "unfold", {{{"x", {"n", 2, "h", 7}}, -2, 2}},
           [](auto in) {
             return Tensors{unfold(in[0], {3, 2}, {.padding = {1}, .stride = {1, 2}})};
           },
           {{{"n", 1}, {"h", 6}}, {{"n", 2}, {"h", 9}}});
  add_case(
      cases, "fold", {{{"x", {"n", 8, 9}}, -2, 2}},
      [](auto in) {
        return Tensors{fold(in[0], {5, 7}, {2, 2}, {.padding = {1, 0}, .stride = {2, 2}})};
      },
      kTwo);
  add_case(
      cases, "embedding_bag", {{{"i", {"n", 3}, DType::i64}, 0, 4}},
      [](auto in) {
        const Tensor weight = linspace(-1, 1, 20).reshape({4, 5});
        return Tensors{embedding_bag(in[0], weight), embedding_bag(in[0], weight, {.mode = BagMode::max}),
                       embedding_bag(in[0], weight, {.mode = BagMode::sum, .padding_idx = 1})};
      },
      kTwo);
}

void add_signals(std::vector<Case>& cases) {
  add_case(
      cases, "dft", {{{"x", {"n", 12}}, -2, 2}},
      [](auto in) {
        const Tensor spectrum = rfft(in[0]);
        return Tensors{spectrum, irfft(spectrum), fft(spectrum), ifft(spectrum)};
      },
      kTwo);
  add_case(cases, "stft", {{{"x", {"n", "length"}}, -2, 2}},
           [](auto in) {
             return Tensors{stft(in[0], 8, {.window = hann_window(8)}), stft(in[0], 6, {.center = false})};
           },
           {{{"n", 1}, {"length", 16}}, {{"n", 2}, {"length", 21}}});
  add_case(cases, "istft", {{{"x", {"n", "length"}}, -2, 2}},
           [](auto in) { return Tensors{istft(stft(in[0], 8, {.hop_length = 2}), 8, {.hop_length = 2})}; },
           {{{"n", 1}, {"length", 16}}, {{"n", 2}, {"length", 21}}});
  only_from_16(cases);
  add_case(
      cases, "grid_sample", {{{"x", {"n", 2, 5, 6}}, -2, 2}, {{"g", {"n", 3, 4, 2}}, -1.4, 1.4}},
      [](auto in) {
        return Tensors{grid_sample(in[0], in[1]),
                       grid_sample(in[0], in[1], {.padding = GridPadding::border, .align_corners = true}),
                       grid_sample(in[0], in[1], {GridMode::nearest, GridPadding::reflection})};
      },
      kTwo);
  only_from_16(cases);
  add_case(
      cases, "affine_grid", {{{"t", {"n", 2, 3}}, -1, 1}},
      [](auto in) {
        return Tensors{affine_grid(in[0], {in[0].shape()[0], 1, 3, 4}),
                       affine_grid(in[0], {in[0].shape()[0], 1, 3, 4}, true)};
      },
      kTwo);
}

struct Cells {
  nn::LSTMCell lstm{5, 4};
  nn::GRUCell gru{4, 3};
  nn::RNNCell rnn{3, 2};

  [[nodiscard]] Tensor forward(const Tensor& x) const {
    nn::LSTMState state;
    Tensor h;
    for (const Tensor& step : unbind(x, 1)) {
      state = lstm(step, state.hidden, state.cell);
      h = gru(state.hidden, h);
    }
    return rnn(h);
  }
};

struct Translator {
  nn::Transformer both{
      8, 2, {.num_encoder_layers = 1, .num_decoder_layers = 1, .dim_feedforward = 6, .batch_first = true}};

  [[nodiscard]] Tensor forward(const Tensor& source, const Tensor& target) const {
    return both.forward(source, target, {}, {.causal = true});
  }
};

template <class Model>
std::shared_ptr<Model> initialized() {
  auto model = std::make_shared<Model>();
  init(*model, 3);
  return model;
}

}  // namespace

void add_more_cases(std::vector<Case>& cases) {
  add_values(cases);
  add_choices(cases);
  add_signals(cases);
  cases.push_back(model_case("cells", initialized<Cells>(), {kX}, kTwo));
  cases.push_back(model_case("translator", initialized<Translator>(),
                             {{{"source", {"n", "s", 8}}, -2, 2}, {{"target", {"n", "t", 8}}, -2, 2}},
                             {{{"n", 1}, {"s", 3}, {"t", 2}}, {{"n", 2}, {"s", 5}, {"t", 4}}}));
}

}  // namespace onnx_cases
