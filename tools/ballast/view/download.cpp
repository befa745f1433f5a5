// SPDX-License-Identifier: Apache-2.0
// files/F/t/N/npy and csv: a tensor, or a plane of it, as a file.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ballast/error.h"
#include "ballast/stats.h"
#include "fail.h"
#include "view/app.h"
#include "view/value_text.h"

namespace tool::view {
namespace {

constexpr std::int64_t kMostCells = 1'000'000;
constexpr std::size_t kAtOnce = 1U << 20U;  // bytes read and sent
constexpr std::int64_t kRowsAtOnce = 64;

// Safe in a header field and on every disk: letters, digits and a few marks.
std::string file_name(const std::string& name, std::string_view extension) {
  std::string out;
  for (const char c : name.substr(0, 100)) {
    const bool is_safe = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         c == '.' || c == '_' || c == '-';
    out += is_safe ? c : '_';
  }
  if (out.empty() || out.front() == '.') out.insert(out.begin(), '_');
  return out + std::string(extension);
}

// NumPy's format 1.0: a dict in Python's words, padded to 64 bytes.
std::string npy_head(const ballast::Tensor& tensor, std::string_view numpy) {
  std::string shape;
  for (const std::int64_t dim : tensor.shape()) shape += fmt::format("{},", dim);
  const bool has_order = ballast::info(tensor.dtype()).bits > 8;
  std::string dict = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 has_order ? "<" : "|", numpy, shape);
  dict.append(63 - (dict.size() + 10) % 64, ' ');
  dict += '\n';
  const auto size = static_cast<std::uint16_t>(dict.size());
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(size & 0xFFU);
  head += static_cast<char>(size >> 8U);
  return head + dict;
}

}  // namespace

Response get_npy(const Call& call) {
  ballast::Tensor tensor = call.tensor();
  const std::string name = call.document().rows()[call.tensor_number()].name;
  // NumPy has no name for some dtypes: BF16 and the like are given as F32, which holds all their values.
  if (ballast::info(tensor.dtype()).numpy.empty()) {
    if (!ballast::is_real(tensor.dtype()))
      fail(ballast::Errc::unsupported, "npy", "NumPy has no dtype for {}",
           ballast::info(tensor.dtype()).code);
    tensor = tensor.to_lazy(ballast::DType::f32);
  }
  if (!tensor.has_data()) throw Refused{400, "invalid-argument", "there is no data in the file"};
  constexpr std::size_t kMostAxes = 64;  // of an array
  if (tensor.rank() > kMostAxes)
    throw Refused{400, "not-representable", "it has more dimensions than an array of NumPy's may have"};
  const std::string head = npy_head(tensor, ballast::info(tensor.dtype()).numpy);
  return {
      .type = "application/octet-stream",
      .attachment = file_name(name, ".npy"),
      .stream_bytes = head.size() + tensor.size_bytes(),
      .stream = [tensor, head](const BodySink& send) {
        send(head);
        std::vector<std::byte> piece;
        for (std::uint64_t at = 0; at < tensor.size_bytes(); at += piece.size()) {
          piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kAtOnce, tensor.size_bytes() - at)));
          tensor.read(at, piece);
          send({reinterpret_cast<const char*>(piece.data()), piece.size()});
        }
      }};
}

Response get_csv(const Call& call) {
  const ballast::Plane plane(call.tensor(), call.query.numbers("axes"), call.query.numbers("at"));
  const std::int64_t cells = plane.rows() * plane.cols();
  if (cells > kMostCells)
    throw Refused{
        400, "too-many",
        fmt::format("{} values, and {} at most go into a table; npy has no limit", cells, kMostCells)};
  const std::int64_t count = plane.fold() ? call.tensor().numel() : cells;
  std::string text;
  std::int64_t written = 0;
  // Rows without a column may be very many.
  for (std::int64_t row = 0; cells > 0 && row < plane.rows(); row += kRowsAtOnce) {
    if (call.gone()) throw Refused{410, "gone", "nobody waits for it"};
    const ballast::Tensor block = plane.elements(row, 0, kRowsAtOnce, plane.cols());
    const std::vector<std::string> values = value_texts(block);
    for (std::size_t i = 0; i < values.size() && written < count; ++i, ++written) {
      const bool ends = written % plane.cols() == plane.cols() - 1 || written + 1 == count;
      text += values[i];
      text += ends ? '\n' : ',';
    }
  }
  return {.type = "text/csv; charset=utf-8",
          .body = std::move(text),
          .attachment = file_name(call.document().rows()[call.tensor_number()].name, ".csv")};
}

}  // namespace tool::view
