// SPDX-License-Identifier: Apache-2.0
// The tar of torch before 0.1.10.
//
//   sys_info   a pickle
//   storages   pickle(count); for each: pickle((key, location, class)), element count (int64), elements; then
//   pickle([(key, root, offset, count)…]) of views tensors    pickle(count); for each: pickle((key, storage
//   key, class)), dims (int32), 4 bytes unused, sizes, strides, offset (int64 each) pickle     the object;
//   tensors are persistent ids: a key, as text or number
#include "containers/tar.h"

#include <charconv>
#include <functional>
#include <map>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "formats/torch/reader.h"

namespace ballast::torch {
namespace {

using containers::TarMember;

constexpr std::uint64_t kWindow = 4096;

// Pickles and raw numbers of one member, in turn.
class Cursor {
 public:
  Cursor(Objects& objects, const ByteSource& source, const TarMember& member)
      : objects_(objects),
        source_(source),
        member_(member),
        where_(fmt::format("{}: member {}", source.where(), quoted(member.name))) {}

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

  [[nodiscard]] std::uint64_t left() const noexcept { return member_.size - position_; }

  [[nodiscard]] std::uint64_t offset() const noexcept { return member_.offset + position_; }

  Ref pickle(std::function<Ref(Ref)> persistent = {}) {
    std::uint64_t window = std::min(left(), kWindow);
    while (window < std::min(left(), kMaxPickleBytes) &&
           !pickle_length(span_of(*load_range(source_, offset(), window)))) {
      window = std::min({left(), window * 4, kMaxPickleBytes});
    }
    const auto length = pickle_length(span_of(*load_range(source_, offset(), window)));
    const auto bytes = load_range(source_, offset(), length.value_or(window));
    std::size_t used = 0;
    const Ref value = run_pickle(
        objects_, bytes, 0,
        {.where = where_, .entry = member_.name, .base = position_, .persistent = std::move(persistent)},
        used);
    position_ += used;
    return value;
  }

  template <class T>
  T number() {
    need(sizeof(T));
    const auto bytes = load_range(source_, offset(), sizeof(T));
    position_ += sizeof(T);
    return load_le<T>(bytes->data());
  }

  void need(std::uint64_t bytes) const {
    if (bytes > left())
      fail(Errc::truncated, where_, "needs {} bytes at byte {}, {} are left", bytes, position_, left());
  }

  void skip(std::uint64_t bytes) {
    need(bytes);
    position_ += bytes;
  }

  void end() {
    if (left() != 0) refuse_trailing(objects_, where_, member_.name, position_, left());
  }

 private:
  Objects& objects_;
  const ByteSource& source_;
  const TarMember& member_;
  std::string where_;
  std::uint64_t position_ = 0;
};

// As int() reads the text that PyTorch wrote; other spellings of the same number are nobody's.
std::optional<std::int64_t> plain_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || std::to_string(number) != text)
    return std::nullopt;
  return number;
}

class Tar {
 public:
  Tar(Objects& objects, const ByteSource& source)
      : objects_(objects), source_(source), members_(containers::read_tar_members(source)) {}

  Ref read() {
    const TarMember* storages = find("storages");
    const TarMember* tensors = find("tensors");
    const TarMember* object = find("pickle");
    if (storages == nullptr || tensors == nullptr || object == nullptr) {
      fail(Errc::unknown_format, source_.where(),
           "is a tar archive without the members of a PyTorch file (pickle, storages, tensors)");
    }
    if (const TarMember* info = find("sys_info")) {
      Cursor cursor(objects_, source_, *info);
      static_cast<void>(cursor.pickle());
      cursor.end();
    }
    for (const TarMember& member : members_) {
      const bool is_known = &member == storages || &member == tensors || &member == object ||
                            &member == find("sys_info") || member.size == 0;
      if (!is_known)
        objects_.ledger().find(Severity::warning, Errc::trailing_data,
                               "a member that the object does not name", 0, member.name);
    }
    read_storages(*storages);
    read_tensors(*tensors);
    Cursor cursor(objects_, source_, *object);
    const Ref root = cursor.pickle([this](Ref id) { return persistent(id); });
    cursor.end();
    return root;
  }

 private:
  [[nodiscard]] const TarMember* find(std::string_view name) const {
    for (const TarMember& member : members_) {
      if (member.name == name || member.name == std::string("./") + std::string(name)) return &member;
    }
    return nullptr;
  }

  std::int64_t count(Cursor& cursor) {
    const Ref value = cursor.pickle();
    const auto number = as_int(value);
    if (!number) fail(Errc::type_mismatch, cursor.where(), "a count that is {}", objects_.describe(value));
    if (*number < 0) fail(Errc::bad_tar, cursor.where(), "a count of {}", *number);
    return *number;
  }

  std::span<const Ref> tuple(const Cursor& cursor, Ref value, std::size_t size) {
    const ValueNode* node = as_kind(value, NodeKind::tuple);
    if (node == nullptr) node = as_kind(value, NodeKind::list);
    if (node == nullptr || node->size != size)
      fail(Errc::type_mismatch, cursor.where(), "an entry that is no tuple of {}", size);
    return {node->refs, node->size};
  }

  // Storages, views and tensors share one set of keys, which are numbers.
  std::int64_t need_key(const Cursor& cursor, Ref key) {
    const auto number = as_int(key);
    if (!number)
      fail(Errc::type_mismatch, cursor.where(), "a key that is {}, not a number", objects_.describe(key));
    return *number;
  }

  void keep(const Cursor& cursor, Ref key, Ref value) {
    const std::int64_t number = need_key(cursor, key);
    if (!values_.emplace(number, value).second)
      fail(Errc::duplicate_key, cursor.where(), "the key {} comes twice", number);
  }

  TypeId location_of(const Cursor& cursor, Ref given) {
    const auto location = as_text(given);
    if (!location)
      fail(Errc::type_mismatch, cursor.where(), "a storage's location that is {}", objects_.describe(given));
    if (*location == "cpu") return 0;
    if (!location->starts_with("cuda"))
      objects_.ledger().find(Severity::warning, Errc::unsupported,
                             "a storage of a device that this format did not have", 0, {});
    return objects_.tree().type_id(*location);
  }

  void read_storages(const TarMember& member) {
    Cursor cursor(objects_, source_, member);
    for (std::int64_t left = count(cursor); left > 0; --left) {
      const auto parts = tuple(cursor, cursor.pickle(), 3);
      const auto dtype = objects_.views().dtype_of_class(parts[2]);
      const auto numel = cursor.number<std::int64_t>();
      if (numel < 0) fail(Errc::bad_tar, cursor.where(), "a storage of {} elements", numel);
      const auto bytes = storage_bytes(dtype, numel);
      if (!bytes) fail(Errc::size_overflow, cursor.where(), "a storage of {} elements", numel);
      cursor.need(*bytes);
      objects_.budget().take(512);
      const StorageInfo info{.dtype = dtype,
                             .location = location_of(cursor, parts[1]),
                             .numel = static_cast<std::uint64_t>(numel),
                             .offset = 0,
                             .index = static_cast<std::uint32_t>(objects_.tree().storages.size()),
                             .big_endian = false};
      objects_.tree().storages.push_back(range_of(source_, cursor.offset(), *bytes));
      cursor.skip(*bytes);
      keep(cursor, parts[0], objects_.views().storage(info, parts[2].node()->type));
    }
    read_views(cursor);
    cursor.end();
  }

  void read_views(Cursor& cursor) {
    for (const Ref view : objects_.need_sequence(cursor.pickle(), "the storage views")) {
      const auto parts = tuple(cursor, view, 4);
      const Ref root = storage(cursor, parts[1]);
      StorageInfo info = objects_.views().info_of(root);
      const std::int64_t offset = objects_.need_int(parts[2], "a view's offset");
      const std::int64_t size = objects_.need_int(parts[3], "a view's count");
      if (offset < 0 || size < 0 ||
          !fits(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(size), info.numel)) {
        fail(Errc::offset_out_of_range, cursor.where(), "a view of {} elements from {} of a storage of {}",
             size, offset, info.numel);
      }
      info.offset += static_cast<std::uint64_t>(offset);
      info.numel = static_cast<std::uint64_t>(size);
      keep(cursor, parts[0], objects_.views().storage(info, root.node()->type));
    }
  }

  Ref storage(const Cursor& cursor, Ref key) {
    const auto found = values_.find(need_key(cursor, key));
    if (found == values_.end() || as_kind(found->second, NodeKind::storage) == nullptr)
      fail(Errc::missing_storage, cursor.where(), "storage {} is not in the file", need_key(cursor, key));
    return found->second;
  }

  void read_tensors(const TarMember& member) {
    Cursor cursor(objects_, source_, member);
    for (std::int64_t left = count(cursor); left > 0; --left) {
      const auto parts = tuple(cursor, cursor.pickle(), 3);
      const Ref held = storage(cursor, parts[1]);
      const auto dtype = objects_.views().dtype_of_class(parts[2]);
      if (dtype && objects_.views().info_of(held).dtype && dtype != objects_.views().info_of(held).dtype) {
        fail(Errc::bad_dtype, cursor.where(), "a tensor of {} over a storage of another type",
             info(*dtype).code);
      }
      const auto rank = cursor.number<std::int32_t>();
      if (rank < 0 || rank > static_cast<std::int32_t>(kMaxRank))
        fail(Errc::bad_tar, cursor.where(), "a tensor of {} dimensions", rank);
      cursor.skip(4);
      std::vector<Ref> numbers;
      for (std::int32_t i = 0; i < 2 * rank; ++i)
        numbers.push_back(objects_.tree().integer(cursor.number<std::int64_t>()));
      const auto dims = static_cast<std::size_t>(rank);
      const ViewArguments view{.offset = cursor.number<std::int64_t>(),
                               .sizes = std::span(numbers).first(dims),
                               .strides = std::span(numbers).subspan(dims)};
      keep(cursor, parts[0], objects_.views().tensor(held, view, {}, false));
    }
    cursor.end();
  }

  // A tensor's or storage's key; or (class, file, source text): the class.
  Ref persistent(Ref id) {
    const ValueNode* made = as_kind(id, NodeKind::tuple);
    if (made != nullptr && made->size != 0) {
      objects_.ledger().find(Severity::warning, Errc::unsupported,
                             "a class with its source, which PyTorch compares with its own", 0, {});
      return made->refs[0];
    }
    const auto text = as_text(id);
    const auto key = text ? plain_number(*text) : as_int(id);
    if (!key) objects_.refuse(Errc::type_mismatch, "a persistent id that is no number");
    const auto found = values_.find(*key);
    if (found == values_.end()) objects_.refuse(Errc::missing_storage, "tensor {} is not in the file", *key);
    return found->second;
  }

  Objects& objects_;
  const ByteSource& source_;
  std::vector<TarMember> members_;
  std::map<std::int64_t, Ref> values_;  // storages and tensors by key
};

}  // namespace

Ref read_tar(Objects& objects, const ByteSource& source, Document& document) {
  document.format = formats::torch_tar;
  return Tar(objects, source).read();
}

}  // namespace ballast::torch
