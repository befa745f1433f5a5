// SPDX-License-Identifier: Apache-2.0
// What an operation's results look like (dtype and shape), told from its operands without computing them: a
// trace asks for nothing else. The column `form` of the rows.
#pragma once

#include <optional>
#include <vector>

#include "ballast/operation.h"

namespace ballast::ops {

using Forms = std::vector<Tensor>;  // without data

namespace forms {

[[nodiscard]] std::optional<Forms> arithmetic(const OperationCall& call);
[[nodiscard]] std::optional<Forms> quotient(const OperationCall& call);
[[nodiscard]] std::optional<Forms> prelu(const OperationCall& call);
[[nodiscard]] std::optional<Forms> comparison(const OperationCall& call);
[[nodiscard]] std::optional<Forms> where(const OperationCall& call);
[[nodiscard]] std::optional<Forms> function(const OperationCall& call);
[[nodiscard]] std::optional<Forms> softmax(const OperationCall& call);
[[nodiscard]] std::optional<Forms> triangle(const OperationCall& call);
[[nodiscard]] std::optional<Forms> concat(const OperationCall& call);
[[nodiscard]] std::optional<Forms> pad(const OperationCall& call);
[[nodiscard]] std::optional<Forms> linear(const OperationCall& call);
[[nodiscard]] std::optional<Forms> matmul(const OperationCall& call);
[[nodiscard]] std::optional<Forms> conv(const OperationCall& call);
[[nodiscard]] std::optional<Forms> conv_transpose(const OperationCall& call);
[[nodiscard]] std::optional<Forms> roi_align(const OperationCall& call);
[[nodiscard]] std::optional<Forms> pooled_with_indices(const OperationCall& call);
[[nodiscard]] std::optional<Forms> pooled(const OperationCall& call);
[[nodiscard]] std::optional<Forms> adaptive_pool(const OperationCall& call);
[[nodiscard]] std::optional<Forms> resize(const OperationCall& call);
[[nodiscard]] std::optional<Forms> grid_sample(const OperationCall& call);
[[nodiscard]] std::optional<Forms> dft(const OperationCall& call);
[[nodiscard]] std::optional<Forms> attention(const OperationCall& call);
[[nodiscard]] std::optional<Forms> batch_norm(const OperationCall& call);
[[nodiscard]] std::optional<Forms> group_norm(const OperationCall& call);
[[nodiscard]] std::optional<Forms> instance_norm(const OperationCall& call);
[[nodiscard]] std::optional<Forms> norm_of_last(const OperationCall& call);
[[nodiscard]] std::optional<Forms> lstm(const OperationCall& call);
[[nodiscard]] std::optional<Forms> gru(const OperationCall& call);
[[nodiscard]] std::optional<Forms> rnn(const OperationCall& call);
[[nodiscard]] std::optional<Forms> sum(const OperationCall& call);
[[nodiscard]] std::optional<Forms> mean(const OperationCall& call);
[[nodiscard]] std::optional<Forms> extreme(const OperationCall& call);
[[nodiscard]] std::optional<Forms> truth(const OperationCall& call);
[[nodiscard]] std::optional<Forms> place(const OperationCall& call);
[[nodiscard]] std::optional<Forms> cumsum(const OperationCall& call);
[[nodiscard]] std::optional<Forms> ordered(const OperationCall& call);
[[nodiscard]] std::optional<Forms> embedding(const OperationCall& call);
[[nodiscard]] std::optional<Forms> index_select(const OperationCall& call);
[[nodiscard]] std::optional<Forms> gather(const OperationCall& call);
[[nodiscard]] std::optional<Forms> scatter(const OperationCall& call);
[[nodiscard]] std::optional<Forms> scatter_add(const OperationCall& call);
[[nodiscard]] std::optional<Forms> one_hot(const OperationCall& call);

}  // namespace forms
}  // namespace ballast::ops
