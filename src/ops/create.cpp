// SPDX-License-Identifier: Apache-2.0
#include "ballast/detail/ops/create.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "ops/args.h"
#include "ops/copy_into.h"
#include "ops/operations.h"
#include "ops/parallel.h"
#include "tensor/trace.h"

namespace ballast {
namespace {

constexpr std::int64_t kGrain = 4096;  // blocks of four random numbers a thread makes at a time, at least

using Words = std::array<std::uint32_t, 4>;

// Philox-4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
Words philox(Words counter, std::uint64_t seed) {
  auto low = static_cast<std::uint32_t>(seed);
  auto high = static_cast<std::uint32_t>(seed >> 32U);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32U) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32U) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9U;
    high += 0xBB67AE85U;
  }
  return counter;
}

float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 8U) * 0x1p-24F;
}

// Words to values in place of four elements, by `convert`; the last block may be cut.
template <class Convert>
Tensor random_tensor(const Shape& shape, Generator& generator, Convert convert) {
  Tensor out = Tensor::empty(DType::f32, shape);
  const std::uint64_t call = generator.next_call();
  const std::int64_t count = out.numel();
  if (count == 0) return out;
  float* to = ops::data_of(out);
  ops::parallel((count + 3) / 4, kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const auto index = static_cast<std::uint64_t>(block);
      const Words words = philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32U),
                                  static_cast<std::uint32_t>(call), static_cast<std::uint32_t>(call >> 32U)},
                                 generator.seed());
      const std::array<float, 4> values = convert(words);
      std::memcpy(to + block * 4, values.data(),
                  static_cast<std::size_t>(std::min<std::int64_t>(4, count - block * 4)) * sizeof(float));
    }
  });
  return out;
}

std::array<float, 2> box_muller(std::uint32_t a, std::uint32_t b) {
  // 1 - u is never 0; in f64, so that the tails are as long as 24 bits allow and no machine rounds
  // differently for lack of an FMA.
  const double radius = std::sqrt(-2 * std::log(1 - static_cast<double>(uniform(a))));
  const double angle = 2 * std::acos(-1.0) * static_cast<double>(uniform(b));
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

Tensor full_cpu(const Operation&, const Shape& shape, double value, DType dtype) {
  Tensor out = Tensor::empty(dtype, shape);
  ops::copy_into(Tensor::from({value}, {}).to(dtype).expand(shape), out);
  return out;
}

Tensor arange_cpu(const Operation&, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const bool some = step > 0 ? start < stop : start > stop;
  // Unsigned: the distance of two 64-bit numbers fits.
  const std::uint64_t distance = step > 0
                                     ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                     : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const std::uint64_t stride =
      step > 0 ? static_cast<std::uint64_t>(step) : 0 - static_cast<std::uint64_t>(step);
  const std::uint64_t between = some ? (distance - 1) / stride : 0;
  if (between >= INT64_MAX) fail(Errc::size_overflow, "arange", "from {} to {} by {}", start, stop, step);
  const auto count = some ? static_cast<std::int64_t>(between) + 1 : 0;
  Tensor out = ops::new_tensor(DType::i64, {count});
  auto* to = reinterpret_cast<std::int64_t*>(out.mutable_data());
  for (std::int64_t i = 0; i < count; ++i) {
    // Likewise: the product may be as large as the distance.
    to[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                      static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
  }
  return out;
}

Tensor arange_real_cpu(const Operation&, double start, double stop, double step, DType dtype) {
  const double count = std::ceil((stop - start) / step);
  Tensor out = Tensor::empty(DType::f64, {static_cast<std::int64_t>(std::max(count, 0.0))});
  auto* to = reinterpret_cast<double*>(out.mutable_data());
  for (std::int64_t i = 0; i < out.numel(); ++i) to[i] = start + static_cast<double>(i) * step;
  return out.to(dtype);
}

Tensor linspace_cpu(const Operation&, double start, double stop, std::int64_t steps) {
  Tensor out = Tensor::empty(DType::f32, {steps});
  float* to = ops::data_of(out);
  const double step = steps > 1 ? (stop - start) / static_cast<double>(steps - 1) : 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    // From both ends, so that the last one is `stop` itself.
    to[i] =
        static_cast<float>(i < steps / 2 || steps == 1 ? start + step * static_cast<double>(i)
                                                       : stop - step * static_cast<double>(steps - 1 - i));
  }
  return out;
}

Tensor eye_cpu(const Operation&, std::int64_t rows, std::int64_t columns, DType dtype) {
  Tensor out = Tensor::zeros(DType::u8, {rows, columns});
  auto* to = reinterpret_cast<std::uint8_t*>(out.mutable_data());
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i) to[i * columns + i] = 1;
  return out.to(dtype);
}

Tensor rand_cpu(const Operation&, const Shape& shape, Generator& generator) {
  return random_tensor(shape, generator, [](const Words& w) -> std::array<float, 4> {
    return {uniform(w[0]), uniform(w[1]), uniform(w[2]), uniform(w[3])};
  });
}

Tensor randn_cpu(const Operation&, const Shape& shape, Generator& generator) {
  return random_tensor(shape, generator, [](const Words& w) -> std::array<float, 4> {
    const auto first = box_muller(w[0], w[1]);
    const auto second = box_muller(w[2], w[3]);
    return {first[0], first[1], second[0], second[1]};
  });
}

// The upper half of the product of two 64-bit numbers.
std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
  const std::uint64_t left = (a >> 32U) * (b & 0xFFFFFFFFU) + (low >> 32U);
  const std::uint64_t right = (a & 0xFFFFFFFFU) * (b >> 32U) + (left & 0xFFFFFFFFU);
  return (a >> 32U) * (b >> 32U) + (left >> 32U) + (right >> 32U);
}

Tensor randint_cpu(const Operation&, std::int64_t low, std::int64_t high, const Shape& shape,
                   Generator& generator) {
  Tensor out = Tensor::empty(DType::i64, shape);
  const std::uint64_t call = generator.next_call();
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  auto* to = reinterpret_cast<std::int64_t*>(out.mutable_data());
  ops::parallel(out.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto block = static_cast<std::uint64_t>(i / 2);
      const Words words = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32U),
                                  static_cast<std::uint32_t>(call), static_cast<std::uint32_t>(call >> 32U)},
                                 generator.seed());
      const std::size_t first = i % 2 == 0 ? 0 : 2;
      const std::uint64_t number = (std::uint64_t{words[first]} << 32U) | words[first + 1];
      to[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + upper_product(number, range));
    }
  });
  return out;
}

}  // namespace

namespace operations {

constinit const OperationOf<Tensor(const Dims&, double, DType)> full = {
    {.name = "full", .attributes = {"shape", "value", "dtype"}}, {full_cpu}};
constinit const OperationOf<Tensor(std::int64_t, std::int64_t, std::int64_t)> arange = {
    {.name = "arange", .attributes = {"start", "stop", "step"}}, {arange_cpu}};
constinit const OperationOf<Tensor(double, double, double, DType)> arange_real = {
    {.name = "arange_real", .attributes = {"start", "stop", "step", "dtype"}}, {arange_real_cpu}};
constinit const OperationOf<Tensor(double, double, std::int64_t)> linspace = {
    {.name = "linspace", .attributes = {"start", "stop", "steps"}}, {linspace_cpu}};
constinit const OperationOf<Tensor(std::int64_t, std::int64_t, DType)> eye = {
    {.name = "eye", .attributes = {"rows", "columns", "dtype"}}, {eye_cpu}};
constinit const OperationOf<Tensor(const Dims&, Generator&)> rand = {
    {.name = "rand", .attributes = {"shape"}, .kind = Operation::Kind::random}, {rand_cpu}};
constinit const OperationOf<Tensor(const Dims&, Generator&)> randn = {
    {.name = "randn", .attributes = {"shape"}, .kind = Operation::Kind::random}, {randn_cpu}};
constinit const OperationOf<Tensor(std::int64_t, std::int64_t, const Dims&, Generator&)> randint = {
    {.name = "randint", .attributes = {"low", "high", "shape"}, .kind = Operation::Kind::random},
    {randint_cpu}};

}  // namespace operations

Tensor zeros(const Shape& shape, DType dtype) {
  if (tracing::on()) return full(shape, 0, dtype);
  return Tensor::zeros(dtype, shape);
}

Tensor ones(const Shape& shape, DType dtype) {
  return full(shape, 1, dtype);
}

Tensor full(const Shape& shape, double value, DType dtype) {
  if (!is_real(dtype) || info(dtype).bits % 8 != 0)
    fail(Errc::bad_dtype, "full", "cannot fill {}", info(dtype).code);
  return run(operations::full, shape, value, dtype);
}

Tensor arange(std::int64_t start, std::int64_t stop, std::int64_t step) {
  if (step == 0) fail(Errc::invalid_argument, "arange", "the step is 0");
  return run(operations::arange, start, stop, step);
}

Tensor arange(double start, double stop, double step, DType dtype) {
  if (!(std::abs(std::ceil((stop - start) / step)) < 0x1p53))
    fail(Errc::invalid_argument, "arange", "from {} to {} by {} has no end", start, stop, step);
  return run(operations::arange_real, start, stop, step, dtype);
}

Tensor linspace(double start, double stop, std::int64_t steps) {
  if (steps < 0) fail(Errc::invalid_argument, "linspace", "{} steps", steps);
  return run(operations::linspace, start, stop, steps);
}

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype) {
  static_cast<void>(Tensor(dtype, {rows, columns}));  // it is made of bytes, of which more fit
  return run(operations::eye, rows, columns, dtype);
}

Tensor rand(const Shape& shape, Generator& generator) {
  return run(operations::rand, shape, generator);
}

Tensor randn(const Shape& shape, Generator& generator) {
  return run(operations::randn, shape, generator);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Generator& generator) {
  if (low >= high) fail(Errc::invalid_argument, "randint", "nothing lies from {} to below {}", low, high);
  return run(operations::randint, low, high, shape, generator);
}

}  // namespace ballast
