// SPDX-License-Identifier: Apache-2.0
// The legacy stream (torch 0.1.10 to 1.5, still written on request), and pickles without a container.
//
//   1. pickle  the magic number 0x1950a86a20f9469cfc6c
//   2. pickle  the version, 1001
//   3. pickle  sys_info: a dict
//   4. pickle  the object; storages are persistent ids ('storage', class, key, location, count, view)
//   5. pickle  the keys, in the order of what follows
//   6. for each key: element count (int64), then the elements, little-endian, not aligned
//
// The storages come after the pickles that use them: until then their tensors look at an empty promise.
#include "formats/torch/legacy.h"

#include <functional>
#include <utility>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "formats/torch/reader.h"
#include "tensor/forwarding.h"

namespace ballast::torch {
namespace {

constexpr std::uint64_t kFirstLoad = std::uint64_t{1} << 20U;
constexpr std::uint64_t kNextLoad = std::uint64_t{1}
                                    << 12U;  // of further objects, of which there may be many
constexpr std::size_t kSmallPickle = 64;     // a magic number in any protocol is smaller

// Bytes whose place is learned later.
class PromisedStorage final : public ForwardingStorage {
 public:
  explicit PromisedStorage(std::uint64_t size) : ForwardingStorage(size) {}

  void keep(std::shared_ptr<const Storage> storage) { kept_ = std::move(storage); }

 private:
  [[nodiscard]] const Storage& content() const override {
    if (!kept_) fail(Errc::missing_storage, "storage", "its bytes are not in the file");
    return *kept_;
  }

  std::shared_ptr<const Storage> kept_;
};

struct Promise {
  std::shared_ptr<PromisedStorage> storage;
  std::uint32_t index = 0;  // in the tree
  std::uint64_t numel = 0;
  std::uint64_t bytes = 0;
  FirstMention mention;
  bool kept = false;
};

// A window of a storage. PyTorch keeps windows and storages under their keys in one table, and goes by what
// it finds there.
struct Window {
  std::string root;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  friend bool operator==(const Window&, const Window&) = default;
};

struct Promises {
  NameMap<Promise> storages;
  NameMap<Window> windows;
};

Promise& promise_of(Objects& objects, Promises& promises, const StorageId& id) {
  if (promises.windows.contains(id.key))
    objects.refuse(Errc::duplicate_key, "storage {} has the key of a window of another", quoted(id.key));
  const auto [slot, added] = promises.storages.try_emplace(id.key);
  Promise& promise = slot->second;
  if (added) {
    objects.budget().take(288 + id.key.size());
    promise.mention = FirstMention(id);
    promise.storage = std::make_shared<PromisedStorage>(id.bytes);
    promise.index = static_cast<std::uint32_t>(objects.tree().storages.size());
    promise.numel = id.numel;
    promise.bytes = id.bytes;
    objects.tree().storages.push_back(promise.storage);
  } else {
    promise.mention.check(objects, id);
  }
  return promise;
}

void check_window(Objects& objects, Promises& promises, const std::string& key, const Window& window) {
  if (promises.storages.contains(key))
    objects.refuse(Errc::duplicate_key, "a window has the key of storage {}", quoted(key));
  const auto [slot, added] = promises.windows.try_emplace(key, window);
  if (added) objects.budget().take(256 + key.size() + window.root.size());
  if (!(slot->second == window))
    objects.refuse(Errc::duplicate_key, "two different windows of storages are called {}", quoted(key));
}

// ('module', class, file, source): the class. ('storage', …): the storage, or a window of it.
Ref load_persistent(Objects& objects, Promises& promises, Ref id) {
  const auto parts = objects.need_sequence(id, "a persistent id");
  if (parts.size() >= 2 && as_text(parts[0]) == "module") {
    objects.ledger().find(Severity::warning, Errc::unsupported,
                          "a class with its source, which PyTorch compares with its own", 0, {});
    return parts[1];
  }
  const StorageId storage = parse_storage_id(objects, id);
  const std::uint32_t index = promise_of(objects, promises, storage).index;
  StorageInfo info{.dtype = storage.dtype,
                   .location = storage.location,
                   .numel = storage.numel,
                   .offset = 0,
                   .index = index,
                   .big_endian = false};
  if (!storage.view.is_none()) {
    const auto view = objects.need_sequence(storage.view, "a storage's view");
    if (view.size() != 3) objects.refuse(Errc::type_mismatch, "a storage's view of {} parts", view.size());
    const std::int64_t offset = objects.need_int(view[1], "a view's offset");
    const std::int64_t count = objects.need_int(view[2], "a view's count");
    if (offset < 0 || count < 0 ||
        !fits(static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(count), storage.numel)) {
      objects.refuse(Errc::offset_out_of_range, "a view of {} elements from {} of a storage of {}", count,
                     offset, storage.numel);
    }
    check_window(objects, promises, key_text(objects, view[0], "a view's key"), {storage.key, offset, count});
    info.offset = static_cast<std::uint64_t>(offset);
    info.numel = static_cast<std::uint64_t>(count);
  }
  return objects.views().storage(info, storage.type);
}

// The magic number, looked for without running anything.
bool holds_magic(std::string_view pickle) {
  if (pickle.size() > kSmallPickle) return false;
  return pickle.find("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") != std::string_view::npos ||
         pickle.find(kLegacyMagic) != std::string_view::npos;
}

// As much of the file as its pickles take: five when the first is the magic number.
std::shared_ptr<const Storage> load_pickles(const ByteSource& source, std::uint64_t begin) {
  const std::uint64_t left = source.size() - begin;
  for (std::uint64_t size = std::min(left, begin == 0 ? kFirstLoad : kNextLoad);;) {
    auto bytes = load_range(source, begin, size);
    const auto span = span_of(*bytes);
    std::size_t position = 0;
    int wanted = 1;
    for (int found = 0; found < wanted; ++found) {
      const auto length = pickle_length(span.subspan(position));
      if (!length) break;
      if (found == 0 && holds_magic(as_text(span.first(*length)))) wanted = 5;
      position += *length;
      if (found + 1 == wanted) return bytes;
    }
    if (size == left) return bytes;
    if (size == kMaxPickleBytes)
      fail(Errc::header_too_large, source.where(), "a pickle of more than {} bytes", kMaxPickleBytes);
    size = std::min({left, size * 4, kMaxPickleBytes});
  }
}

void check_sys_info(Objects& objects, const ByteSource& source, Ref info) {
  const ValueNode* dict = as_dict(info);
  if (dict == nullptr)
    fail(Errc::type_mismatch, source.where(), "sys_info is {}, not a dict", objects.describe(info));
  // PyTorch writes storages little-endian whatever this says, so it is not used; but it must be a flag.
  const Ref* little = objects.tree().find(dict, "little_endian");
  if (little != nullptr && !little->is_bool())
    fail(Errc::type_mismatch, source.where(), "little_endian is {}, not a bool", objects.describe(*little));
}

// Reads the storages' headers and keeps the promises; the place behind the last one.
std::uint64_t keep_promises(Objects& objects, const ByteSource& source, Ref keys, std::uint64_t position,
                            Promises& promises) {
  const ValueNode* list = as_kind(keys, NodeKind::list);
  if (list == nullptr)
    fail(Errc::type_mismatch, source.where(), "the list of storages is {}, not a list",
         objects.describe(keys));
  for (std::uint32_t i = 0; i < list->size; ++i) {
    const std::string key = key_text(objects, list->refs[i], "a storage's key");
    const auto found = promises.storages.find(key);
    if (found == promises.storages.end())
      fail(Errc::missing_storage, source.where(),
           "storage {} is in the list, but no tensor uses it: its size is not known", quoted(key));
    Promise& promise = found->second;
    if (promise.kept)
      fail(Errc::duplicate_key, source.where(), "storage {} is in the list twice", quoted(key));
    if (!fits(position, 8, source.size())) {
      fail(Errc::truncated, source.where(),
           "ends at byte {}, before storage {} ({} of {}): the download was cut short?", source.size(),
           quoted(key), i + 1, list->size);
    }
    const auto header = load_range(source, position, 8);
    const auto count = load_le<std::int64_t>(header->data());
    if (count < 0 || static_cast<std::uint64_t>(count) != promise.numel) {
      fail(Errc::size_mismatch, source.where(), "storage {} holds {} elements but the pickle declares {}",
           quoted(key), count, promise.numel);
    }
    position += 8;
    if (!fits(position, promise.bytes, source.size())) {
      fail(Errc::truncated, source.where(),
           "storage {} needs {} bytes at byte {}, the file has {}: the download was cut short?", quoted(key),
           promise.bytes, position, source.size());
    }
    auto bytes = range_of(source, position, promise.bytes);
    promise.storage->keep(bytes);
    objects.tree().storages[promise.index] = std::move(bytes);
    promise.kept = true;
    position += promise.bytes;
  }
  for (const auto& [key, promise] : promises.storages) {
    if (!promise.kept)
      fail(Errc::missing_storage, source.where(), "storage {} of {} bytes is not in the file", quoted(key),
           promise.bytes);
  }
  return position;
}

bool is_magic(Objects& objects, Ref value) {
  const Value number = ValueTree::value(objects.shared_tree(), value);
  return number.kind() == Kind::integer && !number.fits_int() && Ref(value).node()->size < kSmallPickle &&
         number.as_decimal() == kLegacyMagic;
}

struct Stretch {
  Ref root;
  std::uint64_t end = 0;
};

// One torch.save: what stands behind its magic number, and where it ends.
Stretch read_stretch(Objects& objects, const ByteSource& source, const std::shared_ptr<const Storage>& bytes,
                     std::uint64_t base, std::size_t position) {
  Promises promises;
  const auto next = [&](std::function<Ref(Ref)> persistent = {}) {
    std::size_t used = 0;
    const Ref value = run_pickle(
        objects, bytes, position,
        {.where = source.where(), .entry = {}, .base = base + position, .persistent = std::move(persistent)},
        used);
    position += used;
    return value;
  };
  const Ref version = next();
  const auto number = as_int(version);
  if (!number)
    fail(Errc::type_mismatch, source.where(), "the version is {}, not an int", objects.describe(version));
  if (*number != kLegacyVersion)
    fail(Errc::unsupported, source.where(), "version {} of the legacy format", *number);
  check_sys_info(objects, source, next());
  const bool came_last = std::exchange(objects.storages_come_last, true);
  const Ref root = next([&](Ref id) { return load_persistent(objects, promises, id); });
  objects.storages_come_last = came_last;
  const Ref keys = next();
  return {root, keep_promises(objects, source, keys, base + position, promises)};
}

// torch.save into an open file, several times: the first object is the file's. A scan reads them all.
Ref read_legacy(Objects& objects, const ByteSource& source, const std::shared_ptr<const Storage>& bytes,
                std::size_t position, Document& document) {
  const Stretch first = read_stretch(objects, source, bytes, 0, position);
  std::size_t more = 0;
  for (std::uint64_t end = first.end; end != source.size();) {
    const auto head = load_range(source, end, std::min<std::uint64_t>(source.size() - end, kSmallPickle));
    const auto magic = pickle_length(span_of(*head));
    if (!magic || !holds_magic(as_text(span_of(*head).first(*magic)))) {
      refuse_trailing(objects, source.where(), {}, end, source.size() - end);
      break;
    }
    ++more;
    if (objects.settings().report == nullptr) break;
    const auto bytes_here = load_pickles(source, end);
    objects.budget().take(bytes_here->size());
    end = read_stretch(objects, source, bytes_here, end, *magic).end;
  }
  if (more != 0) {
    document.notes.emplace_back("another object was saved behind the first, which alone is read");
    objects.ledger().find(Severity::note, Errc::trailing_data, "another object was saved behind the first",
                          first.end, {});
  }
  return first.root;
}

}  // namespace

Ref read_pickles(Objects& objects, const ByteSource& source, Document& document) {
  const auto bytes = load_pickles(source, 0);
  std::size_t used = 0;
  const Ref first = run_pickle(objects, bytes, 0,
                               {.where = source.where(), .entry = {}, .base = 0, .persistent = {}}, used);
  if (is_magic(objects, first)) {
    document.format = formats::torch_legacy;
    return read_legacy(objects, source, bytes, used, document);
  }
  document.format = formats::pickle;
  if (used != source.size()) refuse_trailing(objects, source.where(), {}, used, source.size() - used);
  return first;
}

}  // namespace ballast::torch
