// SPDX-License-Identifier: Apache-2.0
// Operations and layers.
#include <cctype>

#include "ballast/graph.h"
#include "ballast/nn.h"
#include "ballast/operation.h"
#include "ballast/ops.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

Tensor integers(std::initializer_list<std::int64_t> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

Tensor bytes(std::initializer_list<std::uint8_t> values) {
  return Tensor::from(values, {static_cast<std::int64_t>(values.size())});
}

Tensor doubles(Shape shape) {
  return Tensor::zeros(DType::f64, std::move(shape));
}

Generator& generator() {
  static Generator one(7);
  return one;
}

const Row kRows[] = {
    {"add", Errc::shape_mismatch, [](auto&) { drop(add(of({2}), of({3}))); }},
    {"add another dtype", Errc::bad_dtype, [](auto&) { drop(add(Tensor::zeros(DType::c64, {2}), of({2}))); }},
    {"add undefined", Errc::invalid_argument, [](auto&) { drop(add(Tensor(), of({2}))); }},
    {"add no data", Errc::invalid_argument, [](auto&) { drop(add(Tensor(DType::f32, {2}), of({2}))); }},
    {"sub", Errc::bad_dtype,
     [](auto&) { drop(sub(Tensor::zeros(DType::boolean, {1}), Tensor::zeros(DType::boolean, {1}))); }},
    {"remainder", Errc::invalid_argument, [](auto&) { drop(remainder(integers({3}), integers({0}))); }},
    {"minimum", Errc::invalid_argument, [](auto&) { drop(minimum(bytes({3}), -1)); }},
    {"maximum", Errc::invalid_argument, [](auto&) { drop(maximum(bytes({3}), 256)); }},
    {"clamp", Errc::invalid_argument, [](auto&) { drop(clamp(bytes({3}), 300, {})); }},
    {"operator+=", Errc::shape_mismatch,
     [](auto&) {
       Tensor a = of({2});
       a += of({3, 2});
     }},
    {"operator+= dtype", Errc::bad_dtype,
     [](auto&) {
       Tensor a = integers({1});
       a += 0.5;
     }},
    {"operator+= overlap", Errc::overlap,
     [](auto&) {
       Tensor a = of({1}).expand({3});
       a += 1;
     }},
    {"operator+= read-only", Errc::invalid_argument,
     [](auto&) {
       static const float memory[2] = {};
       Tensor a = Tensor::contiguous_view(DType::f32, {2}, Storage::borrow(memory, sizeof memory));
       a += 1;
     }},
    {"assign", Errc::not_representable, [](auto&) { assign(bytes({1}), 300); }},
    {"assign shape", Errc::shape_mismatch, [](auto&) { assign(of({2}), of({3})); }},
    {"where", Errc::bad_dtype, [](auto&) { drop(where(of({2}), of({2}), of({2}))); }},
    {"masked_fill", Errc::bad_dtype, [](auto&) { drop(masked_fill(of({2}), of({2}), 1)); }},
    {"lerp", Errc::bad_dtype, [](auto&) { drop(lerp(of({2}), doubles({2}), 0.5)); }},
    {"isclose", Errc::bad_dtype, [](auto&) { drop(isclose(of({2}), doubles({2}))); }},
    {"relu", Errc::bad_dtype, [](auto&) { drop(relu(Tensor::zeros(DType::boolean, {2}))); }},
    {"gelu", Errc::bad_dtype, [](auto&) { drop(gelu(integers({1}))); }},
    {"hardtanh", Errc::invalid_argument, [](auto&) { drop(hardtanh(of({2}), 1, -1)); }},
    {"celu", Errc::invalid_argument, [](auto&) { drop(celu(of({2}), 0)); }},
    {"softshrink", Errc::invalid_argument, [](auto&) { drop(softshrink(of({2}), -1)); }},
    {"glu", Errc::shape_mismatch, [](auto&) { drop(glu(of({3}))); }},
    {"prelu", Errc::shape_mismatch, [](auto&) { drop(prelu(of({2, 3}), of({2}))); }},
    {"softmax", Errc::shape_mismatch, [](auto&) { drop(softmax(of({2}), 1)); }},
    {"sum", Errc::shape_mismatch, [](auto&) { drop(sum(of({2}), 1)); }},
    {"sum twice", Errc::invalid_argument, [](auto&) { drop(sum(of({2, 2}), {0, 0})); }},
    {"mean", Errc::bad_dtype, [](auto&) { drop(mean(integers({1}))); }},
    {"var", Errc::bad_dtype, [](auto&) { drop(var(integers({1}))); }},
    {"norm", Errc::bad_dtype, [](auto&) { drop(norm(integers({1}))); }},
    {"max", Errc::shape_mismatch, [](auto&) { drop(max(of({0}))); }},
    {"argmin", Errc::shape_mismatch, [](auto&) { drop(argmin(of({0}))); }},
    {"topk", Errc::shape_mismatch, [](auto&) { drop(topk(of({2}), 3)); }},
    {"concat", Errc::shape_mismatch, [](auto&) { drop(concat({of({2, 2}), of({2, 3})}, 0)); }},
    {"concat dtypes", Errc::bad_dtype, [](auto&) { drop(concat({of({2}), doubles({2})})); }},
    {"concat nothing", Errc::invalid_argument, [](auto&) { drop(concat(std::span<const Tensor>())); }},
    {"stack", Errc::shape_mismatch, [](auto&) { drop(stack({of({2}), of({3})})); }},
    {"split", Errc::invalid_argument, [](auto&) { drop(split(of({2}), 0)); }},
    {"split sizes", Errc::shape_mismatch, [](auto&) { drop(split(of({2}), Dims{1, 2})); }},
    {"chunk", Errc::invalid_argument, [](auto&) { drop(chunk(of({2}), 0)); }},
    {"unbind", Errc::shape_mismatch, [](auto&) { drop(unbind(of({}))); }},
    {"diag", Errc::shape_mismatch, [](auto&) { drop(diag(of({1, 1, 1}))); }},
    {"flatten", Errc::shape_mismatch, [](auto&) { drop(flatten(of({2, 2}), 1, 0)); }},
    {"unflatten", Errc::shape_mismatch, [](auto&) { drop(unflatten(of({4}), 0, {3, -1})); }},
    {"pad", Errc::invalid_argument, [](auto&) { drop(pad(of({2}), {1})); }},
    {"pad reflect", Errc::shape_mismatch, [](auto&) { drop(pad(of({1, 2}), {2, 0}, PadMode::reflect)); }},
    {"gather", Errc::offset_out_of_range, [](auto&) { drop(gather(of({2}), 0, integers({2}))); }},
    {"gather floats", Errc::bad_dtype, [](auto&) { drop(gather(of({2}), 0, of({1}))); }},
    {"index_select", Errc::offset_out_of_range, [](auto&) { drop(index_select(of({2}), 0, integers({-3}))); }},
    {"index_add", Errc::shape_mismatch, [](auto&) { drop(index_add(of({2}), 0, integers({0}), of({2}))); }},
    {"masked_select", Errc::bad_dtype, [](auto&) { drop(masked_select(of({2}), of({2}))); }},
    {"embedding", Errc::offset_out_of_range, [](auto&) { drop(embedding(integers({5}), of({2, 3}))); }},
    {"flip", Errc::invalid_argument, [](auto&) { drop(flip(of({2}), {0, 0})); }},
    {"roll", Errc::invalid_argument, [](auto&) { drop(roll(of({2}), {1, 1}, {0})); }},
    {"repeat", Errc::shape_mismatch, [](auto&) { drop(repeat(of({2, 2}), {2})); }},
    {"repeat negative", Errc::invalid_argument, [](auto&) { drop(repeat(of({2}), {-1})); }},
    {"repeat_interleave", Errc::invalid_argument, [](auto&) { drop(repeat_interleave(of({2}), -1, 0)); }},
    {"pixel_shuffle", Errc::shape_mismatch, [](auto&) { drop(pixel_shuffle(of({3, 2, 2}), 2)); }},
    {"tril", Errc::shape_mismatch, [](auto&) { drop(tril(of({2}))); }},
    {"one_hot", Errc::offset_out_of_range, [](auto&) { drop(one_hot(integers({3}), 2)); }},
    {"embedding_bag", Errc::shape_mismatch, [](auto&) { drop(embedding_bag(integers({0}), of({2}))); }},
    {"full", Errc::bad_dtype, [](auto&) { drop(full({2}, 1, DType::c64)); }},
    {"full negative", Errc::size_overflow, [](auto&) { drop(full({-1}, 1)); }},
    {"arange", Errc::invalid_argument, [](auto&) { drop(arange(0, 3, 0)); }},
    {"linspace", Errc::invalid_argument, [](auto&) { drop(linspace(0, 1, -1)); }},
    {"randint", Errc::invalid_argument, [](auto&) { drop(randint(3, 3, {2}, generator())); }},
    {"rand_like", Errc::bad_dtype, [](auto&) { drop(rand_like(integers({1}), generator())); }},
    {"zeros_like", Errc::invalid_argument, [](auto&) { drop(zeros_like(Tensor())); }},
    {"ones_like", Errc::invalid_argument, [](auto&) { drop(ones_like(Tensor())); }},
    {"full_like", Errc::invalid_argument, [](auto&) { drop(full_like(Tensor(), 1)); }},
    {"rand_like undefined", Errc::invalid_argument, [](auto&) { drop(rand_like(Tensor(), generator())); }},
    {"randn_like", Errc::invalid_argument, [](auto&) { drop(randn_like(Tensor(), generator())); }},
    {"randint_like", Errc::invalid_argument, [](auto&) { drop(randint_like(Tensor(), 0, 2, generator())); }},
    {"multinomial", Errc::invalid_argument, [](auto&) { drop(multinomial(of({3}), 1, true, generator())); }},
    {"multinomial shape", Errc::shape_mismatch,
     [](auto&) { drop(multinomial(of({1, 1, 1}), 1, true, generator())); }},
    {"gumbel_softmax", Errc::invalid_argument, [](auto&) { drop(gumbel_softmax(of({3}), generator(), 0)); }},
    {"matmul", Errc::shape_mismatch, [](auto&) { drop(matmul(of({2, 3}), of({2, 3}))); }},
    {"matmul dtypes", Errc::bad_dtype, [](auto&) { drop(matmul(of({2, 2}), doubles({2, 2}))); }},
    {"matmul a number", Errc::shape_mismatch, [](auto&) { drop(matmul(of({}), of({2}))); }},
    {"linear", Errc::shape_mismatch, [](auto&) { drop(linear(of({1, 3}), of({2, 4}))); }},
    {"einsum", Errc::invalid_argument, [](auto&) { drop(einsum("ij,jk", {of({2, 2})})); }},
    {"einsum sizes", Errc::shape_mismatch, [](auto&) { drop(einsum("ij,jk", {of({2, 3}), of({2, 2})})); }},
    {"einsum dtypes", Errc::bad_dtype, [](auto&) { drop(einsum("i,i", {of({2}), doubles({2})})); }},
    {"rotary_tables", Errc::invalid_argument, [](auto&) { drop(rotary_tables(4, 3)); }},
    {"rotary_embedding", Errc::shape_mismatch,
     [](auto&) { drop(rotary_embedding(of({3, 8}), rotary_tables(4, 8))); }},
    {"scaled_dot_product_attention", Errc::shape_mismatch,
     [](auto&) { drop(scaled_dot_product_attention(of({2, 4}), of({2, 3}), of({2, 4}))); }},
    {"scaled_dot_product_attention F64", Errc::bad_dtype,
     [](auto&) { drop(scaled_dot_product_attention(doubles({2, 4}), doubles({2, 4}), doubles({2, 4}))); }},
    {"conv", Errc::shape_mismatch, [](auto&) { drop(conv(of({1, 2, 4}), of({3, 3, 2}))); }},
    {"conv stride", Errc::invalid_argument,
     [](auto&) { drop(conv(of({1, 2, 4}), of({3, 2, 2}), {}, {.stride = {0}})); }},
    {"conv integers", Errc::bad_dtype,
     [](auto&) { drop(conv(Tensor::zeros(DType::i64, {1, 2, 4}), of({3, 2, 2}))); }},
    {"conv_transpose", Errc::invalid_argument,
     [](auto&) { drop(conv_transpose(of({1, 2, 4}), of({2, 3, 2}), {}, {.output_padding = {1}})); }},
    {"max_pool", Errc::shape_mismatch, [](auto&) { drop(max_pool(of({1, 1, 2}), {3})); }},
    {"max_pool F64", Errc::bad_dtype, [](auto&) { drop(max_pool(doubles({1, 1, 4}), {2})); }},
    {"max_pool padding", Errc::invalid_argument,
     [](auto&) { drop(max_pool(of({1, 1, 4}), {2}, {.padding = {2}})); }},
    {"avg_pool", Errc::invalid_argument,
     [](auto&) { drop(avg_pool(of({1, 1, 4}), {2}, {.divisor_override = 0})); }},
    {"lp_pool", Errc::invalid_argument, [](auto&) { drop(lp_pool(of({1, 1, 4}), 0, {2})); }},
    {"max_unpool", Errc::offset_out_of_range,
     [](auto&) { drop(max_unpool(of({1, 1, 1}), Tensor::from<std::int64_t>({9}, {1, 1, 1}), {2})); }},
    {"batch_norm", Errc::shape_mismatch, [](auto&) { drop(batch_norm(of({1, 2, 3}), of({3}), of({3}))); }},
    {"layer_norm", Errc::shape_mismatch, [](auto&) { drop(layer_norm(of({2, 3}), {2})); }},
    {"layer_norm F64", Errc::bad_dtype, [](auto&) { drop(layer_norm(doubles({2, 3}), {3})); }},
    {"group_norm", Errc::shape_mismatch, [](auto&) { drop(group_norm(of({1, 3, 2}), 2)); }},
    {"local_response_norm", Errc::invalid_argument,
     [](auto&) { drop(local_response_norm(of({1, 2, 3}), 0)); }},
    {"pdist", Errc::shape_mismatch, [](auto&) { drop(pdist(of({2}))); }},
    {"resize", Errc::invalid_argument, [](auto&) { drop(resize(of({1, 1, 2}), {})); }},
    {"resize shape", Errc::shape_mismatch, [](auto&) { drop(resize(of({2}), {.size = {4}})); }},
    {"grid_sample", Errc::unsupported,
     [](auto&) {
       drop(grid_sample(of({1, 1, 2, 2, 2}), of({1, 2, 2, 2, 3}), {.mode = GridMode::cubic}));
     }},
    {"affine_grid", Errc::shape_mismatch, [](auto&) { drop(affine_grid(of({1, 2, 2}), {1, 1, 2, 2})); }},
    {"lstm", Errc::invalid_argument, [](auto&) { drop(lstm(of({1, 1, 2}), {})); }},
    {"gru", Errc::shape_mismatch,
     [](auto&) {
       const RecurrentWeights weights[] = {{of({3, 6}), of({2, 6})}};
       drop(gru(of({1, 1, 2}), weights));
     }},
    {"fft", Errc::shape_mismatch, [](auto&) { drop(fft(of({3}))); }},
    {"rfft", Errc::bad_dtype, [](auto&) { drop(rfft(integers({1}))); }},
    {"irfft", Errc::invalid_argument, [](auto&) { drop(irfft(of({3, 2}), 0)); }},
    {"stft", Errc::shape_mismatch, [](auto&) { drop(stft(of({2}), 8, {.center = false})); }},
    {"hann_window", Errc::invalid_argument, [](auto&) { drop(hann_window(0)); }},
    {"nms", Errc::shape_mismatch, [](auto&) { drop(nms(of({2, 3}), of({2}), 0.5)); }},
    {"batched_nms", Errc::bad_dtype, [](auto&) { drop(batched_nms(of({2, 4}), of({2}), of({2}), 0.5)); }},
    {"roi_align", Errc::offset_out_of_range,
     [](auto&) { drop(roi_align(of({1, 1, 4, 4}), Tensor::from<float>({1, 0, 0, 2, 2}, {1, 5}))); }},
    {"mse_loss", Errc::shape_mismatch, [](auto&) { drop(mse_loss(of({2}), of({3}))); }},
    {"mse_loss integers", Errc::bad_dtype, [](auto&) { drop(mse_loss(integers({1}), integers({1}))); }},
    {"l1_loss", Errc::invalid_argument,
     [](auto&) { drop(l1_loss(of({2}), of({2}), LossReduction::batchmean)); }},
    {"huber_loss", Errc::invalid_argument, [](auto&) { drop(huber_loss(of({2}), of({2}), 0)); }},
    {"nll_loss", Errc::offset_out_of_range, [](auto&) { drop(nll_loss(of({1, 2}), integers({2}))); }},
    {"cross_entropy", Errc::invalid_argument,
     [](auto&) { drop(cross_entropy(of({1, 2}), integers({1}), {.label_smoothing = 2})); }},
    {"binary_cross_entropy", Errc::invalid_argument,
     [](auto&) { drop(binary_cross_entropy(floats({2}), floats({1}))); }},
    {"gaussian_nll_loss", Errc::invalid_argument,
     [](auto&) { drop(gaussian_nll_loss(floats({2}), floats({1}), floats({-1}))); }},
    {"ctc_loss", Errc::invalid_argument,
     [](auto&) {
       drop(ctc_loss(of({4, 1, 3}), Tensor::from<std::int64_t>({1}, {1, 1}), integers({4}), integers({1}),
                     {.blank = 3}));
     }},
    {"nn::Linear::Linear", Errc::size_overflow, [](auto&) { drop(nn::Linear(-1, 2)); }},
    {"nn::Linear::forward no weights", Errc::invalid_argument,
     [](auto&) { drop(nn::Linear(2, 2).forward(of({1, 2}))); }},
    {"nn::GroupNorm::GroupNorm", Errc::invalid_argument, [](auto&) { drop(nn::GroupNorm(2, 3)); }},
    {"nn::MultiheadAttention::MultiheadAttention", Errc::invalid_argument,
     [](auto&) { drop(nn::MultiheadAttention(4, 3)); }},
    {"nn::KVCache::append", Errc::shape_mismatch,
     [](auto&) {
       nn::KVCache cache;
       cache.append(of({1, 1, 2, 4}), of({1, 1, 3, 4}));
     }},
    {"nn::KVCache::truncate", Errc::invalid_argument, [](auto&) { nn::KVCache().truncate(1); }},
    {"nn::LSTM::LSTM", Errc::invalid_argument, [](auto&) { drop(nn::LSTM(2, 2, {.num_layers = 0})); }},
    {"nn::Embedding::forward", Errc::offset_out_of_range,
     [](auto&) {
       nn::Embedding layer(2, 3);
       layer.weight = of({2, 3});
       drop(layer.forward(integers({2})));
     }},
    {"trace no inputs", Errc::invalid_argument, [](auto&) { drop(trace(nn::ReLU(), {})); }},
    {"trace no name", Errc::bad_name, [](auto&) { drop(trace(nn::ReLU(), {{"", {2}}})); }},
    {"trace one name twice", Errc::duplicate_key, [](auto&) { drop(trace(nn::Bilinear(1, 1, 1), {{"x", {1}}, {"x", {1}}})); }},
    {"trace a size below 1", Errc::invalid_argument, [](auto&) { drop(trace(nn::ReLU(), {{"x", {0}}})); }},
    {"trace another number of tensors", Errc::invalid_argument,
     [](auto&) { drop(trace(nn::ReLU(), {{"x", {1}}, {"y", {1}}})); }},
    {"trace a value that is read", Errc::traced_value,
     [](auto&) {
       drop(trace(nn::ReLU(), {{"x", {1}}}, [](std::span<const Tensor> in) {
         return std::vector<Tensor>{in[0], Tensor::from<float>({in[0].item<float>()}, {1})};
       }));
     }},
    {"OperationCall::number", Errc::unsupported,
     [](auto&) {
       const Operation operation{.name = "none"};
       const Attributes attributes;
       drop(OperationCall{operation, {}, attributes}.number("dim"));
     }},
};

BALLAST_CONTRACTS(Operations, kRows);

}  // namespace
}  // namespace ballast::contracts
