// SPDX-License-Identifier: Apache-2.0
// Records that Burn's Json and PrettyJson recorders wrote: the same tree as in an .mpk, with bytes as lists
// of numbers. They are turned into MessagePack and read as that.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "ballast/storage.h"
#include "base/budget.h"

namespace ballast::burn {

[[nodiscard]] bool is_json_record(std::span<const std::byte> head) noexcept;
/// Bincode, which has neither names nor types in it.
[[nodiscard]] bool is_bin_record(std::span<const std::byte> head) noexcept;

/// Errc::bad_json, Errc::bad_utf8, Errc::bad_burn; Errc::expansion_limit when the budget has no room for it.
[[nodiscard]] std::shared_ptr<const Storage> mpk_of_json(std::span<const std::byte> json,
                                                         const std::string& where, Budget& budget);

}  // namespace ballast::burn
