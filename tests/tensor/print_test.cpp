// SPDX-License-Identifier: Apache-2.0
// Expected texts: print_cases.txt, by torch (make_print_cases.py).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ballast/tensor.h"

namespace ballast {
namespace {

struct PrintCase {
  DType dtype;
  Shape shape;
  std::vector<std::byte> few;
  std::string text;
};

std::vector<PrintCase> print_cases() {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/tensor/print_cases.txt");
  std::vector<PrintCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string code;
    std::string shape;
    std::string hex;
    std::string text;
    std::getline(fields, code, '\t');
    std::getline(fields, shape, '\t');
    std::getline(fields, hex, '\t');
    std::getline(fields, text);
    PrintCase one{dtype_from_code(code).value(), {}, {}, {}};
    std::istringstream dims(shape == "-" ? "" : shape);
    for (std::string dim; std::getline(dims, dim, ',');) one.shape.push_back(std::stoll(dim));
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
      one.few.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool newline = text.compare(at, 2, "\\n") == 0;
      one.text += newline ? '\n' : text[at];
      at += newline ? 1 : 0;
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

// Element i is element i * 7 % count of the case's few; with a byte in front, as in a file.
Tensor tensor_of(const PrintCase& one) {
  const std::size_t item = info(one.dtype).bits / 8;
  const std::size_t count = one.few.size() / item;
  const Tensor form(one.dtype, one.shape);
  auto storage = Storage::heap(form.size_bytes() + 1);
  std::byte* bytes = storage->mutable_data() + 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(form.numel()); ++i)
    std::memcpy(bytes + i * item, one.few.data() + i * 7 % count * item, item);
  return Tensor::contiguous_view(one.dtype, one.shape, storage, 1);
}

TEST(Print, ValuesAreWrittenAsTorchWritesThem) {
  const std::vector<PrintCase> cases = print_cases();
  ASSERT_GT(cases.size(), 1000U);
  for (const PrintCase& one : cases) {
    ASSERT_EQ(to_string(tensor_of(one)), one.text) << one.dtype << ' ' << one.shape;
  }
}

TEST(Print, AViewIsWrittenAsItsCopy) {
  for (const PrintCase& one : print_cases()) {
    const Tensor tensor = tensor_of(one);
    if (tensor.rank() < 2) continue;
    const Tensor turned = tensor.transpose(0, -1);
    ASSERT_EQ(to_string(turned), to_string(turned.clone())) << one.dtype << ' ' << one.shape;
  }
}

TEST(Print, WithoutValuesThereIsStillTheForm) {
  std::ostringstream out;
  out << Tensor(DType::bf16, {2, 3}) << '\n' << Tensor(DType::f32, {}) << '\n' << Tensor();
  // The first two: repr(torch.empty(2, 3, dtype=torch.bfloat16, device="meta")), and the same without sizes.
  EXPECT_EQ(out.str(),
            "tensor(..., device='meta', size=(2, 3), dtype=torch.bfloat16)\n"
            "tensor(..., device='meta', size=())\n"
            "undefined tensor");
  const auto elsewhere = Storage::borrow(static_cast<const void*>(nullptr), 8, {}, {DeviceType::cuda, 1});
  EXPECT_EQ(to_string(Tensor::contiguous_view(DType::f32, {2}, elsewhere)),
            "tensor(..., device='cuda:1', size=(2,))");
  EXPECT_EQ(to_string(Tensor::zeros(DType::qi8, {2})), "tensor(..., size=(2,), dtype=torch.qint8)");
}

TEST(Print, DtypesOfLaterTorchAndOfNoneAreWrittenToo) {
  EXPECT_EQ(to_string(Tensor::from({std::uint64_t{18446744073709551615U}, std::uint64_t{0}}, {2})),
            "tensor([18446744073709551615,                    0], dtype=torch.uint64)");
  EXPECT_EQ(to_string(Tensor::from({1.0F, 0.5F}, {2}, DType::f8_e4m3)),
            "tensor([1.0000, 0.5000], dtype=torch.float8_e4m3fn)");
  EXPECT_EQ(to_string(Tensor::from({1.0F, 0.5F, 2.0F, 4.0F}, {4}, DType::f6_e2m3)),
            "tensor([1.0000, 0.5000, 2.0000, 4.0000], dtype=F6_E2M3)");
}

TEST(Print, OfALongTensorOnlyTheEdgesAreRead) {
  struct Counting final : Storage {
    explicit Counting(std::uint64_t bytes) : Storage(bytes) {}
    [[nodiscard]] const std::byte* data() const override {
      ADD_FAILURE() << "all of it was asked for";
      return nullptr;
    }
    [[nodiscard]] bool ready() const noexcept override { return false; }
    void read(std::uint64_t /*offset*/, std::span<std::byte> out) const override {
      read_bytes += out.size();
      std::fill(out.begin(), out.end(), std::byte{0});
    }
    mutable std::uint64_t read_bytes = 0;
  };
  const auto storage = std::make_shared<const Counting>(std::uint64_t{1} << 40U);
  const Tensor tensor =
      Tensor::contiguous_view(DType::f32, {1 << 19, 1 << 19}, std::shared_ptr<const Storage>(storage));
  EXPECT_EQ(to_string(tensor[0]), "tensor([0., 0., 0.,  ..., 0., 0., 0.])");
  EXPECT_EQ(storage->read_bytes, 6 * sizeof(float));
}

}  // namespace
}  // namespace ballast
