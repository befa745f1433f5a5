// SPDX-License-Identifier: Apache-2.0
// Burn's NamedMpk records, read: MessagePack with the names of fields.
//
//   {"metadata": {"float": "f32", "int": "i32", "format": …, "version": …, "settings": …},
//    "item": {"conv1": {"weight": {"id": "…", "param": {"bytes": bin, "shape": [..], "dtype": "F32"}},
//                       "bias": nil, "stride": [nil, nil]},
//             "layers": [{…}, {…}]},
//    "_b": []}
//
// A struct is a map, a Vec, array or tuple an array, an enum {"Variant": …}, a parameter {"id", "param"};
// what is configuration is nil. Names are the path, with positions as numbers: layers.0.weight. Nothing but
// names and shapes is read; tensors stay in the file.
#include <optional>

#include "ballast/error.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/json_writer.h"
#include "formats/burn/burn.h"
#include "formats/burn/configuration.h"
#include "formats/burn/keys_once.h"
#include "formats/burn/msgpack.h"
#include "formats/burn/parts.h"
#include "formats/burn/quantized.h"
#include "formats/burn/scheme_reader.h"

namespace ballast::burn {
namespace {

using Kind = MsgpackCursor::Kind;

constexpr std::size_t kLongestName = 4096;
constexpr std::uint64_t kLongestMetadata = std::uint64_t{16} << 20U;
constexpr std::size_t kMostScalars = 100'000;

// What a map holds of a tensor so far.
struct Leaf {
  std::optional<MsgpackCursor::Range> bytes;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<DType> dtype;
  std::optional<QuantScheme> quantized = {};
  std::optional<std::string> id;
  bool is_old = false;  // values as an array of numbers: Burn before 0.14
  std::uint64_t numbers = 0;
};

class MpkReader {
 public:
  MpkReader(const ByteSource& source, Budget budget)
      : source_(source), cursor_(source), budget_(std::move(budget)) {}

  Checkpoint read() {
    bool found = false;
    KeysOnce keys(budget_);
    for (std::uint64_t count = cursor_.map(); count > 0; --count) {
      const std::string key = cursor_.text();
      keys.add(key);
      if (key == "metadata") {
        read_metadata();
      } else if (key == "item") {
        found = true;
        static_cast<void>(value(1, {}));
      } else {
        cursor_.skip(1);
      }
    }
    keys.check(cursor_.where(), "");
    if (!found) fail(Errc::bad_burn, cursor_.where(), "a record without an item");
    if (!cursor_.at_end()) {
      fail(Errc::trailing_data, cursor_.where(), "{} bytes follow the record at byte {}",
           source_.size() - cursor_.position(), cursor_.position());
    }
    return finish();
  }

 private:
  Checkpoint finish() {
    checkpoint_.format = formats::mpk;
    if (!checkpoint_.metadata) checkpoint_.metadata.emplace();
    extras_.put(checkpoint_.metadata);
    put_configuration();
    // A copy in another format must still say whose layout it is.
    if (!checkpoint_.metadata->contains("ballast.layout")) checkpoint_.metadata->emplace("producer", "burn");
    if (left_out_ > 0)
      checkpoint_.notes.push_back(fmt::format("{} values that are no tensors were left out", left_out_));
    return std::move(checkpoint_);
  }

  void put_configuration() {
    if (configuration_.empty()) return;
    std::string json = "{";
    for (const auto& [path, text] : configuration_) {
      JsonWriter key;
      json += (json.size() == 1 ? "" : ",") + std::move(key.value(path)).text() + ":" + text;
    }
    (*checkpoint_.metadata)[kConfigurationKey] = json + "}";
  }

  void read_metadata() {
    if (cursor_.peek() != Kind::map) return cursor_.skip(1);
    if (!checkpoint_.metadata) checkpoint_.metadata.emplace();
    for (std::uint64_t count = cursor_.map(); count > 0; --count) {
      const std::string key = cursor_.text();
      if (key == "ballast" && cursor_.peek() == Kind::map) {
        for (std::uint64_t inner = cursor_.map(); inner > 0; --inner) {
          std::string name = cursor_.text(kLongestMetadata);
          put_metadata(std::move(name), cursor_.text(kLongestMetadata));
        }
      } else if (cursor_.peek() == Kind::text) {
        put_metadata("burn." + key, cursor_.text());
      } else {
        cursor_.skip(2);
      }
    }
  }

  void put_metadata(std::string key, std::string value) {
    budget_.take(key.size() + value.size() + kMetadataEntryBytes);
    if (!checkpoint_.metadata->emplace(key, std::move(value)).second)
      fail(Errc::duplicate_key, cursor_.where(), "metadata {} stands twice", quoted(key));
  }

  // What holds nothing but nil is configuration: Burn writes its variants and the lengths of its arrays
  // ({"Sigmoid": nil}, [nil, nil]) and asks for them again. Returned as JSON, empty for all else.
  std::string value(int depth, const std::optional<std::string>& id) {
    if (depth > kMaxDepth)
      fail(Errc::too_deep, cursor_.where(), "nested more than {} deep at offset {}", kMaxDepth,
           cursor_.position());
    budget_.step();  // small values that were packed small are many
    switch (cursor_.peek()) {
      case Kind::nil:
        cursor_.nil();
        return "null";
      case Kind::boolean:
      case Kind::integer:
      case Kind::floating:
        scalar();
        return {};
      case Kind::text:
      case Kind::binary:
        ++left_out_;
        cursor_.skip(depth);
        return {};
      case Kind::array:
        return array(depth);
      case Kind::map:
        return map(depth, id);
    }
    return {};
  }

  std::string finish(ConfigurationMembers& members, char open, char close) {
    if (members.is_long) ++left_out_;
    if (members.is_long && members.is_configuration) return {};
    if (members.is_configuration && deep_ > 0) return open + members.json + close;
    for (auto& [key, json] : members.nil) {
      count_name(key.size() + json.size());
      configuration_.emplace(deep_ == 0 ? key : path_ + "." + key, std::move(json));
    }
    return {};
  }

  std::string array(int depth) {
    const std::uint64_t count = cursor_.array();
    ConfigurationMembers members;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string key = std::to_string(i);
      std::string json;
      {
        const Step step(*this, key);
        json = value(depth + 1, {});
      }
      members.add(key, std::move(json), true);
    }
    return finish(members, '[', ']');
  }

  std::string map(int depth, const std::optional<std::string>& id) {
    Leaf leaf;
    ConfigurationMembers members;
    KeysOnce keys(budget_);
    for (std::uint64_t count = cursor_.map(); count > 0; --count) {
      const std::string key = cursor_.text();
      keys.add(key);
      if (take_part(leaf, key, depth)) {
        members.is_configuration = false;
        continue;
      }
      if (key == "param" && leaf.id) {
        static_cast<void>(value(depth + 1, leaf.id));
        continue;
      }
      std::string json;
      {
        const Step step(*this, key);
        json = value(depth + 1, {});
      }
      members.add(key, std::move(json), false);
    }
    keys.check(cursor_.where(), path_);
    if (leaf.is_old && leaf.shape) {
      fail(Errc::unsupported, cursor_.where(),
           "tensor {} is of a Burn before 0.14, whose format nothing reads any more; save it again with Burn "
           "0.14 to 0.16 and its feature record-backward-compat",
           quoted(path_));
    }
    if (leaf.is_old) left_out_ += leaf.numbers;
    if (leaf.bytes) add_tensor(leaf, id);
    return finish(members, '{', '}');
  }

  // Tells the parts of a tensor from members of a module that happen to have such a name by what they hold.
  bool take_part(Leaf& leaf, const std::string& key, int depth) {
    const Kind kind = cursor_.peek();
    if (key == "bytes" && kind == Kind::binary) {
      leaf.bytes = cursor_.binary();
    } else if (key == "shape" && kind == Kind::array && (leaf.bytes || leaf.is_old)) {
      leaf.shape = read_shape();
    } else if (key == "dtype" && leaf.bytes && (kind == Kind::text || kind == Kind::map)) {
      leaf.dtype = read_dtype(depth, leaf.quantized);
    } else if (key == "id" && kind == Kind::text) {
      leaf.id = cursor_.text();
    } else if (key == "value" && kind == Kind::array) {
      leaf.numbers = skip_numbers_or_read(depth);
      leaf.is_old = leaf.numbers > 0;
    } else {
      return false;
    }
    return true;
  }

  // The values of a tensor of old, all numbers: how many; or a module's Vec called "value", whose numbers are
  // left out: none.
  std::uint64_t skip_numbers_or_read(int depth) {
    const std::uint64_t count = cursor_.array();
    std::uint64_t numbers = 0;
    const Step step(*this, "value");
    for (std::uint64_t i = 0; i < count; ++i) {
      if (const Kind kind = cursor_.peek(); kind == Kind::floating || kind == Kind::integer) {
        budget_.step();
        ++numbers;
        cursor_.skip(depth + 2);
        continue;
      }
      const Step inner(*this, std::to_string(i));
      static_cast<void>(value(depth + 2, {}));
    }
    if (numbers == count) return numbers;
    left_out_ += numbers;
    return 0;
  }

  std::vector<std::uint64_t> read_shape() {
    std::vector<std::uint64_t> shape;
    for (std::uint64_t count = cursor_.array(); count > 0; --count)
      shape.push_back(cursor_.unsigned_number());
    return shape;
  }

  DType read_dtype(int depth, std::optional<QuantScheme>& quantized) {
    if (cursor_.peek() == Kind::text)
      return dtype_from_variant(cursor_.text(), {}, path_, cursor_.where(), checkpoint_.notes, extras_);
    if (cursor_.map() != 1)
      fail(Errc::bad_burn, cursor_.where(), "tensor {}: its dtype is a map", quoted(path_));
    const std::string variant = cursor_.text();
    if (variant == "QFloat") {
      read_scheme(cursor_, "", depth + 2, quantized.emplace(), budget_);
      return DType::u8;
    }
    std::string store;
    if (cursor_.peek() == Kind::text)
      store = cursor_.text();
    else
      cursor_.skip(depth + 2);
    return dtype_from_variant(variant, store, path_, cursor_.where(), checkpoint_.notes, extras_);
  }

  void add_tensor(const Leaf& leaf, const std::optional<std::string>& id) {
    const std::string& where = cursor_.where();
    if (!leaf.shape || !leaf.dtype)
      fail(Errc::bad_burn, where, "tensor {} has bytes but no {}", quoted(path_),
           leaf.shape ? "dtype" : "shape");
    const auto shape = checked_shape(*leaf.shape, path_, where);
    count_name();
    if (leaf.quantized) return add_quantized(leaf, shape);
    check_size(*leaf.dtype, shape, leaf.bytes->size, path_, where);
    CheckpointBuilder builder(checkpoint_);
    const std::uint32_t storage = builder.add_storage(
        elements_of(source_, leaf.bytes->offset, leaf.bytes->size, info(*leaf.dtype).bits / 8));
    if (!builder.add_view(builder.store_name(path_), *leaf.dtype, shape, storage, 0))
      fail(Errc::duplicate_key, where, "two tensors are called {}", quoted(path_));
    if (id) extras_.ids.emplace(path_, decode_id(*id));
  }

  void add_quantized(const Leaf& leaf, const std::vector<std::int64_t>& shape) {
    if (checkpoint_.contains(path_))
      fail(Errc::duplicate_key, cursor_.where(), "two tensors are called {}", quoted(path_));
    const Tensor raw = Tensor::contiguous_view(DType::u8, Shape{static_cast<std::int64_t>(leaf.bytes->size)},
                                               elements_of(source_, leaf.bytes->offset, leaf.bytes->size, 1));
    checkpoint_.add(path_, read_quantized(*leaf.quantized, raw, shape, path_, checkpoint_.notes));
  }

  void scalar() {
    const MsgpackCursor::Number number = cursor_.number();
    using Type = Scalar::Type;
    if (extras_.scalars.size() == kMostScalars) return static_cast<void>(++left_out_);
    count_name();
    const Type type = number.kind == Kind::boolean    ? Type::Bool
                      : number.kind == Kind::floating ? Type::Float
                      : number.negative               ? Type::Int
                                                      : Type::UInt;
    if (!extras_.scalars.emplace(path_, Scalar{type, number.bits}).second)
      fail(Errc::duplicate_key, cursor_.where(), "two values are called {}", quoted(path_));
  }

  // A short file can nest long keys so that the names of what lies in them are longer than any memory.
  void count_name(std::size_t more = 0) { budget_.take(bytes_of_name(path_.size() + more)); }

  // One step down the path, as long as it lives.
  class Step {
   public:
    Step(MpkReader& reader, std::string_view key) : path_(reader.path_), before_(path_.size()) {
      if (path_.size() + key.size() >= kLongestName)
        fail(Errc::bad_name, reader.cursor_.where(), "a name of more than {} bytes at offset {}",
             kLongestName, reader.cursor_.position());
      if (reader.deep_++ > 0) path_ += '.';
      path_ += key;
      deep_ = &reader.deep_;
    }

    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    ~Step() {
      path_.resize(before_);
      --*deep_;
    }

   private:
    std::string& path_;
    std::size_t before_;
    int* deep_;
  };

  const ByteSource& source_;
  MsgpackCursor cursor_;
  Budget budget_;
  Checkpoint checkpoint_;
  Extras extras_;
  std::map<std::string, std::string> configuration_;  // path → JSON
  std::string path_;
  int deep_ = 0;  // steps in the path
  std::uint64_t left_out_ = 0;
};

}  // namespace

bool is_mpk(std::span<const std::byte> head) noexcept {
  // A map of a few members, the first of which is called "metadata" or "item".
  if (head.size() < 10) return false;
  const auto first = static_cast<unsigned>(head[0]);
  if (first < 0x81 || first > 0x8F) return false;
  const std::string_view key = as_text(head.subspan(1));
  return key.starts_with("\xA8metadata") || key.starts_with("\xA4item");
}

Checkpoint open_mpk(const ByteSource& source, Budget budget) {
  return MpkReader(source, std::move(budget)).read();
}

}  // namespace ballast::burn
