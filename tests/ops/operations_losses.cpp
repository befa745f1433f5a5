// SPDX-License-Identifier: Apache-2.0
// The operations of cases_losses.py and cases_boxes.py, called as a case says.
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

LossReduction reduction(const Json& a) {
  static const std::map<std::string, LossReduction> named = {{"mean", LossReduction::mean},
                                                             {"sum", LossReduction::sum},
                                                             {"none", LossReduction::none},
                                                             {"batchmean", LossReduction::batchmean}};
  return named.at(a["reduction"]);
}

// A loss of two tensors, and one number of a case where it has one.
template <class F>
Run pair(F function) {
  return [function](const Tensors& in, const Json& a) -> Tensors { return {function(in[0], in[1], a)}; };
}

Map of_numbers() {
  return {
      {"mse_loss",
       pair([](const Tensor& x, const Tensor& t, const Json& a) { return mse_loss(x, t, reduction(a)); })},
      {"l1_loss",
       pair([](const Tensor& x, const Tensor& t, const Json& a) { return l1_loss(x, t, reduction(a)); })},
      {"smooth_l1_loss", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return smooth_l1_loss(x, t, real(a, "beta"), reduction(a));
       })},
      {"huber_loss", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return huber_loss(x, t, real(a, "delta"), reduction(a));
       })},
      {"soft_margin_loss", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return soft_margin_loss(x, t, reduction(a));
       })},
      {"hinge_embedding_loss", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return hinge_embedding_loss(x, t, real(a, "margin"), reduction(a));
       })},
      {"poisson_nll_loss", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return poisson_nll_loss(
             x, t, {.log_input = flag(a, "log_input"), .full = flag(a, "full"), .reduction = reduction(a)});
       })},
      {"kl_div", pair([](const Tensor& x, const Tensor& t, const Json& a) {
         return kl_div(x, t, reduction(a), flag(a, "log_target"));
       })},
      {"binary_cross_entropy",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {binary_cross_entropy(in[0], in[1], {in[2], reduction(a)})};
       }},
      {"binary_cross_entropy_with_logits",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {binary_cross_entropy_with_logits(in[0], in[1], {in[2], in[3], reduction(a)})};
       }},
      {"gaussian_nll_loss", [](const Tensors& in, const Json& a) -> Tensors {
         return {
             gaussian_nll_loss(in[0], in[1], in[2], {.full = flag(a, "full"), .reduction = reduction(a)})};
       }}};
}

Map of_classes() {
  return {
      {"nll_loss",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {nll_loss(in[0], in[1], {in[2], integer(a, "ignore_index"), reduction(a)})};
       }},
      {"cross_entropy",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {cross_entropy(
             in[0], in[1], {in[2], integer(a, "ignore_index"), reduction(a), real(a, "label_smoothing")})};
       }},
      {"multi_margin_loss",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {multi_margin_loss(in[0], in[1], {integer(a, "p"), real(a, "margin"), in[2], reduction(a)})};
       }},
      {"multilabel_margin_loss",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {multilabel_margin_loss(in[0], in[1], reduction(a))};
       }},
      {"multilabel_soft_margin_loss",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {multilabel_soft_margin_loss(in[0], in[1], {in[2], reduction(a)})};
       }},
      {"ctc_loss", [](const Tensors& in, const Json& a) -> Tensors {
         return {ctc_loss(in[0], in[1], in[2], in[3],
                          {integer(a, "blank"), flag(a, "zero_infinity"), reduction(a)})};
       }}};
}

Map of_pairs() {
  return {{"cosine_embedding_loss",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {cosine_embedding_loss(in[0], in[1], in[2], real(a, "margin"), reduction(a))};
           }},
          {"margin_ranking_loss",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {margin_ranking_loss(in[0], in[1], in[2], real(a, "margin"), reduction(a))};
           }},
          {"triplet_margin_loss",
           [](const Tensors& in, const Json& a) -> Tensors {
             return {triplet_margin_loss(in[0], in[1], in[2],
                                         {.margin = real(a, "margin"),
                                          .p = real(a, "p"),
                                          .swap = flag(a, "swap"),
                                          .reduction = reduction(a)})};
           }},
          {"triplet_margin_with_distance_loss", [](const Tensors& in, const Json& a) -> Tensors {
             TripletDistanceArgs args{
                 .margin = real(a, "margin"), .swap = flag(a, "swap"), .reduction = reduction(a)};
             if (flag(a, "own"))
               args.distance = [](const Tensor& x, const Tensor& y) { return max(abs(sub(x, y)), -1); };
             return {triplet_margin_with_distance_loss(in[0], in[1], in[2], args)};
           }}};
}

Dims listed(const Json& a, const char* name) {
  return a.contains(name) ? dims_of(a[name]) : Dims{};
}

}  // namespace

std::map<std::string, Run> loss_operations() {
  Map all = of_numbers();
  for (Map part : {of_classes(), of_pairs()}) all.merge(part);
  return all;
}

std::map<std::string, Run> box_operations() {
  return {
      {"nms",
       [](const Tensors& in, const Json& a) -> Tensors { return {nms(in[0], in[1], real(a, "threshold"))}; }},
      {"batched_nms",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {batched_nms(in[0], in[1], in[2], real(a, "threshold"))};
       }},
      {"box_iou", [](const Tensors& in, const Json&) -> Tensors { return {box_iou(in[0], in[1])}; }},
      {"roi_align",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {roi_align(in[0], in[1],
                           {dims_of(a["output_size"]), real(a, "spatial_scale"), integer(a, "sampling_ratio"),
                            flag(a, "aligned")})};
       }},
      {"max_pool_with_indices",
       [](const Tensors& in, const Json& a) -> Tensors {
         const MaxPooled both = max_pool_with_indices(in[0], dims_of(a["kernel"]),
                                                      {.stride = dims_of(a["stride"]),
                                                       .padding = dims_of(a["padding"]),
                                                       .dilation = dims_of(a["dilation"]),
                                                       .ceil_mode = flag(a, "ceil")});
         return {both.values, both.indices};
       }},
      {"max_unpool",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {max_unpool(in[0], in[1], dims_of(a["kernel"]),
                            {dims_of(a["stride"]), dims_of(a["padding"]), listed(a, "output_size")})};
       }},
      {"lp_pool",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {lp_pool(in[0], real(a, "norm_type"), dims_of(a["kernel"]),
                         {dims_of(a["stride"]), flag(a, "ceil")})};
       }},
      {"conv_tbc",
       [](const Tensors& in, const Json& a) -> Tensors {
         return {conv_tbc(in[0], in[1], in[2], integer(a, "pad"))};
       }},
      {"pdist", [](const Tensors& in, const Json& a) -> Tensors { return {pdist(in[0], real(a, "p"))}; }},
      {"rrelu", [](const Tensors& in, const Json& a) -> Tensors {
         return {rrelu(in[0], real(a, "lower"), real(a, "upper"))};
       }}};
}

}  // namespace ballast::ops_tests
