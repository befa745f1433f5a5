// SPDX-License-Identifier: Apache-2.0
// Tensors as PyTorch prints them: what is shown, how wide, and where lines break are its rules with their
// default settings, so that a text can be compared with the one in a Python session.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ballast/error.h"
#include "ballast/tensor.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

constexpr std::int64_t kThreshold = 1000;  // elements above which a tensor is shortened
constexpr std::int64_t kEdge = 3;          // then shown at each end of a dimension
constexpr std::size_t kLineWidth = 80;
constexpr int kPrecision = 4;
constexpr std::string_view kPrefix = "tensor(";

// What is shown of a dimension of `size`, first and last position behind the last; the second may be empty.
struct Shown {
  std::int64_t head;
  std::int64_t tail;  // as many at the end
};

Shown shown_of(std::int64_t size, bool shortened) {
  if (shortened && size > 2 * kEdge) return {kEdge, kEdge};
  return {size, 0};
}

// Calls visit with each piece of the last dimension that is shown, in row-major order.
template <class Visit>
void visit_shown(const Tensor& tensor, bool shortened, const Visit& visit) {
  if (tensor.rank() == 0) return visit(tensor);
  const std::int64_t size = tensor.size(0);
  const Shown shown = shown_of(size, shortened);
  if (tensor.rank() == 1) {
    visit(tensor.narrow(0, 0, shown.head));
    if (shown.tail > 0) visit(tensor.narrow(0, size - shown.tail, shown.tail));
    return;
  }
  for (std::int64_t i = 0; i < shown.head; ++i) visit_shown(tensor[i], shortened, visit);
  for (std::int64_t i = size - shown.tail; i < size; ++i) visit_shown(tensor[i], shortened, visit);
}

template <class T>
std::vector<T> shown_values(const Tensor& tensor, bool shortened) {
  std::vector<T> values;
  visit_shown(tensor, shortened, [&](const Tensor& piece) {
    const std::size_t before = values.size();
    values.resize(before + static_cast<std::size_t>(piece.numel()));
    piece.to(dtype_of<T>).read(0, std::as_writable_bytes(std::span(values).subspan(before)));
  });
  return values;
}

std::string fixed(double value, int digits) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}f}", value, digits);
}

std::string scientific(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.{}e}", value, kPrecision);
}

// How all floating values of a tensor are written: chosen from those that are finite and not zero.
class FloatStyle {
 public:
  explicit FloatStyle(const std::vector<double>& values) {
    double least = HUGE_VAL;
    double most = 0;
    std::vector<double> counted;
    for (const double value : values) {
      if (!std::isfinite(value) || value == 0) continue;
      counted.push_back(value);
      least = std::min(least, std::abs(value));
      most = std::max(most, std::abs(value));
      whole_ = whole_ && value == std::ceil(value);
    }
    if (counted.empty()) return;
    scientific_ = most / least > 1000 || most > 1e8 || (!whole_ && least < 1e-4);
    for (const double value : counted) width_ = std::max(width_, bare(value).size());
  }

  [[nodiscard]] std::size_t width() const noexcept { return width_; }

  [[nodiscard]] std::string operator()(double value) const {
    return fmt::format("{:>{}}", bare(value), width_);
  }

 private:
  [[nodiscard]] std::string bare(double value) const {
    if (scientific_) return scientific(value);
    if (!whole_) return fixed(value, kPrecision);
    return fixed(value, 0) + (std::isfinite(value) ? "." : "");  // the point says that it is floating
  }

  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

// Every value that is shown, in order, all of one width.
struct Texts {
  std::vector<std::string> values;
  std::size_t width = 1;
};

Texts float_texts(const Tensor& tensor, bool shortened) {
  const auto values = shown_values<double>(tensor, shortened);
  const FloatStyle style(values);
  Texts texts{{}, style.width()};
  for (const double value : values) texts.values.push_back(style(value));
  return texts;
}

template <class T>
Texts integer_texts(const Tensor& tensor, bool shortened) {
  Texts texts;
  for (const T value : shown_values<T>(tensor, shortened)) {
    texts.values.push_back(tensor.dtype() == DType::boolean ? (value != 0 ? "True" : "False")
                                                            : fmt::format("{}", value));
    texts.width = std::max(texts.width, texts.values.back().size());
  }
  for (std::string& text : texts.values) text = fmt::format("{:>{}}", text, texts.width);
  return texts;
}

// The real (0) or imaginary (1) parts of complex numbers.
Tensor part_of(const Tensor& tensor, std::uint64_t which) {
  const DType dtype = tensor.dtype() == DType::c32   ? DType::f16
                      : tensor.dtype() == DType::c64 ? DType::f32
                                                     : DType::f64;
  Strides strides = tensor.strides();
  for (std::int64_t& stride : strides) stride *= 2;
  return {dtype, tensor.shape(), strides, tensor.storage(), tensor.bit_offset() + which * info(dtype).bits};
}

Texts complex_texts(const Tensor& tensor, bool shortened) {
  const Texts real = float_texts(part_of(tensor, 0), shortened);
  const Texts imaginary = float_texts(part_of(tensor, 1), shortened);
  Texts texts{{}, real.width + imaginary.width + 1};
  for (std::size_t i = 0; i < real.values.size(); ++i) {
    const std::string& padded = imaginary.values[i];
    const std::string bare = padded.substr(padded.find_first_not_of(' '));
    texts.values.push_back(real.values[i] + (bare.front() == '-' ? "" : "+") + bare + "j");
  }
  return texts;
}

Texts texts_of(const Tensor& tensor, bool shortened) {
  switch (info(tensor.dtype()).kind) {
    case DTypeKind::floating:
      return float_texts(tensor, shortened);
    case DTypeKind::complex:
      return complex_texts(tensor, shortened);
    case DTypeKind::unsigned_integer:
      return integer_texts<std::uint64_t>(tensor, shortened);
    default:
      return integer_texts<std::int64_t>(tensor, shortened);
  }
}

// Puts the texts into brackets, line by line.
class Brackets {
 public:
  Brackets(const Texts& texts, bool shortened) : texts_(texts), shortened_(shortened) {}

  [[nodiscard]] std::string of(ShapeView shape, std::size_t indent) {
    if (shape.empty()) return texts_.values[next_++];
    if (shape.size() == 1) return row(shape[0], indent);
    const Shown shown = shown_of(shape[0], shortened_);
    const std::string between = "," + std::string(shape.size() - 1, '\n') + std::string(indent + 1, ' ');
    std::string text = "[";
    const auto add = [&](const std::string& one) { text += (text.size() > 1 ? between : "") + one; };
    for (std::int64_t i = 0; i < shown.head; ++i) add(of(shape.subspan(1), indent + 1));
    if (shown.tail > 0) add("...");
    for (std::int64_t i = 0; i < shown.tail; ++i) add(of(shape.subspan(1), indent + 1));
    return text + "]";
  }

 private:
  [[nodiscard]] std::string row(std::int64_t size, std::size_t indent) {
    const Shown shown = shown_of(size, shortened_);
    std::vector<std::string> pieces;
    for (std::int64_t i = 0; i < shown.head; ++i) pieces.push_back(texts_.values[next_++]);
    if (shown.tail > 0) pieces.emplace_back(" ...");
    for (std::int64_t i = 0; i < shown.tail; ++i) pieces.push_back(texts_.values[next_++]);
    const std::size_t room = kLineWidth > indent ? kLineWidth - indent : 0;
    const std::size_t per_line = std::max<std::size_t>(1, room / (texts_.width + 2));
    std::string text = "[";
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) text += i % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      text += pieces[i];
    }
    return text + "]";
  }

  const Texts& texts_;
  bool shortened_;
  std::size_t next_ = 0;
};

bool shows_values(const Tensor& tensor) {
  const DTypeKind kind = info(tensor.dtype()).kind;
  return tensor.has_data() && tensor.device().type == DeviceType::cpu && kind != DTypeKind::quantized &&
         kind != DTypeKind::opaque;
}

// "..." when the values are not to be had.
std::string contents_of(const Tensor& tensor) {
  if (!shows_values(tensor)) return "...";
  if (tensor.numel() == 0) return "[]";
  const bool shortened = tensor.numel() > kThreshold;
  try {
    const Texts texts = texts_of(tensor, shortened);
    return Brackets(texts, shortened).of(tensor.shape(), kPrefix.size());
  } catch (const Error& error) {
    if (error.code() != Errc::traced_value) throw;
    return "...";
  }
}

// Python's tuple: (), (2,), (2, 3).
std::string size_of(const Tensor& tensor) {
  std::string text = "size=(";
  for (std::size_t i = 0; i < tensor.rank(); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", tensor.shape()[i]);
  return text + (tensor.rank() == 1 ? ",)" : ")");
}

std::string dtype_of_text(const Tensor& tensor) {
  const DTypeInfo& about = info(tensor.dtype());
  if (about.torch_name.empty()) return fmt::format("dtype={}", about.code);
  return fmt::format("dtype=torch.{}", about.torch_name);
}

// What the values alone do not tell.
std::vector<std::string> suffixes_of(const Tensor& tensor, const std::string& contents) {
  const DType dtype = tensor.dtype();
  std::vector<std::string> suffixes;
  if (!tensor.has_data())
    suffixes.emplace_back("device='meta'");
  else if (tensor.device().type == DeviceType::cuda)
    suffixes.push_back(fmt::format("device='cuda:{}'", tensor.device().index));
  const bool unseen = contents == "...";
  if (unseen || (tensor.numel() == 0 && tensor.rank() != 1)) suffixes.push_back(size_of(tensor));
  const bool told =
      dtype == DType::f32 || (!unseen && tensor.numel() > 0 &&
                              (dtype == DType::i64 || dtype == DType::boolean || dtype == DType::c64));
  if (!told) suffixes.push_back(dtype_of_text(tensor));
  return suffixes;
}

}  // namespace

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  const tracing::Aside aside;  // looking is no part of the graph
  const std::string contents = contents_of(tensor);
  std::string text = std::string(kPrefix) + contents;
  const std::size_t newline = text.rfind('\n');
  std::size_t line = text.size() + 1 - (newline == std::string::npos ? std::size_t(-1) : newline);
  for (const std::string& suffix : suffixes_of(tensor, contents)) {
    if (line + suffix.size() + 2 > kLineWidth) {
      text += ",\n" + std::string(kPrefix.size(), ' ') + suffix;
      line = kPrefix.size() + suffix.size();
    } else {
      text += ", " + suffix;
      line += suffix.size() + 2;
    }
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << to_string(tensor);
}

}  // namespace ballast
