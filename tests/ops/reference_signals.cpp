// SPDX-License-Identifier: Apache-2.0
// Patches, bags, grids and spectra.
#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/reference.h"

namespace ballast::ops_tests {
namespace {

double real(const Json& a, const char* name) {
  return number_of(a[name]);
}

Arrays rotated(const Arrays& in, const Json& a) {
  const bool interleaved = a["interleaved"].get<bool>();
  const std::int64_t half = in[1].shape[1];
  return {filled(in[0].shape, [&](Place at) {
    const std::size_t last = at.size() - 1;
    const std::int64_t i = at[last];
    if (i >= 2 * half) return in[0](at);
    const bool first = interleaved ? i % 2 == 0 : i < half;
    const Place angle = {at[last - 1], interleaved ? i / 2 : i % half};
    const double x = in[0](at);
    at[last] = interleaved ? (first ? i + 1 : i - 1) : (first ? i + half : i - half);
    return x * in[1](angle) + (first ? -1 : 1) * in[0](at) * in[2](angle);
  })};
}

Arrays bag_of(const Arrays& in, const Json& a) {
  const Array& index = in[0];
  const Array& weight = in[1];
  Place edges;
  if (index.rank() == 2) {
    for (std::int64_t i = 0; i <= index.shape[0]; ++i) edges.push_back(i * index.shape[1]);
  } else {
    for (const double offset : in[2].values) edges.push_back(static_cast<std::int64_t>(offset));
    if (!a["last"].get<bool>()) edges.push_back(index.shape[0]);
  }
  return {filled({static_cast<std::int64_t>(edges.size()) - 1, weight.shape[1]}, [&](const Place& at) {
    double sum = 0;
    double largest = -INFINITY;
    double count = 0;
    for (std::int64_t k = edges[static_cast<std::size_t>(at[0])];
         k < edges[static_cast<std::size_t>(at[0]) + 1]; ++k) {
      const double row = index.values[static_cast<std::size_t>(k)];
      if (a.contains("padding_idx") && row == real(a, "padding_idx")) continue;
      const double value = weight({static_cast<std::int64_t>(row), at[1]}) *
                           (in[3].values.empty() ? 1 : in[3].values[static_cast<std::size_t>(k)]);
      sum += value;
      largest = std::max(largest, value);
      ++count;
    }
    if (count == 0) return 0.0;
    return a["mode"] == "sum" ? sum : (a["mode"] == "mean" ? sum / count : largest);
  })};
}

// The place in the image that element k of a patch sees at a place: -1 and beyond lie in the padding.
std::int64_t seen(const Json& a, std::size_t dim, std::int64_t place, std::int64_t k) {
  const auto of = [&](const char* name) { return a[name][dim].get<std::int64_t>(); };
  return place * of("stride") - of("padding") + k * of("dilation");
}

std::int64_t places_of(const Json& a, std::size_t dim, std::int64_t size) {
  const auto of = [&](const char* name) { return a[name][dim].get<std::int64_t>(); };
  return (size + 2 * of("padding") - of("dilation") * (of("kernel") - 1) - 1) / of("stride") + 1;
}

Arrays unfolded(const Arrays& in, const Json& a) {
  Array x = in[0];
  const bool alone = x.rank() == 3;
  if (alone) x.shape.insert(x.shape.begin(), 1);
  const Place kernel = numbers(a["kernel"]);
  const std::int64_t rows = places_of(a, 0, x.shape[2]);
  const std::int64_t columns = places_of(a, 1, x.shape[3]);
  Array out = filled({x.shape[0], x.shape[1] * kernel[0] * kernel[1], rows * columns}, [&](const Place& at) {
    const std::int64_t k = at[1] % (kernel[0] * kernel[1]);
    const std::int64_t h = seen(a, 0, at[2] / columns, k / kernel[1]);
    const std::int64_t w = seen(a, 1, at[2] % columns, k % kernel[1]);
    if (h < 0 || w < 0 || h >= x.shape[2] || w >= x.shape[3]) return 0.0;
    return x({at[0], at[1] / (kernel[0] * kernel[1]), h, w});
  });
  if (alone) out.shape.erase(out.shape.begin());
  return {out};
}

Arrays folded(const Arrays& in, const Json& a) {
  const Place kernel = numbers(a["kernel"]);
  const Place size = numbers(a["output"]);
  const std::int64_t columns = places_of(a, 1, size[1]);
  Array out({in[0].shape[0], in[0].shape[1] / (kernel[0] * kernel[1]), size[0], size[1]});
  for_each_place(in[0].shape, [&](const Place& at) {
    const std::int64_t k = at[1] % (kernel[0] * kernel[1]);
    const std::int64_t h = seen(a, 0, at[2] / columns, k / kernel[1]);
    const std::int64_t w = seen(a, 1, at[2] % columns, k % kernel[1]);
    if (h >= 0 && w >= 0 && h < size[0] && w < size[1])
      out({at[0], at[1] / (kernel[0] * kernel[1]), h, w}) += in[0](at);
  });
  return {out};
}

double kept_inside(const Json& a, double place, std::int64_t size) {
  const auto n = static_cast<double>(size);
  const bool align = a["align"].get<bool>();
  if (a["padding"] == "reflection") {
    const double low = align ? 0 : -0.5;
    const double high = align ? n - 1 : n - 0.5;
    if (high <= low) return 0;
    while (place < low || place > high) place = place < low ? 2 * low - place : 2 * high - place;
  }
  return a["padding"] == "zeros" ? place : std::clamp(place, 0.0, n - 1);
}

double cubic_weight(double d) {
  d = std::abs(d);
  if (d <= 1) return 1.25 * d * d * d - 2.25 * d * d + 1;
  return d < 2 ? -0.75 * d * d * d + 3.75 * d * d - 6 * d + 3 : 0;
}

// How much element i of a dimension counts at `number` of the grid.
double sample_weight(const Json& a, double number, std::int64_t i, std::int64_t size) {
  const auto n = static_cast<double>(size);
  const double place = a["align"].get<bool>() ? (number + 1) / 2 * (n - 1) : ((number + 1) * n - 1) / 2;
  const auto own = static_cast<double>(i);
  if (a["mode"] == "bicubic") {
    double sum = 0;
    for (double k = std::floor(place) - 1; k <= std::floor(place) + 2; ++k)
      sum += std::nearbyint(kept_inside(a, k, size)) == own ? cubic_weight(place - k) : 0;
    return sum;
  }
  const double inside = kept_inside(a, place, size);
  if (a["mode"] == "nearest") return std::nearbyint(inside) == own ? 1 : 0;
  return std::max(0.0, 1 - std::abs(inside - own));
}

Arrays sampled(const Arrays& in, const Json& a) {
  const std::size_t spatial = in[0].rank() - 2;
  Place shape = in[1].shape;
  shape.pop_back();
  shape.insert(shape.begin() + 1, in[0].shape[1]);
  const Place image(in[0].shape.begin() + 2, in[0].shape.end());
  return {filled(shape, [&](const Place& at) {
    Place point = at;
    point.erase(point.begin() + 1);
    point.push_back(0);
    double sum = 0;
    for_each_place(image, [&](const Place& from) {
      Place x = {at[0], at[1]};
      double weight = 1;
      for (std::size_t d = 0; d < spatial; ++d) {
        x.push_back(from[d]);
        point.back() = static_cast<std::int64_t>(spatial - 1 - d);
        weight *= sample_weight(a, in[1](point), from[d], image[d]);
      }
      sum += weight * in[0](x);
    });
    return sum;
  })};
}

Arrays affine(const Arrays& in, const Json& a) {
  const Place size = numbers(a["size"]);
  const std::size_t spatial = size.size() - 2;
  Place shape = size;
  shape.erase(shape.begin() + 1);
  shape.push_back(static_cast<std::int64_t>(spatial));
  return {filled(shape, [&](const Place& at) {
    double sum = in[0]({at[0], at.back(), static_cast<std::int64_t>(spatial)});
    for (std::size_t k = 0; k < spatial; ++k) {
      const auto n = static_cast<double>(size[size.size() - 1 - k]);
      const auto i = static_cast<double>(at[spatial - k]);
      const double number = a["align"].get<bool>() ? (n > 1 ? 2 * i / (n - 1) - 1 : 0) : (2 * i + 1) / n - 1;
      sum += in[0]({at[0], at.back(), static_cast<std::int64_t>(k)}) * number;
    }
    return sum;
  })};
}

using Complex = std::complex<double>;
using Line = std::vector<Complex>;

Line transformed(const Line& x, double sign) {
  const auto n = static_cast<double>(x.size());
  Line out(x.size());
  for (std::size_t f = 0; f < x.size(); ++f)
    for (std::size_t k = 0; k < x.size(); ++k)
      out[f] +=
          x[k] * std::polar(1.0, sign * 2 * std::acos(-1.0) * static_cast<double>(f * k % x.size()) / n);
  return out;
}

// Rows of `from` values (of `parts` numbers) through `work`, which gives rows of `to` numbers.
template <class Work>
Array by_rows(const Array& x, std::size_t parts, const Place& last, Work work) {
  Array out;
  out.shape.assign(x.shape.begin(), x.shape.end() - (parts == 2 ? 2 : 1));
  const auto n = static_cast<std::size_t>(x.shape[x.rank() - parts]);
  for (std::size_t begin = 0; begin < x.values.size(); begin += n * parts) {
    Line line;
    for (std::size_t k = 0; k < n; ++k)
      line.emplace_back(x.values[begin + k * parts], parts == 2 ? x.values[begin + k * parts + 1] : 0);
    const std::vector<double> row = work(line);
    out.values.insert(out.values.end(), row.begin(), row.end());
  }
  out.shape.insert(out.shape.end(), last.begin(), last.end());
  return out;
}

std::vector<double> pairs_of(const Line& line, std::size_t count, double scale = 1) {
  std::vector<double> out;
  for (std::size_t k = 0; k < count; ++k) {
    out.push_back(line[k].real() * scale);
    out.push_back(line[k].imag() * scale);
  }
  return out;
}

// The real signal of n values whose spectrum begins with these.
std::vector<double> signal_of(const Line& half, std::size_t n) {
  std::vector<double> out;
  for (std::size_t k = 0; k < n; ++k) {
    double sum = 0;
    for (std::size_t f = 0; f <= n / 2 && f < half.size(); ++f) {
      const bool once = f == 0 || 2 * f == n;
      const double angle = 2 * std::acos(-1.0) * static_cast<double>(f * k % n) / static_cast<double>(n);
      const double value = half[f].real() * std::cos(angle) - (once ? 0 : half[f].imag() * std::sin(angle));
      sum += once ? value : 2 * value;
    }
    out.push_back(sum / static_cast<double>(n));
  }
  return out;
}

std::vector<double> window_of(const Arrays& in, const Json& a) {
  const auto n = a["n_fft"].get<std::size_t>();
  const auto wide = a["win"].get<std::size_t>();
  std::vector<double> window(n, 0);
  for (std::size_t i = 0; i < wide; ++i) window[(n - wide) / 2 + i] = value_or(in[1], i, 1);
  return window;
}

Arrays spectra_of(const Arrays& in, const Json& a) {
  const auto n = a["n_fft"].get<std::int64_t>();
  const auto hop = a["hop"].get<std::int64_t>();
  const std::vector<double> window = window_of(in, a);
  const std::int64_t length = in[0].shape.back();
  const std::int64_t before = a["center"].get<bool>() ? n / 2 : 0;
  const std::int64_t frames = (length + 2 * before - n) / hop + 1;
  const std::int64_t kept = a["onesided"].get<bool>() ? n / 2 + 1 : n;
  const double scale = a["normalized"].get<bool>() ? 1 / std::sqrt(static_cast<double>(n)) : 1;
  return {by_rows(in[0], 1, {kept, frames, 2}, [&](const Line& x) {
    std::vector<double> out(static_cast<std::size_t>(kept * frames * 2));
    for (std::int64_t t = 0; t < frames; ++t) {
      Line frame;
      for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t at = std::abs(t * hop + k - before);
        at = at >= length ? 2 * length - 2 - at : at;
        frame.push_back(x[static_cast<std::size_t>(at)] * window[static_cast<std::size_t>(k)]);
      }
      const Line spectrum = transformed(frame, -1);
      for (std::int64_t f = 0; f < kept; ++f) {
        const auto at = static_cast<std::size_t>((f * frames + t) * 2);
        out[at] = spectrum[static_cast<std::size_t>(f)].real() * scale;
        out[at + 1] = spectrum[static_cast<std::size_t>(f)].imag() * scale;
      }
    }
    return out;
  })};
}

Arrays signals_of(const Arrays& in, const Json& a) {
  const auto n = a["n_fft"].get<std::size_t>();
  const auto hop = a["hop"].get<std::size_t>();
  const std::vector<double> window = window_of(in, a);
  const auto frames = static_cast<std::size_t>(in[0].shape[in[0].rank() - 2]);
  const std::size_t whole = n + hop * (frames - 1);
  const std::size_t first = a["center"].get<bool>() ? n / 2 : 0;
  const std::size_t length = a.contains("length") ? a["length"].get<std::size_t>() : whole - 2 * first;
  const double scale = a["normalized"].get<bool>() ? std::sqrt(static_cast<double>(n)) : 1;
  Array flat = in[0];  // one row for all bins and frames of a signal
  const Place shape = flat.shape;
  flat.shape.erase(flat.shape.end() - 3);
  flat.shape[flat.rank() - 2] = shape[shape.size() - 3] * shape[shape.size() - 2];
  return {by_rows(flat, 2, {static_cast<std::int64_t>(length)}, [&](const Line& x) {
    std::vector<double> sum(std::max(whole, first + length), 0);
    std::vector<double> weight(sum.size(), 0);
    for (std::size_t t = 0; t < frames; ++t) {
      Line half;
      for (std::size_t f = 0; f <= n / 2; ++f) half.push_back(x[f * frames + t]);
      const std::vector<double> frame = signal_of(half, n);
      for (std::size_t k = 0; k < n; ++k) {
        sum[t * hop + k] += frame[k] * window[k] * scale;
        weight[t * hop + k] += window[k] * window[k];
      }
    }
    std::vector<double> out;
    for (std::size_t i = first; i < first + length; ++i) out.push_back(i < whole ? sum[i] / weight[i] : 0);
    return out;
  })};
}

References of_spectra() {
  return {{"fft",
           [](const Arrays& in, const Json&) -> Arrays {
             const std::int64_t n = in[0].shape[in[0].rank() - 2];
             return {by_rows(in[0], 2, {n, 2},
                             [](const Line& x) { return pairs_of(transformed(x, -1), x.size()); })};
           }},
          {"ifft",
           [](const Arrays& in, const Json&) -> Arrays {
             const std::int64_t n = in[0].shape[in[0].rank() - 2];
             return {by_rows(in[0], 2, {n, 2}, [](const Line& x) {
               return pairs_of(transformed(x, 1), x.size(), 1 / static_cast<double>(x.size()));
             })};
           }},
          {"rfft",
           [](const Arrays& in, const Json&) -> Arrays {
             const std::int64_t n = in[0].shape.back();
             return {by_rows(in[0], 1, {n / 2 + 1, 2},
                             [](const Line& x) { return pairs_of(transformed(x, -1), x.size() / 2 + 1); })};
           }},
          {"irfft",
           [](const Arrays& in, const Json& a) -> Arrays {
             const std::int64_t n =
                 a.contains("n") ? a["n"].get<std::int64_t>() : 2 * (in[0].shape[in[0].rank() - 2] - 1);
             return {by_rows(in[0], 2, {n},
                             [&](const Line& x) { return signal_of(x, static_cast<std::size_t>(n)); })};
           }},
          {"stft", spectra_of},
          {"istft", signals_of},
          {"hann_window",
           [](const Arrays&, const Json& a) -> Arrays {
             const std::int64_t n = a["length"].get<std::int64_t>();
             return {filled({n}, [&](const Place& at) {
               if (n == 1) return 1.0;
               const double s =
                   std::sin(std::acos(-1.0) * static_cast<double>(at[0]) / static_cast<double>(n));
               return s * s;
             })};
           }},
          {"rotary_tables", [](const Arrays&, const Json& a) -> Arrays {
             const std::int64_t features = a["features"].get<std::int64_t>();
             const auto angle = [&](const Place& at) {  // in F32, as the models do
               const auto part =
                   static_cast<double>(static_cast<float>(2 * at[1]) / static_cast<float>(features));
               const float step = 1.0F / static_cast<float>(std::pow(real(a, "base"), part));
               return static_cast<double>(static_cast<float>(a["first"].get<std::int64_t>() + at[0]) * step);
             };
             const Place shape = {a["length"].get<std::int64_t>(), features / 2};
             return {filled(shape, [&](const Place& at) { return std::cos(angle(at)); }),
                     filled(shape, [&](const Place& at) { return std::sin(angle(at)); })};
           }}};
}

}  // namespace

References reference_signals() {
  References all = of_spectra();
  all["unfold"] = unfolded;
  all["fold"] = folded;
  all["grid_sample"] = sampled;
  all["affine_grid"] = affine;
  all["rotary_embedding"] = rotated;
  all["embedding_bag"] = bag_of;
  return all;
}

}  // namespace ballast::ops_tests
