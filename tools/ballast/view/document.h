// SPDX-License-Identifier: Apache-2.0
// A file that is looked at: its checkpoint, and what is made of it when it is first asked for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ballast/checkpoint.h"
#include "ballast/scan.h"
#include "rows.h"
#include "view/name_tree.h"

namespace tool::view {

/// Made by the first who asks; the others wait for it.
template <class T>
class Once {
 public:
  template <class Make>
  const T& get(Make make) {
    std::call_once(flag_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  std::once_flag flag_;
  std::optional<T> value_;
};

class Document {
 public:
  Document(std::string path, ballast::Checkpoint checkpoint);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() = default;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  [[nodiscard]] const ballast::Checkpoint& checkpoint() const noexcept { return checkpoint_; }

  /// In the file's order: a tensor's number is its position.
  [[nodiscard]] const std::vector<Row>& rows() const {
    return rows_.get([this] { return rows_of(checkpoint_); });
  }

  /// What is asked for first, made before it is: on a thread of its own, so that nobody waits for it.
  void warm_up();

  /// On disk: of all files, when there are several.
  [[nodiscard]] std::uint64_t file_bytes() const;

  [[nodiscard]] const NameTree& tree(bool fold);

  /// A row of the tree: what a node of it holds, or one tensor, whose name ends there.
  struct Child {
    std::uint32_t node;
    std::uint32_t tensor;
    bool is_tensor;
  };

  using Children = std::vector<Child>;
  using ChildrenKey =
      std::tuple<bool, std::uint32_t, std::string>;  ///< folded, below which node, in which order

  /// Long lists are kept, the last ones: a page of 100,000 rows is asked for again and again.
  [[nodiscard]] std::shared_ptr<const Children> children(const ChildrenKey& key,
                                                         const std::function<Children()>& make);
  /// "file", "name", "bytes" or "parameters" (largest first): tensors in that order.
  [[nodiscard]] const std::vector<std::uint32_t>& order(const std::string& by);
  /// All names in lower case, by number.
  [[nodiscard]] const std::vector<std::string>& lower_names();
  /// An answer that never changes, made by the first who asks for it.
  [[nodiscard]] const std::string& layout_answer(const std::function<std::string()>& make) {
    return layout_.get(make);
  }

  [[nodiscard]] const std::string& scan_answer(const std::function<std::string()>& make) {
    return scan_text_.get(make);
  }

  /// Without checksums: the bytes of the weights are not read.
  [[nodiscard]] const ballast::ScanReport& scan();
  /// Other names of the same tensor, up to `most`.
  [[nodiscard]] std::vector<std::string> tied(std::size_t number, std::size_t most = 20);
  /// The number of a tensor that is found elsewhere, in the tree of objects.
  [[nodiscard]] std::optional<std::size_t> number_of(const ballast::Tensor& tensor);
  /// Refused (404) beyond the last.
  [[nodiscard]] ballast::Tensor tensor(std::size_t number) const;

 private:
  using Places = std::multimap<std::pair<const void*, std::uint64_t>, std::size_t>;

  std::string path_;
  ballast::Checkpoint checkpoint_;
  mutable Once<std::vector<Row>> rows_;
  Once<NameTree> folded_;
  Once<NameTree> plain_;
  Once<std::vector<std::uint32_t>> by_file_;
  Once<std::vector<std::uint32_t>> by_name_;
  Once<std::vector<std::uint32_t>> by_bytes_;
  Once<std::vector<std::uint32_t>> by_parameters_;
  Once<std::vector<std::string>> lower_;
  Once<std::string> layout_;
  Once<std::string> scan_text_;
  Once<ballast::ScanReport> scan_;
  Once<std::multimap<std::size_t, std::size_t>> ties_;  // first → all of them
  Once<Places> places_;
  std::mutex children_mutex_;
  std::deque<std::pair<ChildrenKey, std::shared_ptr<const Children>>> children_;
};

}  // namespace tool::view
