// SPDX-License-Identifier: Apache-2.0
// What no operation takes: an undefined operand, and the dtypes its header says.
#include <gmock/gmock.h>

#include "ballast/ops.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

Tensor integers(std::initializer_list<std::int64_t> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

Generator& generator() {
  static Generator one(7);
  return one;
}

// The one sentence that holds for all of ops.h.
TEST(OperationsTake, NoUndefinedOperand) {
  using Call = void (*)(const Tensor& x);
  const std::pair<const char*, Call> kCalls[] = {
#define BALLAST_CALL(call)                     \
  {                                            \
#call, [](const Tensor& x) { drop(call); } \
  }
      BALLAST_CALL(x + 1),
      BALLAST_CALL(1 - x),
      BALLAST_CALL(-x),
      BALLAST_CALL(x == 1),
      BALLAST_CALL(pow(x, 2)),
      BALLAST_CALL(atan2(x, 1)),
      BALLAST_CALL(minimum(x, 1)),
      BALLAST_CALL(abs(x)),
      BALLAST_CALL(exp(x)),
      BALLAST_CALL(floor(x)),
      BALLAST_CALL(round(x)),
      BALLAST_CALL(clamp(x, 0, 1)),
      BALLAST_CALL(where(x, 1, 2)),
      BALLAST_CALL(masked_fill(x, of({1}), 1)),
      BALLAST_CALL(logical_and(x, 1)),
      BALLAST_CALL(logical_not(x)),
      BALLAST_CALL(isnan(x)),
      BALLAST_CALL(isinf(x)),
      BALLAST_CALL(isfinite(x)),
      BALLAST_CALL(lerp(x, of({}), 1)),
      BALLAST_CALL(isclose(x, of({}))),
      BALLAST_CALL(allclose(x, of({}))),
      BALLAST_CALL(relu(x)),
      BALLAST_CALL(gelu(x)),
      BALLAST_CALL(softplus(x)),
      BALLAST_CALL(prelu(x, of({1}))),
      BALLAST_CALL(rrelu(x)),
      BALLAST_CALL(celu(x)),
      BALLAST_CALL(hardshrink(x)),
      BALLAST_CALL(softshrink(x)),
      BALLAST_CALL(tanhshrink(x)),
      BALLAST_CALL(threshold(x, 0, 1)),
      BALLAST_CALL(glu(x)),
      BALLAST_CALL(softmax(x)),
      BALLAST_CALL(softmin(x)),
      BALLAST_CALL(log_softmax(x)),
      BALLAST_CALL(activate(x, Activation::Kind::relu)),
      BALLAST_CALL(sum(x)),
      BALLAST_CALL(prod(x)),
      BALLAST_CALL(mean(x)),
      BALLAST_CALL(var(x)),
      BALLAST_CALL(stddev(x)),
      BALLAST_CALL(norm(x)),
      BALLAST_CALL(logsumexp(x)),
      BALLAST_CALL(max(x)),
      BALLAST_CALL(min(x)),
      BALLAST_CALL(argmax(x)),
      BALLAST_CALL(argmin(x)),
      BALLAST_CALL(any(x)),
      BALLAST_CALL(all(x)),
      BALLAST_CALL(cumsum(x, 0)),
      BALLAST_CALL(cumprod(x, 0)),
      BALLAST_CALL(sort(x)),
      BALLAST_CALL(argsort(x)),
      BALLAST_CALL(topk(x, 1)),
      BALLAST_CALL(concat({x})),
      BALLAST_CALL(stack({x})),
      BALLAST_CALL(split(x, 1)),
      BALLAST_CALL(chunk(x, 1)),
      BALLAST_CALL(unbind(x)),
      BALLAST_CALL(diag(x)),
      BALLAST_CALL(flatten(x)),
      BALLAST_CALL(unflatten(x, 0, {1})),
      BALLAST_CALL(pad(x, {})),
      BALLAST_CALL(pad(x, {1, 1})),
      BALLAST_CALL(gather(x, 0, integers({0}))),
      BALLAST_CALL(gather(of({1}), 0, x)),
      BALLAST_CALL(scatter(x, 0, integers({0}), 1)),
      BALLAST_CALL(scatter_add(x, 0, integers({0}), of({1}))),
      BALLAST_CALL(index_add(x, 0, integers({0}), of({1}))),
      BALLAST_CALL(nonzero(x)),
      BALLAST_CALL(masked_select(x, Tensor::zeros(DType::boolean, {}))),
      BALLAST_CALL(index_select(x, 0, integers({0}))),
      BALLAST_CALL(embedding(x, of({2, 2}))),
      BALLAST_CALL(embedding(integers({0}), x)),
      BALLAST_CALL(flip(x, {0})),
      BALLAST_CALL(roll(x, {1}, {0})),
      BALLAST_CALL(tril(x)),
      BALLAST_CALL(triu(x)),
      BALLAST_CALL(repeat(x, {2})),
      BALLAST_CALL(repeat_interleave(x, 2, 0)),
      BALLAST_CALL(pixel_shuffle(x, 1)),
      BALLAST_CALL(pixel_unshuffle(x, 1)),
      BALLAST_CALL(channel_shuffle(x, 1)),
      BALLAST_CALL(unfold(x, {1})),
      BALLAST_CALL(fold(x, {1, 1}, {1})),
      BALLAST_CALL(embedding_bag(x, of({2, 2}))),
      BALLAST_CALL(one_hot(x, 2)),
      BALLAST_CALL(zeros_like(x)),
      BALLAST_CALL(ones_like(x)),
      BALLAST_CALL(full_like(x, 1)),
      BALLAST_CALL(rand_like(x, generator())),
      BALLAST_CALL(randn_like(x, generator())),
      BALLAST_CALL(randint_like(x, 0, 2, generator())),
      BALLAST_CALL(multinomial(x, 1, true, generator())),
      BALLAST_CALL(gumbel_softmax(x, generator())),
      BALLAST_CALL(matmul(x, of({2}))),
      BALLAST_CALL(linear(x, of({2, 2}))),
      BALLAST_CALL(linear(of({2}), x)),
      BALLAST_CALL(bilinear(x, of({2}), of({2, 2, 2}))),
      BALLAST_CALL(einsum("i", {x})),
      BALLAST_CALL(rotary_embedding(x, rotary_tables(1, 2))),
      BALLAST_CALL(scaled_dot_product_attention(x, of({1, 1}), of({1, 1}))),
      BALLAST_CALL(conv(x, of({1, 1, 1}))),
      BALLAST_CALL(conv_transpose(x, of({1, 1, 1}))),
      BALLAST_CALL(conv_tbc(x, of({1, 1, 1}), of({1}))),
      BALLAST_CALL(max_pool(x, {1})),
      BALLAST_CALL(max_pool_with_indices(x, {1})),
      BALLAST_CALL(max_unpool(x, integers({0}), {1})),
      BALLAST_CALL(avg_pool(x, {1})),
      BALLAST_CALL(lp_pool(x, 2, {1})),
      BALLAST_CALL(adaptive_avg_pool(x, {1})),
      BALLAST_CALL(adaptive_max_pool(x, {1})),
      BALLAST_CALL(global_avg_pool(x)),
      BALLAST_CALL(global_max_pool(x)),
      BALLAST_CALL(batch_norm(x, of({1}), of({1}))),
      BALLAST_CALL(layer_norm(x, {})),
      BALLAST_CALL(rms_norm(x, {})),
      BALLAST_CALL(group_norm(x, 1)),
      BALLAST_CALL(instance_norm(x)),
      BALLAST_CALL(local_response_norm(x, 1)),
      BALLAST_CALL(normalize(x)),
      BALLAST_CALL(cosine_similarity(x, of({1}))),
      BALLAST_CALL(pairwise_distance(x, of({1}))),
      BALLAST_CALL(pdist(x)),
      BALLAST_CALL(resize(x, {.size = {1}})),
      BALLAST_CALL(grid_sample(x, of({1, 1, 1, 2}))),
      BALLAST_CALL(affine_grid(x, {1, 1, 1, 1})),
      BALLAST_CALL(fft(x)),
      BALLAST_CALL(ifft(x)),
      BALLAST_CALL(rfft(x)),
      BALLAST_CALL(irfft(x)),
      BALLAST_CALL(stft(x, 2)),
      BALLAST_CALL(istft(x, 2)),
      BALLAST_CALL(nms(x, of({1}), 1)),
      BALLAST_CALL(box_iou(x, of({1, 4}))),
      BALLAST_CALL(roi_align(x, of({1, 5}))),
      BALLAST_CALL(mse_loss(x, of({}))),
      BALLAST_CALL(smooth_l1_loss(x, of({}))),
      BALLAST_CALL(nll_loss(x, integers({0}))),
      BALLAST_CALL(cross_entropy(x, integers({0}))),
      BALLAST_CALL(binary_cross_entropy(x, of({}))),
      BALLAST_CALL(kl_div(x, of({}))),
      BALLAST_CALL(poisson_nll_loss(x, of({}))),
      BALLAST_CALL(hinge_embedding_loss(x, of({}))),
      BALLAST_CALL(soft_margin_loss(x, of({}))),
      BALLAST_CALL(triplet_margin_loss(x, of({1}), of({1}))),
      BALLAST_CALL(lstm(x, {})),
#undef BALLAST_CALL
  };
  for (const auto& [call, function] : kCalls)
    EXPECT_THAT(code_of([&, function = function] { function(Tensor()); }),
                testing::AnyOf(Errc::invalid_argument, Errc::shape_mismatch))
        << call;
}

// Zeros of a dtype.
Tensor of(Shape shape, DType d) {
  return Tensor::zeros(d, std::move(shape));
}

using OfDType = void (*)(DType d);
#define BALLAST_CALL(call)             \
  {                                    \
#call, [](DType d) { drop(call); } \
  }

constexpr std::pair<const char*, OfDType> kNeitherF64NorIntegers[] = {
    BALLAST_CALL(batch_norm(of({1, 2, 3}, d), of({2}, DType::f32), of({2}, DType::f32))),
    BALLAST_CALL(layer_norm(of({2, 3}, d), {3})),
    BALLAST_CALL(rms_norm(of({2, 3}, d), {3})),
    BALLAST_CALL(group_norm(of({1, 2, 3}, d), 2)),
    BALLAST_CALL(instance_norm(of({1, 2, 3}, d))),
    BALLAST_CALL(local_response_norm(of({1, 2, 3}, d), 2)),
    BALLAST_CALL(max_pool(of({1, 1, 4}, d), {2})),
    BALLAST_CALL(max_pool_with_indices(of({1, 1, 4}, d), {2})),
    BALLAST_CALL(avg_pool(of({1, 1, 4}, d), {2})),
    BALLAST_CALL(adaptive_avg_pool(of({1, 1, 4}, d), {2})),
    BALLAST_CALL(adaptive_max_pool(of({1, 1, 4}, d), {2})),
    BALLAST_CALL(global_avg_pool(of({1, 1, 4}, d))),
    BALLAST_CALL(global_max_pool(of({1, 1, 4}, d))),
    BALLAST_CALL(resize(of({1, 1, 2}, d), {.size = {4}})),
    BALLAST_CALL(bilinear(of({1, 2}, d), of({1, 2}, d), of({2, 2, 2}, d))),
    BALLAST_CALL(scaled_dot_product_attention(of({2, 4}, d), of({2, 4}, d), of({2, 4}, d))),
    BALLAST_CALL(conv(of({1, 1, 4}, DType::f32), of({1, 1, 2}, d)))};

constexpr std::pair<const char*, OfDType> kNoIntegers[] = {
    BALLAST_CALL(normalize(of({2, 3}, d))),
    BALLAST_CALL(cosine_similarity(of({2, 3}, d), of({2, 3}, d))),
    BALLAST_CALL(grid_sample(of({1, 1, 2, 2}, d), of({1, 2, 2, 2}, d))),
    BALLAST_CALL(affine_grid(of({1, 2, 3}, d), {1, 1, 2, 2})),
    BALLAST_CALL(matmul(of({2, 2}, d), of({2, 2}, d))),
    BALLAST_CALL(linear(of({2, 2}, d), of({2, 2}, d))),
    BALLAST_CALL(conv(of({1, 1, 4}, d), of({1, 1, 2}, d))),
    BALLAST_CALL(conv_transpose(of({1, 1, 4}, d), of({1, 1, 2}, d))),
    BALLAST_CALL(fft(of({4, 2}, d))),
    BALLAST_CALL(mse_loss(of({2}, d), of({2}, d))),
    BALLAST_CALL(kl_div(of({2}, d), of({2}, d))),
    BALLAST_CALL(softmax(of({2}, d))),
    BALLAST_CALL(gelu(of({2}, d))),
    BALLAST_CALL(elu(of({2}, d))),
    BALLAST_CALL(mean(of({2}, d))),
    BALLAST_CALL(logsumexp(of({2}, d))),
    BALLAST_CALL(var(of({2}, d)))};

constexpr std::pair<const char*, OfDType> kBoth[] = {
    BALLAST_CALL(pairwise_distance(of({2, 3}, d), of({2, 3}, d))),
    BALLAST_CALL(max_unpool(of({1, 1, 1}, d), of({1, 1, 1}, DType::i64), {2})),
    BALLAST_CALL(einsum("ij,jk", {of({2, 2}, d), of({2, 2}, d)})),
    BALLAST_CALL(sigmoid(of({2}, d))),
    BALLAST_CALL(tanh(of({2}, d))),
    BALLAST_CALL(sum(of({2}, d)))};

#undef BALLAST_CALL

TEST(OperationsTake, TheDTypesTheirHeadersSay) {
  const auto refused = [](OfDType call, DType d) { return name(code_of([=] { call(d); })); };
  for (const auto& [call, function] : kNeitherF64NorIntegers) {
    EXPECT_EQ(refused(function, DType::f64), "bad-dtype") << call;
    EXPECT_EQ(refused(function, DType::i64), "bad-dtype") << call;
  }
  for (const auto& [call, function] : kNoIntegers) {
    EXPECT_NO_THROW(function(DType::f64)) << call;
    EXPECT_EQ(refused(function, DType::i64), "bad-dtype") << call;
  }
  for (const auto& [call, function] : kBoth) {
    EXPECT_NO_THROW(function(DType::f64)) << call;
    EXPECT_NO_THROW(function(DType::i64)) << call;
  }
}

}  // namespace
}  // namespace ballast::contracts
