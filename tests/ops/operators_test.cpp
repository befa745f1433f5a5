// SPDX-License-Identifier: Apache-2.0
// Operators of tensors. Expected values of those that write in place: in_place_cases.txt, by torch
// (make_in_place_cases.py).
#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "ballast/graph.h"
#include "ballast/ops.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::ElementsAre;

struct InPlaceCase {
  std::string op, a_dtype, b_dtype, a, b, after;
};

std::vector<InPlaceCase> in_place_cases() {
  std::ifstream file(std::string(BALLAST_TEST_DATA) + "/ops/in_place_cases.txt");
  std::vector<InPlaceCase> cases;
  for (InPlaceCase one; file >> one.op >> one.a_dtype >> one.b_dtype >> one.a >> one.b >> one.after;)
    cases.push_back(one);
  return cases;
}

std::vector<double> numbers(const std::string& list) {
  std::vector<double> values;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) values.push_back(std::stod(word));
  return values;
}

Tensor column(const std::string& list, const std::string& dtype) {
  return Tensor::from(numbers(list), {4}, dtype_from_code(dtype).value());
}

Operand right_side(const InPlaceCase& one) {
  if (one.b_dtype == "int") return std::stoll(one.b);
  if (one.b_dtype == "float") return std::stod(one.b);
  return column(one.b, one.b_dtype);
}

Tensor& apply(const std::string& op, Tensor& a, const Operand& b) {
  return op == "+=" ? a += b : op == "-=" ? a -= b : op == "*=" ? a *= b : a /= b;
}

TEST(Operators, InPlaceDoWhatTorchDoesWithEveryPairOfDtypes) {
  const std::vector<InPlaceCase> cases = in_place_cases();
  ASSERT_EQ(cases.size(), 480U);
  for (const InPlaceCase& one : cases) {
    SCOPED_TRACE(one.a_dtype + " " + one.op + " " + one.b_dtype);
    // Every second byte of an odd place, so that there are strides and no alignment.
    const Tensor start = column(one.a, one.a_dtype);
    const auto item = static_cast<std::uint64_t>(info(start.dtype()).bits / 8);
    Tensor a(start.dtype(), {4}, {2}, Storage::heap(8 * item + 1, true), 8);
    for (std::int64_t i = 0; i < 4; ++i) start[i].read(0, {a[i].mutable_data(), item});
    const Tensor before = a.clone();
    const std::uint64_t version = a.storage()->version();
    // sub() takes BOOL for 0 and 1, as NumPy does; torch has a mind of its own there.
    if (one.op == "-=" && one.b_dtype == "BOOL" && one.a_dtype != "BOOL") continue;
    if (one.after == "refused") {
      const Errc code = code_of([&] { apply(one.op, a, right_side(one)); });
      EXPECT_EQ(code, Errc::bad_dtype);
      EXPECT_TRUE(all(a == before).item<bool>());
      continue;
    }
    Tensor& result = apply(one.op, a, right_side(one));
    EXPECT_EQ(&result, &a);
    EXPECT_GT(a.storage()->version(), version);
    EXPECT_EQ(a.dtype(), start.dtype());
    const std::vector<double> after = numbers(one.after);
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(a[i].item(), after[static_cast<std::size_t>(i)]);
  }
}

TEST(Operators, InPlaceIsSeenByEveryView) {
  Tensor tensor = Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  const Tensor same = tensor;
  tensor[0] += 10;
  EXPECT_THAT(same.span<float>(), ElementsAre(11, 12, 3, 4));
  tensor.t()[1] *= Tensor::from({2.0F, 3.0F}, {2});
  EXPECT_THAT(same.span<float>(), ElementsAre(11, 24, 3, 12));
  tensor += tensor.t();  // of its own elements, as they were
  EXPECT_THAT(same.span<float>(), ElementsAre(22, 27, 27, 24));
  tensor -= Tensor::from({2.0F}, {1});
  EXPECT_THAT(same.span<float>(), ElementsAre(20, 25, 25, 22));
  tensor /= 2;
  EXPECT_THAT(same.span<float>(), ElementsAre(10, 12.5, 12.5, 11));
}

TEST(Operators, InPlaceKeepsTheShapeAndWritesOnlyWhatMayBeWritten) {
  Tensor narrow = ones({1, 2});
  EXPECT_EQ(code_of([&] { narrow += ones({3, 2}); }), Errc::shape_mismatch);
  Tensor expanded = ones({1, 2}).expand({3, 2});
  EXPECT_EQ(code_of([&] { expanded += 1; }), Errc::overlap);
  const float value = 1;
  Tensor read_only = Tensor::contiguous_view(DType::f32, {1}, Storage::borrow(&value, 4));
  EXPECT_EQ(code_of([&] { read_only += 1; }), Errc::invalid_argument);
  EXPECT_EQ(value, 1);
}

TEST(Operators, InPlaceInATraceIsRefusedWhereItCouldNotBeFollowed) {
  struct Nothing {
    Tensor weight = ones({2});
  } model;
  const auto traced = [&](const std::function<Tensor(Tensor)>& forward) {
    return trace(model, {{"x", {2}}},
                 [&](std::span<const Tensor> in) { return std::vector<Tensor>{forward(in[0])}; });
  };
  EXPECT_EQ(code_of([&] { traced([](Tensor x) { return x += 1; }); }), Errc::traced_value);
  EXPECT_EQ(code_of([&] { traced([](const Tensor& x) { return zeros({2}) += x; }); }), Errc::traced_value);
  // What follows from constants alone is a constant.
  const Graph graph = traced([](const Tensor& x) {
    Tensor two = ones({2});
    two += 1;
    return x * two;
  });
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_STREQ(graph.nodes[0].operation->name, "mul");
  const GraphValue& two = graph.values[static_cast<std::size_t>(graph.nodes[0].inputs[1])];
  EXPECT_THAT(two.tensor.span<float>(), ElementsAre(2, 2));
}

TEST(Operators, ComparisonsAreThoseOfEachElement) {
  const Tensor a = Tensor::from({1.0F, 2.0F, 3.0F}, {3});
  const Tensor b = Tensor::from({2, 2, 2}, {3});
  EXPECT_THAT((a == b).span<bool>(), ElementsAre(false, true, false));
  EXPECT_THAT((a != b).span<bool>(), ElementsAre(true, false, true));
  EXPECT_THAT((a < b).span<bool>(), ElementsAre(true, false, false));
  EXPECT_THAT((a <= b).span<bool>(), ElementsAre(true, true, false));
  EXPECT_THAT((a > b).span<bool>(), ElementsAre(false, false, true));
  EXPECT_THAT((a >= b).span<bool>(), ElementsAre(false, true, true));
  EXPECT_THAT((a == 2).span<bool>(), ElementsAre(false, true, false));
  EXPECT_THAT((2 == a).span<bool>(), ElementsAre(false, true, false));
  EXPECT_THAT((2 != a).span<bool>(), ElementsAre(true, false, true));
  EXPECT_THAT((2.5 < a).span<bool>(), ElementsAre(false, false, true));
  EXPECT_THAT((2.5 >= a).span<bool>(), ElementsAre(true, true, false));
  static_assert(!std::is_convertible_v<Tensor, bool> && !std::is_constructible_v<bool, Tensor>);
}

TEST(Operators, AReductionTakesADimensionAsANumber) {
  Generator generator(1);
  const Tensor x = rand({2, 3, 4}, generator);
  for (std::int64_t dim = -3; dim < 3; ++dim) {
    const auto expect_same = [&](const Tensor& number, const Tensor& list) {
      EXPECT_EQ(number.shape(), list.shape());
      EXPECT_TRUE(all(number == list).item<bool>());
    };
    for (const bool keepdim : {false, true}) {
      expect_same(sum(x, dim, keepdim), sum(x, {dim}, keepdim));
      expect_same(prod(x, dim, keepdim), prod(x, {dim}, keepdim));
      expect_same(mean(x, dim, keepdim), mean(x, Dims{dim}, keepdim));
      expect_same(var(x, dim, keepdim), var(x, {dim}, keepdim));
      expect_same(stddev(x, dim, keepdim), stddev(x, {dim}, keepdim));
      expect_same(norm(x, 2, dim, keepdim), norm(x, 2, {dim}, keepdim));
      expect_same(logsumexp(x, dim, keepdim), logsumexp(x, {dim}, keepdim));
      expect_same(max(x, dim, keepdim), max(x, {dim}, keepdim));
      expect_same(min(x, dim, keepdim), min(x, {dim}, keepdim));
      expect_same(any(x, dim, keepdim), any(x, {dim}, keepdim));
      expect_same(all(x, dim, keepdim), all(x, {dim}, keepdim));
    }
  }
  EXPECT_EQ(sum(x, 0).shape(), (Shape{3, 4}));
  EXPECT_EQ(sum(x, {}).shape(), Shape{});  // none named: all of them
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_EQ(code_of([&] { static_cast<void>(sum(x, 3)); }), Errc::shape_mismatch);
}

// What one element becomes when it is written into a tensor of another dtype, by the rules of in-place
// arithmetic: nothing goes down from floating to integer to BOOL.
TEST(Operators, AssignWritesIntoTheViewAndNothingElseWhateverTheDtypes) {
  const std::vector<DType> dtypes = {DType::boolean, DType::u8,  DType::i8,   DType::i16, DType::i32,
                                     DType::i64,     DType::f16, DType::bf16, DType::f32, DType::f64};
  const auto kind = [](DType dtype) { return dtype == DType::boolean ? 0 : is_floating(dtype) ? 2 : 1; };
  for (const DType to : dtypes)
    for (const DType from : dtypes) {
      SCOPED_TRACE(std::string(info(from).code) + " into " + std::string(info(to).code));
      Tensor t = Tensor::from(std::vector<double>(12, 1), {3, 4}, to);
      const Tensor row = Tensor::from({0.0, 1.0, 0.0, 1.0}, {4}, from);
      if (kind(from) > kind(to)) {
        EXPECT_EQ(code_of([&] { assign(t[1], row); }), Errc::bad_dtype);
        continue;
      }
      assign(t[1], row);
      assign(t.transpose(0, 1)[3], Tensor::zeros(from, {1}));  // a column, and one value for all of it
      const Tensor seen = t.to(DType::f64);
      EXPECT_THAT(std::vector<double>(seen.span<double>().begin(), seen.span<double>().end()),
                  ElementsAre(1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0));
    }
}

TEST(Operators, AssignReadsBeforeItWritesWhereBothAreOneMemory) {
  Tensor t = Tensor::from({1, 2, 3, 4, 5}, {5});
  assign(t.narrow(0, 1, 4), t.narrow(0, 0, 4));
  EXPECT_THAT(std::vector<int>(t.span<int>().begin(), t.span<int>().end()), ElementsAre(1, 1, 2, 3, 4));
}

TEST(Operators, AssignRefusesWhatDoesNotFit) {
  Tensor t = Tensor::zeros(DType::u8, {2, 2});
  assign(t, 255);
  EXPECT_EQ(code_of([&] { assign(t, 256); }), Errc::not_representable);
  EXPECT_EQ(code_of([&] { assign(t, -1); }), Errc::not_representable);
  EXPECT_EQ(code_of([&] { assign(t, 0.5); }), Errc::bad_dtype);
  EXPECT_EQ(code_of([&] { assign(t[0], Tensor::zeros(DType::u8, {3})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { assign(t[0], Tensor::zeros(DType::u8, {1, 2})); }), Errc::shape_mismatch);
  EXPECT_EQ(code_of([&] { assign(t.expand({2, 2, 2}), 1); }), Errc::overlap);
  EXPECT_THAT(std::vector<std::uint8_t>(t.span<std::uint8_t>().begin(), t.span<std::uint8_t>().end()),
              ElementsAre(255, 255, 255, 255));
}

// What PyTorch 1.13 and 2.15 do: the number is rounded to the tensor's dtype first.
TEST(Operators, CompareNumbersAsValuesOfTheTensorsDtype) {
  const std::vector<float> numbers = {0.1F, 3.3F, 1000.3F, -0.7F, 0.5F, 65504.0F, 1e-7F};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = Tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())}, dtype);
    const Tensor wide = x.to(DType::f32);
    for (const float number : numbers) {
      const float there = Tensor::from({number}, {1}, dtype).item<float>();
      const auto bits = [](const Tensor& t) {
        return std::vector<bool>(t.span<bool>().begin(), t.span<bool>().end());
      };
      std::vector<bool> equal, less;
      for (const float value : wide.span<float>()) {
        equal.push_back(value == there);
        less.push_back(value < there);
      }
      EXPECT_EQ(bits(x == number), equal) << number;
      EXPECT_EQ(bits(number == x), equal) << number;
      EXPECT_EQ(bits(x < number), less) << number;
      EXPECT_EQ(bits(number > x), less) << number;
      EXPECT_EQ(bits(x == Tensor::from({static_cast<double>(number)}, {})), equal) << number;
    }
  }
}

}  // namespace
}  // namespace ballast
