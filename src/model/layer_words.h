// SPDX-License-Identifier: Apache-2.0
// What names say of layers, where shapes leave it open.
#pragma once

#include <string>
#include <string_view>

namespace ballast::words {

/// What people call it, in small letters: "encoder.Head.0" is called "head".
[[nodiscard]] std::string called(std::string_view path);

// Of what called() gives.
[[nodiscard]] bool say_embedding(const std::string& name);
[[nodiscard]] bool say_linear(const std::string& name);
[[nodiscard]] bool say_norm(const std::string& name);
[[nodiscard]] bool say_activation(const std::string& name);

/// A field of many layers: "weight", "gamma".
[[nodiscard]] bool is_field(std::string_view name);

/// A matrix of a PyTorch layer that no table has: of weight norms and recurrent cells.
[[nodiscard]] bool is_unknown_matrix(std::string_view name);

}  // namespace ballast::words
