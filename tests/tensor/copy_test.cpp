// SPDX-License-Identifier: Apache-2.0
// Strided copies against a walk over every index, bit by bit, that knows nothing of boxes, tiles or vectors.
#include "tensor/copy.h"

#include <gmock/gmock.h>

#include <random>

#include "ballast/error.h"
#include "ballast/runtime.h"
#include "tensor/cast_support.h"
#include "tensor/transpose.h"

namespace ballast {
namespace {

using Random = std::mt19937;

std::int64_t pick(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

std::vector<std::byte> noise(Random& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The row-major form: every element's place worked out from its index alone.
std::vector<std::byte> slow_copy(const Tensor& tensor) {
  const std::size_t bits = info(tensor.dtype()).bits;
  const std::byte* base = tensor.storage()->data();
  std::vector<std::byte> out(tensor.size_bytes());
  for (std::int64_t n = 0; n < tensor.numel(); ++n) {
    std::int64_t rest = n;
    std::int64_t place = 0;
    for (std::size_t dim = tensor.rank(); dim-- > 0; rest /= tensor.shape()[dim])
      place += rest % tensor.shape()[dim] * tensor.strides()[dim];
    const auto from = static_cast<std::size_t>(static_cast<std::int64_t>(tensor.bit_offset()) +
                                               place * static_cast<std::int64_t>(bits));
    const auto to = static_cast<std::size_t>(n) * bits;
    if (bits % 8 == 0) {
      std::memcpy(out.data() + to / 8, base + from / 8, bits / 8);
      continue;
    }
    for (std::size_t b = 0; b < bits; ++b) {
      if ((base[(from + b) / 8] >> (from + b) % 8 & std::byte{1}) != std::byte{0})
        out[(to + b) / 8] |= std::byte{1} << (to + b) % 8;
    }
  }
  return out;
}

Tensor over(DType dtype, const Shape& shape, const std::vector<std::byte>& bytes, std::uint64_t bit_offset) {
  return {dtype, shape, contiguous_strides(shape),
          Storage::borrow(static_cast<const void*>(bytes.data()), bytes.size()), bit_offset};
}

Tensor random_view(Random& random, Tensor tensor) {
  for (std::int64_t i = pick(random, 0, 3); i > 0; --i) {
    const auto rank = static_cast<std::int64_t>(tensor.rank());
    if (rank == 0) return tensor;
    switch (pick(random, 0, 3)) {
      case 0:
        tensor = tensor.transpose(pick(random, 0, rank - 1), pick(random, 0, rank - 1));
        break;
      case 1: {
        std::vector<Index> indices(static_cast<std::size_t>(pick(random, 0, rank - 1)), Index(Slice{}));
        indices.emplace_back(Slice{pick(random, -3, 2), {}, pick(random, 1, 3)});
        tensor = tensor.index(indices);
        break;
      }
      case 2:
        tensor = tensor.index({ellipsis, Slice{{}, {}, pick(random, 0, 1) == 0 ? -1 : -2}});
        break;
      default: {
        const auto dim = pick(random, 0, rank);
        Shape shape = tensor.unsqueeze(dim).shape();
        shape[static_cast<std::size_t>(dim)] = pick(random, 1, 5);
        tensor = tensor.unsqueeze(dim).expand(shape);
      }
    }
  }
  return tensor;
}

const DType kSizes[] = {DType::u8,   DType::f16, DType::f32,     DType::f64,
                        DType::c128, DType::f4,  DType::f6_e3m2, DType::qu2x4};

TEST(Copy, AnyViewOfAnyElementSizeIsCopiedInRowMajorOrder) {
  Random random(1);
  for (int round = 0; round < 400; ++round) {
    const DType dtype = kSizes[static_cast<std::size_t>(round) % std::size(kSizes)];
    const std::size_t bits = info(dtype).bits;
    Shape shape;
    for (std::int64_t rank = pick(random, 0, 4); rank > 0; --rank)
      shape.push_back(pick(random, round % 11 == 0 ? 0 : 1, 9));
    const auto elements = static_cast<std::size_t>(*try_numel(shape));
    // Sources begin at any byte, those of fewer than 8 bits at any bit: a mapped file promises no more.
    const std::uint64_t offset = bits % 8 == 0 ? 8U * static_cast<std::uint64_t>(pick(random, 0, 7))
                                               : static_cast<std::uint64_t>(pick(random, 0, 13));
    const auto bytes = noise(random, (offset + elements * bits + 7) / 8);
    const Tensor view = random_view(random, over(dtype, shape, bytes, offset));
    const auto expected = slow_copy(view);
    for (const Isa isa : usable_isas()) {
      std::vector<std::byte> out(expected.size() + 1, std::byte{0x5A});
      copy_contiguous_with(isa, view, out.data());
      EXPECT_EQ(out.back(), std::byte{0x5A});
      out.pop_back();
      ASSERT_EQ(out, expected) << view << " strides " << view.strides();
    }
    const Tensor copy = view.contiguous();
    EXPECT_TRUE(copy.is_contiguous());
    EXPECT_EQ(copy.shape(), view.shape());
  }
}

TEST(Copy, TransposesOfEverySizeAroundTheTilesAreRight) {
  Random random(2);
  for (const DType dtype : kSizes) {
    for (const std::int64_t rows : {4, 15, 64, 65, 130}) {
      for (const std::int64_t columns : {5, 16, 63, 64, 129, 192}) {
        const auto bytes = noise(random, static_cast<std::size_t>(rows * columns) * info(dtype).bits / 8 + 3);
        const Tensor view = over(dtype, {rows, columns}, bytes, info(dtype).bits % 8 == 0 ? 8 : 3).t();
        const auto expected = slow_copy(view);
        for (const Isa isa : usable_isas()) {
          std::vector<std::byte> out(expected.size() + 1);
          copy_contiguous_with(isa, view, out.data() + 1);  // an output on no boundary
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), out.begin() + 1)) << view;
        }
      }
    }
  }
}

TEST(Copy, StreamedTransposesFillEveryRowWhereverItsCacheLinesBegin) {
  Random random(5);
  for (const std::size_t size : {1U, 2U, 4U, 8U, 16U}) {
    for (int round = 0; round < 120; ++round) {
      const std::int64_t rows = pick(random, 1, 150);
      const std::int64_t columns = pick(random, 1, static_cast<std::int64_t>(1000 / size));
      const auto bytes = static_cast<std::int64_t>(size);
      const auto in = noise(random, static_cast<std::size_t>(rows * columns) * size);
      const bool on_lines = round % 3 == 0;  // each row begins on a cache line
      const std::int64_t pitch =
          on_lines ? (columns * bytes + 63) / 64 * 64 : columns * bytes + pick(random, 0, 3) * bytes;
      for (const Isa isa : usable_isas()) {
        std::vector<std::byte> out(128 + static_cast<std::size_t>(rows * pitch) + 1, std::byte{0});
        const auto offset = on_lines ? 64 - reinterpret_cast<std::uintptr_t>(out.data()) % 64
                                     : static_cast<std::size_t>(pick(random, 0, 70));
        copy_plane({in.data(), bytes, rows * bytes, out.data() + offset, pitch, rows, columns}, size, isa,
                   true);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            ASSERT_EQ(std::memcmp(out.data() + offset + i * pitch + j * bytes,
                                  in.data() + (j * rows + i) * bytes, size),
                      0)
                << size << " bytes, " << rows << 'x' << columns << " at " << i << ',' << j;
          }
          // Nothing outside the rows is touched.
          for (std::int64_t b = columns * bytes; b < pitch; ++b)
            ASSERT_EQ(out[offset + static_cast<std::size_t>(i * pitch + b)], std::byte{0});
        }
        ASSERT_EQ(out.back(), std::byte{0});
      }
    }
  }
}

// Large enough to be shared between threads and to be written past the cache, with rows that fill cache lines
// and rows that do not.
TEST(Copy, LargeTransposesAndCopiesAreRightOnSeveralThreads) {
  Random random(3);
  const int threads = thread_count();
  set_thread_count(3);
  for (const auto& [dtype, shape] :
       std::initializer_list<std::pair<DType, Shape>>{{DType::f32, {1024, 1600}},
                                                      {DType::f32, {1001, 1501}},
                                                      {DType::f16, {2048, 1280}},
                                                      {DType::u8, {2240, 2049}},
                                                      {DType::f64, {768, 1024}},
                                                      {DType::c128, {640, 512}},
                                                      {DType::f16, {3, 700, 1100}}}) {
    const auto bytes = noise(random, static_cast<std::size_t>(*try_numel(shape)) * info(dtype).bits / 8 + 2);
    const Tensor whole = over(dtype, shape, bytes, 8);
    for (const Tensor& view :
         {whole.t(), whole, whole.index({ellipsis, Slice{{}, {}, -1}}), whole.transpose(0, -1)}) {
      const auto expected = slow_copy(view);
      for (const Isa isa : usable_isas()) {
        Tensor out = Tensor::empty(dtype, view.shape());
        copy_contiguous_with(isa, view, out.mutable_data());
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0)
            << view << " strides " << view.strides();
      }
    }
  }
  set_thread_count(threads);
}

TEST(Copy, GatherTakesAnyRange) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const DType dtype = kSizes[static_cast<std::size_t>(round) % std::size(kSizes)];
    const std::size_t bits = info(dtype).bits;
    const Shape shape = {pick(random, 1, 7), pick(random, 1, 70), pick(random, 1, 30)};
    const auto bytes = noise(random, static_cast<std::size_t>(*try_numel(shape)) * bits / 8 + 2);
    const Tensor view = random_view(random, over(dtype, shape, bytes, 0));
    if (view.numel() == 0) continue;
    const auto expected = slow_copy(view);
    const std::int64_t step = bits % 8 == 0 ? 1 : 8;
    const std::int64_t first = pick(random, 0, (view.numel() - 1) / step) * step;
    const std::int64_t count = pick(random, 0, view.numel() - first);
    std::vector<std::byte> out((static_cast<std::size_t>(count) * bits + 7) / 8);
    gather(view, static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(count), out.data());
    for (std::int64_t i = 0; i < count; ++i) {
      if (bits > 64) break;
      ASSERT_EQ(code_at(dtype, out, static_cast<std::size_t>(i)),
                code_at(dtype, expected, static_cast<std::size_t>(first + i)))
          << view << ' ' << first;
    }
    EXPECT_THROW(gather(view, static_cast<std::uint64_t>(view.numel()), 8, out.data()), Error);
  }
}

}  // namespace
}  // namespace ballast
