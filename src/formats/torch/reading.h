// SPDX-License-Identifier: Apache-2.0
// One file being read: the tree its values go to, the budget they are charged to, the machine at work, and
// what a value is to a call that takes it as an operand, or a refusal that says where it stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ballast/scan.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "checkpoint/value_tree.h"
#include "formats/torch/pickle.h"
#include "formats/torch/roles.h"

namespace ballast::torch {

struct Settings {
  bool inert = false;             ///< read past calls that could run code
  ScanReport* report = nullptr;   ///< gets every global and call
  std::uint64_t input_bytes = 0;  ///< of the whole file: what expansion is measured against
  double expansion = 16;          ///< how many times as much its tensors may show
  std::string where = "pickle";   ///< the file, for refusals
};

// What a value is.
[[nodiscard]] ValueNode* as_kind(Ref value, NodeKind kind) noexcept;
[[nodiscard]] std::optional<std::int64_t> as_int(Ref value) noexcept;
using ballast::as_text;  // bytes
/// A str; constants of PyTorch and the like, which are kept as text, are none.
[[nodiscard]] std::optional<std::string_view> as_text(Ref value) noexcept;
/// "torch.float32" of a dtype, layout, …: `role` says which.
[[nodiscard]] std::optional<std::string_view> as_constant(Ref value, Role role) noexcept;
/// A dict; a namespace, which is kept as one, is none.
[[nodiscard]] ValueNode* as_dict(Ref value) noexcept;
[[nodiscard]] Role role_of(Ref value) noexcept;
/// "cuda:0" of text or a torch.device; nullopt for what is no device's name.
[[nodiscard]] std::optional<std::string_view> device_text(Ref value) noexcept;
[[nodiscard]] bool is_device_name(std::string_view text) noexcept;
/// "meta", "meta:0": of its tensors PyTorch keeps no numbers.
[[nodiscard]] bool is_meta(std::string_view device) noexcept;

class Reading {
 public:
  Reading(std::shared_ptr<ValueTree> tree, Settings settings);
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  ~Reading();

  [[nodiscard]] ValueTree& tree() const noexcept { return *tree_; }

  [[nodiscard]] const std::shared_ptr<ValueTree>& shared_tree() const noexcept { return tree_; }

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  [[nodiscard]] Budget& budget() const noexcept { return *budget_; }

  Machine* machine = nullptr;                 ///< at work now
  std::optional<bool> keys_are_numbers = {};  ///< those of storages: all of a file are of one kind
  std::uint32_t streams = 0;                  ///< that were begun
  bool storages_come_last = false;            ///< behind the pickle: PyTorch fills them when it has read it

  /// Throws with the place the machine is at.
  template <class... Args>
  [[noreturn]] void refuse(Errc code, fmt::format_string<Args...> format, Args&&... args) const {
    fail(code, location(), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] std::string location() const;

  // `what` names the operand in the refusal.
  [[nodiscard]] std::int64_t need_int(Ref value, const char* what) const;
  [[nodiscard]] std::string_view need_text(Ref value, const char* what) const;
  /// bytes, or a Python 2 string.
  [[nodiscard]] std::string_view need_bytes(Ref value, const char* what) const;
  [[nodiscard]] std::span<const Ref> need_sequence(Ref value, const char* what) const;
  /// The keys of `kwargs`, a dict, are text.
  void need_keywords(Ref kwargs) const;
  /// The value of a text key, as it is now; nullptr when absent.
  [[nodiscard]] const Ref* find_now(const ValueNode* dict, std::string_view key) const;
  /// "a str", "a mynet.Block object": for refusals.
  [[nodiscard]] std::string describe(Ref value) const;

 private:
  std::shared_ptr<ValueTree> tree_;
  Settings settings_;
  std::shared_ptr<Budget> budget_;
};

}  // namespace ballast::torch
