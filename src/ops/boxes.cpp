// SPDX-License-Identifier: Apache-2.0
// Boxes that overlap, and what an image has inside of boxes.
#include "ballast/detail/ops/boxes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "ballast/detail/ops/create.h"
#include "ballast/detail/ops/elementwise.h"
#include "ballast/detail/ops/movement.h"
#include "ballast/detail/ops/reduce.h"
#include "ops/args.h"
#include "ops/counting.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "ops/rows.h"

namespace ballast {
namespace {

void require_boxes(const char* op, const Tensor& boxes, std::int64_t numbers) {
  ops::require_computable(op, boxes);
  if (boxes.rank() != 2 || boxes.shape()[1] != numbers || !is_floating(boxes.dtype()))
    fail(Errc::shape_mismatch, op, "boxes are {}, must be floating [count, {}]", ops::form(boxes), numbers);
}

// Rounded as torchvision does, in the boxes' own precision: a share that is the threshold stays.
template <class T>
bool overlaps(const T* a, const T* b, double threshold) {
  const T width = std::max(T{0}, std::min(a[2], b[2]) - std::max(a[0], b[0]));
  const T height = std::max(T{0}, std::min(a[3], b[3]) - std::max(a[1], b[1]));
  const T both = width * height;
  const T areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);
  return static_cast<double>(both / (areas - both)) > threshold;
}

template <class T>
std::vector<std::int64_t> kept_boxes(std::span<const T> boxes, std::span<const std::int64_t> order,
                                     std::span<const std::int64_t> kinds, double threshold) {
  std::vector<bool> gone(order.size());
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (gone[i]) continue;
    const auto one = static_cast<std::size_t>(order[i]);
    kept.push_back(order[i]);
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const auto other = static_cast<std::size_t>(order[j]);
      if (gone[j] || (!kinds.empty() && kinds[one] != kinds[other])) continue;
      gone[j] = overlaps(&boxes[one * 4], &boxes[other * 4], threshold);
    }
  }
  return kept;
}

void require_scored(const char* op, const Tensor& boxes, const Tensor& scores, const Tensor& kinds) {
  require_boxes(op, boxes, 4);
  ops::require_computable(op, scores);
  if (scores.rank() != 1 || scores.shape()[0] != boxes.shape()[0] ||
      (kinds.defined() && !(kinds.shape() == scores.shape())))
    fail(Errc::shape_mismatch, op, "boxes {} with scores {}{}", ops::form(boxes), ops::form(scores),
         kinds.defined() ? " and kinds " + ops::form(kinds) : "");
  if (!kinds.defined()) return;
  ops::require_computable(op, kinds);
  if (is_floating(kinds.dtype()) || kinds.dtype() == DType::boolean)
    fail(Errc::bad_dtype, op, "kinds must be integers, not {}", ops::form(kinds));
}

Tensor nms_cpu(const Operation& row, const Tensor& boxes, const Tensor& scores, const Tensor& kinds,
               double threshold) {
  const char* op = kinds.defined() ? "batched_nms" : row.name;
  require_scored(op, boxes, scores, kinds);
  if (boxes.numel() == 0) return Tensor::empty(DType::i64, {0});
  const Tensor order = argsort(scores, 0, true);
  const Tensor numbers = kinds.defined() ? ops::dense_indices(op, kinds) : Tensor();
  const auto of_kind = kinds.defined() ? numbers.span<std::int64_t>() : std::span<const std::int64_t>();
  const Tensor corners = ops::dense(boxes.to(ops::compute_dtype(boxes.dtype())));
  const auto ranked = order.span<std::int64_t>();
  const std::vector<std::int64_t> kept = corners.dtype() == DType::f64
                                             ? kept_boxes(corners.span<double>(), ranked, of_kind, threshold)
                                             : kept_boxes(corners.span<float>(), ranked, of_kind, threshold);
  return Tensor::from(kept, {static_cast<std::int64_t>(kept.size())});
}

// All of them, at most.
std::optional<ops::Forms> kept_form(const OperationCall& call) {
  require_scored(call.name(), call.inputs[0], call.inputs[1], call.has(2) ? call.inputs[2] : Tensor());
  return ops::Forms{{DType::i64, {call.shape(0)[0]}}};
}

// A box on an image, in T as torchvision computes.
template <class T>
struct Bins {
  std::array<T, 2> begin;               // y, x
  std::array<T, 2> size;                // of a bin
  std::array<std::int64_t, 2> samples;  // of a bin
};

template <class T>
Bins<T> bins_of(const char* op, const T* box, const Dims& output, double scale, std::int64_t ratio,
                bool aligned) {
  constexpr double kMostSamples = 1U << 30U;
  Bins<T> bins{};
  double all = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const T offset = aligned ? T(0.5) : T(0);
    const T low = box[i == 0 ? 2 : 1] * static_cast<T>(scale) - offset;
    const T high = box[i == 0 ? 4 : 3] * static_cast<T>(scale) - offset;
    T length = high - low;
    if (!std::isfinite(length))
      fail(Errc::invalid_argument, op, "a box from {} to {} is nowhere", static_cast<double>(low),
           static_cast<double>(high));
    if (!aligned) length = std::max(length, T(1));
    bins.begin[i] = low;
    bins.size[i] = length / static_cast<T>(output[i]);
    const double wanted =
        ratio > 0 ? static_cast<double>(ratio) : std::ceil(static_cast<double>(bins.size[i]));
    all *= std::max(wanted, 1.0);
    if (all > kMostSamples)
      fail(Errc::size_overflow, op, "a box of {} pixels is beyond all measure", static_cast<double>(length));
    bins.samples[i] = std::max<std::int64_t>(static_cast<std::int64_t>(wanted), 0);
  }
  return bins;
}

// The two pixels around a point and their shares; none for a point outside.
template <class T>
struct Between {
  std::array<std::int64_t, 2> at{};
  std::array<T, 2> share{};
};

template <class T>
Between<T> between(T place, std::int64_t size) {
  if (place < T(-1) || place > static_cast<T>(size)) return {};
  place = std::max(place, T(0));
  const auto low = static_cast<std::int64_t>(place);
  if (low >= size - 1) return {{size - 1, size - 1}, {T(1), T(0)}};
  return {{low, low + 1}, {T(1) - (place - static_cast<T>(low)), place - static_cast<T>(low)}};
}

template <class T>
T mean_of_bin(const T* image, std::int64_t height, std::int64_t width, const Bins<T>& bins, std::int64_t row,
              std::int64_t column) {
  const auto point = [&](std::size_t i, std::int64_t bin, std::int64_t sample) {
    return bins.begin[i] + static_cast<T>(bin) * bins.size[i] +
           (static_cast<T>(sample) + T(0.5)) * bins.size[i] / static_cast<T>(bins.samples[i]);
  };
  T total = 0;
  for (std::int64_t i = 0; i < bins.samples[0]; ++i) {
    const Between<T> y = between(point(0, row, i), height);
    for (std::int64_t j = 0; j < bins.samples[1]; ++j) {
      const Between<T> x = between(point(1, column, j), width);
      for (std::size_t k = 0; k < 2; ++k)
        for (std::size_t l = 0; l < 2; ++l) {
          const T share = y.share[k] * x.share[l];
          if (share != 0) total += share * image[y.at[k] * width + x.at[l]];
        }
    }
  }
  return total / static_cast<T>(std::max<std::int64_t>(bins.samples[0] * bins.samples[1], 1));
}

template <class T>
void align_boxes(const char* op, const Tensor& x, const Tensor& boxes, const Dims& output, double scale,
                 std::int64_t ratio, bool aligned, Tensor& out) {
  const std::int64_t channels = x.shape()[1];
  const std::int64_t height = x.shape()[2];
  const std::int64_t width = x.shape()[3];
  const std::int64_t count = boxes.shape()[0];
  const auto corners = boxes.span<T>();
  std::vector<Bins<T>> bins;
  std::vector<std::int64_t> images;
  for (std::int64_t i = 0; i < count; ++i) {
    const T* box = &corners[static_cast<std::size_t>(i) * 5];
    if (!(box[0] >= 0 && box[0] < static_cast<T>(x.shape()[0])))
      fail(Errc::offset_out_of_range, op, "a box of image {}, there are {}", static_cast<double>(box[0]),
           x.shape()[0]);
    images.push_back(static_cast<std::int64_t>(box[0]));
    bins.push_back(bins_of(op, box, output, scale, ratio, aligned));
  }
  const auto from = x.span<T>();
  T* to = reinterpret_cast<T*>(out.mutable_data());
  const std::int64_t places = output[0] * output[1];
  ops::parallel(
      count * channels, ops::rows_per_thread(places * 16), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const auto box = static_cast<std::size_t>(i / channels);
          const T* image =
              &from[static_cast<std::size_t>((images[box] * channels + i % channels) * height * width)];
          for (std::int64_t place = 0; place < places; ++place)
            to[i * places + place] =
                mean_of_bin(image, height, width, bins[box], place / output[1], place % output[1]);
        }
      });
}

Tensor roi_align_cpu(const Operation& op, const Tensor& x, const Tensor& boxes, const Dims& output_size,
                     double spatial_scale, std::int64_t sampling_ratio, bool aligned) {
  require_boxes(op.name, boxes, 5);
  ops::require_computable(op.name, x);
  if (x.rank() != 4 || x.dtype() != boxes.dtype() || !is_floating(x.dtype()))
    fail(Errc::shape_mismatch, op.name,
         "{} in boxes {}: [batch, channels, height, width] of one floating dtype", ops::form(x),
         ops::form(boxes));
  const Dims output = ops::spatial(op.name, "output_size", output_size, 2, 1);
  if (!std::isfinite(spatial_scale) || sampling_ratio > ops::kMostSpatial)
    fail(Errc::invalid_argument, op.name, "spatial_scale {}, sampling_ratio {}", spatial_scale,
         sampling_ratio);
  const DType wide = ops::compute_dtype(x.dtype());
  const Tensor in = ops::dense(x.to(wide));
  const Tensor corners = ops::dense(boxes.to(wide));
  Tensor out = ops::new_tensor(wide, {boxes.shape()[0], x.shape()[1], output[0], output[1]});
  if (out.numel() == 0) return out.to(x.dtype());
  if (x.numel() == 0) fail(Errc::shape_mismatch, op.name, "{} has no places", ops::form(x));
  const auto align = wide == DType::f64 ? align_boxes<double> : align_boxes<float>;
  align(op.name, in, corners, output, spatial_scale, sampling_ratio, aligned, out);
  return out.to(x.dtype());
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Tensor&, const Tensor&, const Tensor&, double)> nms = {
    about("nms", {"boxes", "scores", "kinds?"}, {"iou_threshold"}, kept_form), {nms_cpu}};
constinit const OperationOf<Tensor(const Tensor&, const Tensor&, const Dims&, double, std::int64_t, bool)>
    roi_align = {about("roi_align", {"x", "boxes"},
                       {"output_size", "spatial_scale", "sampling_ratio", "aligned"}, forms::roi_align),
                 {roi_align_cpu}};

}  // namespace operations

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  return run(operations::nms, boxes, scores, Tensor(), iou_threshold);
}

Tensor batched_nms(const Tensor& boxes, const Tensor& scores, const Tensor& kinds, double iou_threshold) {
  if (!kinds.defined()) fail(Errc::invalid_argument, "batched_nms", "the kinds are an undefined tensor");
  return run(operations::nms, boxes, scores, kinds, iou_threshold);
}

Tensor box_iou(const Tensor& a, const Tensor& b) {
  constexpr const char* kOp = "box_iou";
  require_boxes(kOp, a, 4);
  require_boxes(kOp, b, 4);
  const DType dtype = ops::promoted(kOp, a, b);
  const Tensor x = a.to(ops::compute_dtype(dtype));
  const Tensor y = b.to(ops::compute_dtype(dtype));
  const auto area = [](const Tensor& boxes) {
    return prod(sub(boxes.narrow(1, 2, 2), boxes.narrow(1, 0, 2)), 1);
  };
  const Tensor low = maximum(x.unsqueeze(1).narrow(2, 0, 2), y.narrow(1, 0, 2));
  const Tensor high = minimum(x.unsqueeze(1).narrow(2, 2, 2), y.narrow(1, 2, 2));
  const Tensor both = prod(clamp(sub(high, low), 0, {}), 2);
  return div(both, sub(add(area(x).unsqueeze(1), area(y)), both)).to(dtype);
}

Tensor roi_align(const Tensor& x, const Tensor& boxes, const RoiAlignArgs& args) {
  return run(operations::roi_align, x, boxes, args.output_size, args.spatial_scale, args.sampling_ratio,
             args.aligned);
}

Tensor roi_align(const Tensor& x, const std::vector<Tensor>& boxes, const RoiAlignArgs& args) {
  if (boxes.empty() || x.rank() != 4 || static_cast<std::int64_t>(boxes.size()) != x.shape()[0])
    fail(Errc::shape_mismatch, "roi_align", "{} lists of boxes for {}", boxes.size(), ops::form(x));
  std::vector<Tensor> numbered;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    require_boxes("roi_align", boxes[i], 4);
    const Tensor number = full({boxes[i].shape()[0], 1}, static_cast<double>(i), boxes[i].dtype());
    numbered.push_back(concat({number, boxes[i]}, 1));
  }
  return roi_align(x, concat(numbered, 0), args);
}

}  // namespace ballast
