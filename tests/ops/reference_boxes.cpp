// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

double real(const Json& a, const char* name) {
  return number_of(a[name]);
}

double share(const Array& a, std::int64_t i, const Array& b, std::int64_t j) {
  const double width = std::max(0.0, std::min(a({i, 2}), b({j, 2})) - std::max(a({i, 0}), b({j, 0})));
  const double height = std::max(0.0, std::min(a({i, 3}), b({j, 3})) - std::max(a({i, 1}), b({j, 1})));
  const auto area = [](const Array& x, std::int64_t k) {
    return (x({k, 2}) - x({k, 0})) * (x({k, 3}) - x({k, 1}));
  };
  return width * height / (area(a, i) + area(b, j) - width * height);
}

Arrays kept(const Arrays& in, const Json& a) {
  std::vector<std::int64_t> order(in[1].values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int64_t i) { return in[1].values[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t i, std::int64_t j) { return score(i) > score(j); });
  const auto kind = [&](std::int64_t i) {
    return in.size() > 2 ? in[2].values[static_cast<std::size_t>(i)] : 0;
  };
  Array out({0});
  for (const std::int64_t one : order) {
    const bool gone = std::any_of(out.values.begin(), out.values.end(), [&](double before) {
      const auto other = static_cast<std::int64_t>(before);
      return kind(one) == kind(other) && share(in[0], one, in[0], other) > real(a, "threshold");
    });
    if (!gone) out.values.push_back(static_cast<double>(one));
  }
  out.shape = {static_cast<std::int64_t>(out.values.size())};
  return {out};
}

// The value of a channel between pixels; 0 outside.
double between(const Array& x, std::int64_t image, std::int64_t channel, double y, double z) {
  const auto height = static_cast<double>(x.shape[2]);
  const auto width = static_cast<double>(x.shape[3]);
  if (y < -1 || y > height || z < -1 || z > width) return 0;
  y = std::clamp(y, 0.0, height - 1);
  z = std::clamp(z, 0.0, width - 1);
  double sum = 0;
  for (std::int64_t i = 0; i < x.shape[2]; ++i)
    for (std::int64_t j = 0; j < x.shape[3]; ++j)
      sum += std::max(0.0, 1 - std::abs(y - static_cast<double>(i))) *
             std::max(0.0, 1 - std::abs(z - static_cast<double>(j))) * x({image, channel, i, j});
  return sum;
}

Arrays aligned_boxes(const Arrays& in, const Json& a) {
  const Place output = numbers(a["output_size"]);
  const double scale = real(a, "spatial_scale");
  const bool half = a["aligned"].get<bool>();
  const auto ratio = a["sampling_ratio"].get<std::int64_t>();
  return {filled({in[1].shape[0], in[0].shape[1], output[0], output[1]}, [&](const Place& at) {
    double begin[2];
    double size[2];
    std::int64_t points[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const auto low = static_cast<std::int64_t>(2 - i);  // y is the second corner's number
      begin[i] = in[1]({at[0], low}) * scale - (half ? 0.5 : 0);
      const double length = (in[1]({at[0], low + 2}) - in[1]({at[0], low})) * scale;
      size[i] = (half ? length : std::max(length, 1.0)) / static_cast<double>(output[i]);
      points[i] = ratio > 0 ? ratio : static_cast<std::int64_t>(std::ceil(size[i]));
    }
    double sum = 0;
    const auto place = [&](std::size_t i, std::int64_t k) {
      return begin[i] + size[i] * (static_cast<double>(at[2 + i]) +
                                   (static_cast<double>(k) + 0.5) / static_cast<double>(points[i]));
    };
    for (std::int64_t i = 0; i < points[0]; ++i)
      for (std::int64_t j = 0; j < points[1]; ++j)
        sum += between(in[0], static_cast<std::int64_t>(in[1]({at[0], 0})), at[1], place(0, i), place(1, j));
    return sum / static_cast<double>(std::max<std::int64_t>(points[0] * points[1], 1));
  })};
}

Place steps(const Json& a) {
  return a["stride"].empty() ? numbers(a["kernel"]) : numbers(a["stride"]);
}

// visit(place in x) for every place of the window at `at` of the result.
template <class Visit>
void for_each_in_window(const Array& x, const Json& a, const Place& at, Visit visit) {
  const Place kernel = numbers(a["kernel"]);
  const Place stride = steps(a);
  const std::size_t first = x.rank() - kernel.size();
  for_each_place(kernel, [&](const Place& k) {
    Place place = at;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t padding = a.contains("padding") ? numbers(a["padding"])[i] : 0;
      const std::int64_t dilation = a.contains("dilation") ? numbers(a["dilation"])[i] : 1;
      place[first + i] = at[first + i] * stride[i] - padding + k[i] * dilation;
      if (place[first + i] < 0 || place[first + i] >= x.shape[first + i]) return;
    }
    visit(const_cast<const Place&>(place));
  });
}

Place pooled_shape(const Array& x, const Json& a) {
  const Place kernel = numbers(a["kernel"]);
  Place shape = x.shape;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t padding = a.contains("padding") ? numbers(a["padding"])[i] : 0;
    const std::int64_t dilation = a.contains("dilation") ? numbers(a["dilation"])[i] : 1;
    const std::int64_t stride = steps(a)[i];
    std::int64_t& size = shape[x.rank() - kernel.size() + i];
    const std::int64_t reach = size + 2 * padding - dilation * (kernel[i] - 1) - 1;
    std::int64_t out = reach / stride + 1;
    if (a["ceil"].get<bool>() && reach % stride != 0 && out * stride < size + padding) ++out;
    size = out;
  }
  return shape;
}

Arrays pool_with_indices(const Arrays& in, const Json& a) {
  const std::size_t spatial = a["kernel"].size();
  Array values(pooled_shape(in[0], a));
  Array indices(values.shape);
  for_each_place(values.shape, [&](const Place& at) {
    double most = -INFINITY;
    for_each_in_window(in[0], a, at, [&](const Place& place) {
      if (!(in[0](place) > most)) return;
      most = in[0](place);
      double index = 0;
      for (std::size_t i = in[0].rank() - spatial; i < in[0].rank(); ++i)
        index = index * static_cast<double>(in[0].shape[i]) + static_cast<double>(place[i]);
      indices(at) = index;
    });
    values(at) = most;
  });
  return {values, indices};
}

Arrays unpooled(const Arrays& in, const Json& a) {
  const Place kernel = numbers(a["kernel"]);
  Place shape = in[0].shape;
  std::int64_t places = 1;
  std::int64_t images = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i + kernel.size() < shape.size()) {
      images *= shape[i];
      continue;
    }
    const std::size_t k = i + kernel.size() - shape.size();
    shape[i] = a.contains("output_size")
                   ? numbers(a["output_size"])[k]
                   : (shape[i] - 1) * steps(a)[k] - 2 * numbers(a["padding"])[k] + kernel[k];
    places *= shape[i];
  }
  Array out(shape);
  const std::size_t each = in[0].values.size() / static_cast<std::size_t>(images);
  for (std::size_t i = 0; i < in[0].values.size(); ++i)
    out.values[i / each * static_cast<std::size_t>(places) + static_cast<std::size_t>(in[1].values[i])] =
        in[0].values[i];
  return {out};
}

// What torch's lp_pool is: the mean of a window's powers times the kernel's size, though a window at the end
// of ceil_mode has fewer.
Arrays power_pool(const Arrays& in, const Json& a) {
  const double p = real(a, "norm_type");
  double size = 1;
  for (const std::int64_t k : numbers(a["kernel"])) size *= static_cast<double>(k);
  return {filled(pooled_shape(in[0], a), [&](const Place& at) {
    double sum = 0;
    double count = 0;
    for_each_in_window(in[0], a, at, [&](const Place& place) {
      sum += std::pow(in[0](place), p);
      ++count;
    });
    return std::pow(sum / count * size, 1 / p);
  })};
}

Arrays conv_over_time(const Arrays& in, const Json& a) {
  const std::int64_t pad = integer(a, "pad");
  const Place shape = {in[0].shape[0] + 2 * pad - in[1].shape[0] + 1, in[0].shape[1], in[1].shape[2]};
  return {filled(shape, [&](const Place& at) {
    double sum = in[2].values[static_cast<std::size_t>(at[2])];
    for (std::int64_t k = 0; k < in[1].shape[0]; ++k) {
      const std::int64_t t = at[0] + k - pad;
      for (std::int64_t c = 0; t >= 0 && t < in[0].shape[0] && c < in[1].shape[1]; ++c)
        sum += in[0]({t, at[1], c}) * in[1]({k, c, at[2]});
    }
    return sum;
  })};
}

Arrays distances(const Arrays& in, const Json& a) {
  Array out({0});
  for (std::int64_t i = 0; i < in[0].shape[0]; ++i)
    for (std::int64_t j = i + 1; j < in[0].shape[0]; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < in[0].shape[1]; ++k)
        sum += std::pow(std::abs(in[0]({i, k}) - in[0]({j, k})), real(a, "p"));
      out.values.push_back(std::pow(sum, 1 / real(a, "p")));
    }
  out.shape = {static_cast<std::int64_t>(out.values.size())};
  return {out};
}

}  // namespace

References reference_boxes() {
  return {{"nms", kept},
          {"batched_nms", kept},
          {"box_iou",
           [](const Arrays& in, const Json&) -> Arrays {
             return {filled({in[0].shape[0], in[1].shape[0]},
                            [&](const Place& at) { return share(in[0], at[0], in[1], at[1]); })};
           }},
          {"roi_align", aligned_boxes},
          {"max_pool_with_indices", pool_with_indices},
          {"max_unpool", unpooled},
          {"lp_pool", power_pool},
          {"conv_tbc", conv_over_time},
          {"pdist", distances},
          {"rrelu", [](const Arrays& in, const Json& a) -> Arrays {
             const double slope = (real(a, "lower") + real(a, "upper")) / 2;
             return {filled(in[0].shape,
                            [&](const Place& at) { return in[0](at) < 0 ? in[0](at) * slope : in[0](at); })};
           }}};
}

}  // namespace ballast::ops_tests
