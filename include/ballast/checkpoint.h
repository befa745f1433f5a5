// SPDX-License-Identifier: Apache-2.0
// Checkpoint: what a weights file holds. Named tensors in the file's order, string metadata, and notes of
// what the reader found worth saying. A plain value: copy it, change it, hand it around; the bytes of its
// tensors stay where they are.
//
// Throws: what the functions say, and std::bad_alloc. Owns: a Checkpoint its names and shapes, and with its
// copies the storages of its tensors; a Tensor taken from it keeps its bytes without it. Threads: reading one
// from several at once is safe, changing it is not. Costs: a copy copies names and shapes, never tensors'
// bytes; nothing here reads any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ballast/detail/name_index.h"
#include "ballast/format.h"
#include "ballast/tensor.h"
#include "ballast/value.h"

#pragma GCC visibility push(default)

namespace ballast {

class Checkpoint;
class CheckpointBuilder;

/// One tensor of a Checkpoint, described without touching its bytes. Valid as long as the Checkpoint is, and
/// unchanged.
struct Entry {
  std::string_view name;  ///< its key; unescaped, as the file has it
  DType dtype;            ///< of its elements
  ShapeView shape;        ///< a view of the Checkpoint's own
  std::uint64_t bytes;    ///< of the row-major form

  /// A view that keeps its storage alive, so it may outlive the Checkpoint. Reads nothing yet; never refused.
  [[nodiscard]] Tensor tensor() const;

 private:
  friend class Checkpoint;
  Entry(const Checkpoint& owner, std::size_t index);
  const Checkpoint* owner_;
  std::size_t index_;
};

/// Text by key, as Safetensors files have it. Keys that begin with "ballast." are Ballast's own marks: ties,
/// quantization, whose layout it is (docs/formats/record.md). What follows them refuses those that are
/// damaged: Errc::bad_json, bad_utf8, duplicate_key, too_many, bad_dtype, unsupported.
using Metadata = std::map<std::string, std::string>;

/// What a file holds: tensors by name and in order, text by key, and for PyTorch's files the tree of
/// everything. A value: copies share the tensors' bytes, and none is read before somebody asks. Reading
/// one from several threads is safe, changing it is not.
class Checkpoint {
 public:
  class Iterator;

  Checkpoint();
  Checkpoint(const Checkpoint& other);
  Checkpoint& operator=(const Checkpoint& other);
  Checkpoint(Checkpoint&& other) noexcept;
  Checkpoint& operator=(Checkpoint&& other) noexcept;
  ~Checkpoint();

  // Tensors, in order.
  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }

  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }

  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

  [[nodiscard]] Entry operator[](std::size_t index) const { return {*this, index}; }

  // Tensors, by name.
  /// Where the tensor of this name stands; nullopt when there is none. Takes constant time.
  [[nodiscard]] std::optional<std::size_t> position(std::string_view name) const noexcept;

  /// Whether there is a tensor of this name.
  [[nodiscard]] bool contains(std::string_view name) const noexcept { return position(name).has_value(); }

  /// Errc::not_found with the nearest names when there is none.
  [[nodiscard]] Entry at(std::string_view name) const;

  /// The tensor of this name, a view that may outlive the Checkpoint; Errc::not_found as at().
  [[nodiscard]] Tensor tensor(std::string_view name) const { return at(name).tensor(); }

  /// The bytes of all tensors in their row-major form; tied ones count each time.
  [[nodiscard]] std::uint64_t total_bytes() const noexcept;

  /// Appends a view; the name is copied. Errc::duplicate_key when the name is taken, invalid_argument for an
  /// undefined tensor. A shape alone is taken, and by save() refused, but for PyTorch's formats. Entries and
  /// iterators of before end here.
  void add(std::string_view name, const Tensor& tensor);
  /// Room for so many, so that add() moves nothing.
  void reserve(std::size_t tensors);

  /// Absent and empty are two things in Safetensors files.
  std::optional<Metadata> metadata = {};
  std::vector<std::string> notes = {};  ///< sentences for people
  Format format = {};                   ///< what it was opened from; none when made by hand
  std::string path = {};                ///< the file it was opened from; for messages
  /// PyTorch files: everything that was saved, tensors included.
  std::optional<Value> tree = {};

  /// A value of the tree by its dotted path: "optimizer.param_groups.0.lr"; it keeps its tree alive.
  /// Errc::not_found when it, or the tree, is not there.
  [[nodiscard]] Value value(std::string_view dotted) const;

 private:
  friend struct Entry;
  friend class CheckpointBuilder;

  static constexpr std::uint32_t kNoStorage = 0xFFFFFFFF;

  // 40 bytes a tensor, so that listing 100,000 of them stays in cache; shapes and strides lie in one flat
  // vector.
  struct Record {
    const char* name;
    std::uint64_t bit_offset;
    std::uint32_t name_size;
    std::uint32_t rank;
    std::uint32_t storage;  // kNoStorage: shape only
    DType dtype;
    bool strided;        // rank strides follow the rank dimensions
    std::uint64_t dims;  // index into dims_
  };

  // Names copied by add(): blocks that never move. A copy of the Checkpoint shares them and writes into new
  // ones.
  class NameBlocks {
   public:
    NameBlocks() = default;
    NameBlocks(const NameBlocks& other);
    NameBlocks& operator=(const NameBlocks& other);
    NameBlocks(NameBlocks&&) = default;
    NameBlocks& operator=(NameBlocks&&) = default;
    ~NameBlocks() = default;
    std::string_view store(std::string_view text);

   private:
    std::vector<std::shared_ptr<const void>> blocks_;
    std::size_t left_ = 0;
    char* next_ = nullptr;
  };

  [[nodiscard]] std::string_view name_of(const Record& record) const noexcept {
    return {record.name, record.name_size};
  }

  bool append(const Record& record);

  std::vector<Record> records_;
  std::vector<std::int64_t> dims_;
  std::vector<std::shared_ptr<const Storage>> storages_;
  detail::NameIndex index_;
  std::vector<std::shared_ptr<const void>> owners_;
  NameBlocks names_;
};

/// Gives entries, made as they are asked for. Invalid when the Checkpoint changes.
class Checkpoint::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Entry;
  using difference_type = std::ptrdiff_t;
  using reference = Entry;
  using pointer = void;

  Entry operator*() const { return (*owner_)[index_]; }

  Iterator& operator++() {
    ++index_;
    return *this;
  }

  void operator++(int) { ++index_; }

  friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

 private:
  friend class Checkpoint;

  Iterator(const Checkpoint& owner, std::size_t index) : owner_(&owner), index_(index) {}

  const Checkpoint* owner_;
  std::size_t index_;
};

inline Checkpoint::Iterator Checkpoint::begin() const {
  return {*this, 0};
}

inline Checkpoint::Iterator Checkpoint::end() const {
  return {*this, size()};
}

/// For readers of formats: fills a Checkpoint with tensors that are views of a few storages, without a Tensor
/// for each. What it adds is in the Checkpoint at once; one of them may be made for every call.
class CheckpointBuilder {
 public:
  /// As the storage of a tensor: there is none, only a shape.
  static constexpr std::uint32_t kNoStorage = Checkpoint::kNoStorage;

  /// Keeps a reference: the Checkpoint must outlive it.
  explicit CheckpointBuilder(Checkpoint& into) noexcept : into_(into) {}

  /// The number of this storage, for add_view().
  [[nodiscard]] std::uint32_t add_storage(std::shared_ptr<const Storage> storage);
  /// All storages at once, before anything is added: their numbers are their positions.
  void set_storages(std::vector<std::shared_ptr<const Storage>> storages);

  /// A row-major tensor of a storage that begins `bit_offset` bits into it, its name and shape taken as they
  /// are: the tensor must lie inside the storage. The name must stay where it is as long as something given
  /// to keep_alive() lives. False, and nothing added, when the name is taken.
  [[nodiscard]] bool add_view(std::string_view name, DType dtype, ShapeView shape, std::uint32_t storage,
                              std::uint64_t bit_offset);
  /// The same with strides of its own.
  [[nodiscard]] bool add_view(std::string_view name, DType dtype, ShapeView shape, ShapeView strides,
                              std::uint32_t storage, std::uint64_t bit_offset);

  /// A copy of the text that lives as long as the Checkpoint, or a copy of it: for add_view().
  [[nodiscard]] std::string_view store_name(std::string_view name);
  /// What names point into.
  void keep_alive(std::shared_ptr<const void> owner);

 private:
  Checkpoint& into_;
};

/// One tensor under two names, by positions: `tensor` is the very view that `first` is.
struct Tie {
  std::size_t tensor;  ///< position of the second name
  std::size_t first;   ///< position of the first name
  friend bool operator==(const Tie&, const Tie&) = default;
};

/// All of them, in order. Files that hold a tied tensor once say so in their metadata; open() gives it all
/// its names. Compares views, never bytes. Errc::expansion_limit where long names are said too often.
[[nodiscard]] std::vector<Tie> ties(const Checkpoint& checkpoint);

}  // namespace ballast

#pragma GCC visibility pop
