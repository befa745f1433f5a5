// SPDX-License-Identifier: Apache-2.0
#include <ostream>
#include <string>
#include <vector>

#include "ballast/error.h"
#include "ballast/module.h"
#include "base/enum_names.h"
#include "base/key_path.h"

namespace ballast {

std::string_view name(LayerKind kind) noexcept {
  static constexpr std::string_view kNames[] = {
      "none",           "linear",     "bilinear",   "conv",
      "conv_transpose", "batch_norm", "layer_norm", "group_norm",
      "instance_norm",  "rms_norm",   "embedding",  "prelu",
      "lstm",           "gru",        "rnn",        "multihead_attention"};
  return name_in<LayerKind::multihead_attention>(kNames, kind);
}

std::ostream& operator<<(std::ostream& out, LayerKind kind) {
  return out << name(kind);
}

namespace detail {

bool is_buffer(const Slot& slot) noexcept {
  if (slot.kind != LayerKind::batch_norm && slot.kind != LayerKind::instance_norm) return false;
  return slot.field() != "gamma" && slot.field() != "beta";
}

namespace {

std::string_view relative(std::string_view path, std::string_view parent) {
  if (parent.empty() || path == parent) return path == parent ? std::string_view() : path;
  return path.substr(parent.size() + 1);
}

std::string with_separators(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

class TreePrinter {
 public:
  TreePrinter(const Slots& slots, std::ostream& out) : slots_(slots), out_(out) {}

  void run(std::string_view type) {
    for (const auto& each : slots_.nodes) {
      bare_tensors_before(each.first_slot);
      node(each);
    }
    bare_tensors_before(slots_.slots.size());
    out_ << (type.empty() ? "model" : display(type)) << ": " << with_separators(count({}, 0))
         << " parameters\n";
  }

 private:
  [[nodiscard]] std::int64_t count(std::string_view path, std::size_t first) const {
    std::int64_t total = 0;
    for (std::size_t i = first; i < slots_.slots.size() && key_path::is_under(slots_.slots[i].path, path);
         ++i) {
      if (!is_buffer(slots_.slots[i])) total += slots_.slots[i].tensor->numel();
    }
    return total;
  }

  // Leaves on the stack only what `path` lies in; its size is the indentation.
  std::string_view parent_of(std::string_view path) {
    while (!parents_.empty() && !key_path::is_under(path, parents_.back())) parents_.pop_back();
    return parents_.empty() ? std::string_view() : parents_.back();
  }

  void label(std::string_view path) {
    const std::string_view parent = parent_of(path);
    for (std::size_t i = 0; i < parents_.size(); ++i) out_ << "  ";
    if (const std::string_view own = relative(path, parent); !own.empty()) out_ << display(own) << ": ";
  }

  void node(const Node& node) {
    label(node.path);
    out_ << display(node.type);
    if (node.kind == LayerKind::none) {
      parents_.push_back(node.path);
      const std::int64_t own = count(node.path, node.first_slot);
      if (own > 0) out_ << " (" << with_separators(own) << ')';
    } else {
      out_ << '(';
      const char* separator = "";
      for (; next_ < slots_.slots.size() && key_path::is_under(slots_.slots[next_].path, node.path);
           ++next_) {
        out_ << std::exchange(separator, ", ") << relative(slots_.slots[next_].path, node.path) << ' '
             << slots_.slots[next_].tensor->shape();
      }
      out_ << ')';
    }
    out_ << '\n';
  }

  void bare_tensors_before(std::size_t end) {
    for (; next_ < end; ++next_) {
      label(slots_.slots[next_].path);
      const Tensor& tensor = *slots_.slots[next_].tensor;
      out_ << info(tensor.dtype()).code << ' ' << tensor.shape() << '\n';
    }
  }

  const Slots& slots_;
  std::ostream& out_;
  std::vector<std::string_view> parents_;
  std::size_t next_ = 0;
};

}  // namespace

void print(const Slots& slots, std::string_view type, std::ostream& out) {
  TreePrinter(slots, out).run(type);
}

}  // namespace detail
}  // namespace ballast
