// SPDX-License-Identifier: Apache-2.0
#include "nn/fold.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ballast/detail/ops/elementwise.h"
#include "base/lazy.h"
#include "ops/parallel.h"
#include "tensor/sound.h"

namespace ballast::nn {
namespace {

// A convolution's weight [outputs, …] with each output scaled, from the weight as it was loaded. Whoever
// wants its values for another order of them reads them here, and nothing is kept; whoever asks for an
// address gets all of them, once.
class ScaledWeight final : public Storage {
 public:
  ScaledWeight(Tensor weight, Tensor scale)
      : Storage(weight.size_bytes()), weight_(std::move(weight)), scale_(std::move(scale)) {}

  [[nodiscard]] const std::byte* data() const override { return whole()->data(); }

  [[nodiscard]] bool ready() const noexcept override { return whole_.ready(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size());
    if (ready()) return Storage::read(offset, out);
    constexpr std::uint64_t kPiece = 1U << 16U;  // bytes
    const auto pieces = static_cast<std::int64_t>((out.size() + kPiece - 1) / kPiece);
    ops::parallel(pieces, 4, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> values(kPiece / sizeof(float) + 2);
      for (std::int64_t i = begin; i < end; ++i) {
        const std::uint64_t at = static_cast<std::uint64_t>(i) * kPiece;
        const auto part = out.subspan(at, std::min<std::uint64_t>(kPiece, out.size() - at));
        const std::uint64_t first = (offset + at) / sizeof(float);
        const std::uint64_t last = (offset + at + part.size() - 1) / sizeof(float);
        scale_values(first, std::span(values).first(last - first + 1));
        std::memcpy(part.data(), std::as_bytes(std::span(values)).data() + (offset + at) % sizeof(float),
                    part.size());
      }
    });
  }

  void check_unchanged() const override { weight_.storage()->check_unchanged(); }

  void check_sound(std::uint64_t /*begin*/, std::uint64_t /*end*/) const override {
    ballast::check_sound(weight_);
  }

 private:
  [[nodiscard]] std::byte* writable_data() override { return whole()->mutable_data(); }

  [[nodiscard]] const std::shared_ptr<Storage>& whole() const {
    return whole_.get([this] {
      auto made = Storage::heap(size());
      read(0, {made->mutable_data(), static_cast<std::size_t>(size())});
      return made;
    });
  }

  void scale_values(std::uint64_t first, std::span<float> values) const {
    weight_.read(first * sizeof(float), std::as_writable_bytes(values));
    const auto* scale = reinterpret_cast<const double*>(scale_.data());
    const auto each = static_cast<std::uint64_t>(weight_.numel() / scale_.numel());
    for (std::uint64_t i = 0; i < values.size();) {
      const std::uint64_t output = (first + i) / each;
      for (const std::uint64_t end = std::min<std::uint64_t>((output + 1) * each - first, values.size());
           i < end; ++i)
        values[i] = static_cast<float>(static_cast<double>(values[i]) * scale[output]);
    }
  }

  Tensor weight_;
  Tensor scale_;  // F64
  Lazy<std::shared_ptr<Storage>> whole_;
};

// `scale` [outputs] times the weight along its outputs.
Tensor scaled(const Tensor& given, const Tensor& scale, std::size_t output_dim, std::int64_t groups) {
  // What lies in a file nobody writes to; other weights may be written to before they are scaled.
  const bool stays = given.dtype() == DType::f32 && given.is_contiguous() && given.storage()->source_span();
  if (stays && given.rank() > 2 && output_dim == 0 && given.numel() > 0)
    return Tensor::contiguous_view(DType::f32, given.shape(),
                                   std::make_shared<ScaledWeight>(given, scale.contiguous()));
  const Tensor weight = given.to(DType::f64);
  if (weight.rank() == 2)
    return mul(weight.t(), scale.unsqueeze(1)).t().to(DType::f32);  // [out, in] stays dense
  if (output_dim == 0) {
    Shape shape = Dims::filled(weight.rank(), 1);
    shape[0] = scale.numel();
    return mul(weight, scale.reshape(shape)).to(DType::f32);
  }
  // [in, out / groups, kernel…]: the inputs of group g make its outputs.
  Shape grouped = weight.shape();
  grouped[0] /= groups;
  grouped.insert(0, groups);
  Shape factors = Dims::filled(grouped.size(), 1);
  factors[0] = groups;
  factors[2] = scale.numel() / groups;
  return mul(weight.reshape(grouped), scale.reshape(factors)).reshape(weight.shape()).to(DType::f32);
}

}  // namespace

FoldedLayer fold_norm(const Tensor& weight, const Tensor& bias, const NormToFold& norm,
                      std::size_t output_dim, std::int64_t groups) {
  const auto wide = [](const Tensor& x) { return x.to(DType::f64); };
  Tensor scale = div(1.0, sqrt(add(wide(norm.variance), norm.eps)));
  if (norm.gamma.has_data()) scale = mul(scale, wide(norm.gamma));
  Tensor shift = neg(wide(norm.mean));
  if (bias.has_data()) shift = add(shift, wide(bias));
  shift = mul(shift, scale);
  if (norm.beta.has_data()) shift = add(shift, wide(norm.beta));
  return {scaled(weight, scale, output_dim, groups), shift.to(DType::f32)};
}

}  // namespace ballast::nn
