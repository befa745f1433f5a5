// SPDX-License-Identifier: Apache-2.0
// Burn's NamedMpk records, written: dotted names become maps in maps, positions from 0 on become arrays.
#include <algorithm>
#include <charconv>

#include "ballast/error.h"
#include "base/budget.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/key_path.h"
#include "checkpoint/require_data.h"
#include "checkpoint/value_json.h"
#include "containers/gzip.h"
#include "containers/part_writer.h"
#include "formats/burn/burn.h"
#include "formats/burn/msgpack.h"
#include "formats/burn/parts.h"
#include "formats/burn/parts_source.h"
#include "formats/burn/read_again.h"
#include "formats/one_reading.h"
#include "formats/tensor_image.h"

namespace ballast::burn {
namespace {

constexpr std::uint64_t kMaxBinary = 0xFFFFFFFF;
constexpr std::size_t kMaxSegments = 120;  // leaves room for what stands around and in a tensor
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// What Burn 0.14 to 0.21 write and ask for; read back into metadata under "burn.".
constexpr std::array<std::string_view, 5> kRecordFields = {"float", "int", "format", "version", "settings"};
constexpr int kLastWithRecorders = 21;  // Burn 0.21

struct RecordPrecision {
  DType dtype;
  std::string_view settings;
  std::string_view floating;
  std::string_view integer;
};

constexpr RecordPrecision kPrecisions[] = {
    {DType::f32, "FullPrecisionSettings", "f32", "i32"},
    {DType::f16, "HalfPrecisionSettings", "f16", "i16"},
    {DType::f64, "DoublePrecisionSettings", "f64", "i64"},
};

// That of the floating-point tensors, where all have one that Burn has settings for.
const RecordPrecision& precision_of(const Checkpoint& checkpoint) {
  for (const RecordPrecision& precision : kPrecisions) {
    bool any = false;
    bool all = true;
    for (const Entry& entry : checkpoint) {
      if (!is_floating(entry.dtype)) continue;
      any = true;
      all = all && entry.dtype == precision.dtype;
    }
    if (any && all) return precision;
  }
  return kPrecisions[0];
}

Value unit_variant(std::string_view name) {
  return Value::dict({{Value(name), Value()}});
}

// A name's place in the tree: a module, a tensor or a number.
struct Node {
  std::string_view key;
  std::vector<std::size_t> children = {};
  std::size_t tensor = kNone;
  const Scalar* scalar = nullptr;
  std::optional<Value> configuration = {};
};

class MpkWriter {
 public:
  MpkWriter(const Checkpoint& checkpoint, BurnVersion version, std::string where)
      : checkpoint_(checkpoint),
        version_(version),
        where_(std::move(where)),
        metadata_(checkpoint.metadata.value_or(Metadata())),
        extras_(Extras::take(metadata_, where_)) {
    build();
  }

  /// The whole file, in order.
  std::vector<Part> run() {
    out_.map(3);
    write_metadata();
    out_.text("item");
    write(0);
    out_.text("_b");  // a marker type of Burn's, without which it does not read the record
    out_.array(0);
    parts_.push_back({.at = size_, .before = out_.take()});
    return std::move(parts_);
  }

 private:
  void build() {
    nodes_.push_back({});
    by_path_.reserve(checkpoint_.size() * 2);
    for (std::size_t i = 0; i < checkpoint_.size(); ++i) {
      require_readable(checkpoint_[i].name, checkpoint_[i].shape.size(), where_);
      node_of(checkpoint_[i].name).tensor = i;
    }
    for (const auto& [name, scalar] : extras_.scalars) node_of(name).scalar = &scalar;
    add_configuration();
    add_activations();
  }

  // Of layers that are still there.
  void add_configuration() {
    const auto found = metadata_.find(kConfigurationKey);
    if (found == metadata_.end()) return;
    const std::string where = where_ + ": metadata " + kConfigurationKey;
    configured_ = parse_json(found->second, where);
    metadata_.erase(found);
    if (configured_.kind() != ballast::Kind::dict) fail(Errc::bad_json, where, "is no object");
    for (std::size_t i = 0; i < configured_.size(); ++i) {
      const std::string_view path = configured_.key(i).as_string();
      const std::size_t dot = path.rfind('.');
      const std::size_t parent = dot == path.npos ? 0 : node_at(path.substr(0, dot));
      if (parent != kNone) configure(parent, path, configured_.value(i));
    }
  }

  [[nodiscard]] std::size_t node_at(std::string_view path) const {
    const auto found = by_path_.find(path);
    return found == by_path_.end() || is_leaf(nodes_[found->second]) ? kNone : found->second;
  }

  void configure(std::size_t parent, std::string_view path, Value value) {
    if (by_path_.contains(path)) return;
    const std::size_t dot = path.rfind('.');
    nodes_[child_of(parent, path, path.substr(dot == path.npos ? 0 : dot + 1))].configuration =
        std::move(value);
  }

  // Since 0.21 Burn's recurrent layers have them and do not load without.
  void add_activations() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const auto has = [&](std::string_view key) { return has_child(nodes_[i], key); };
      const bool is_gru = has("reset_gate") && has("update_gate") && has("new_gate");
      const bool is_lstm = has("input_gate") && has("forget_gate") && has("cell_gate");
      if (!is_gru && !is_lstm) continue;
      add_activation(i, "gate_activation", "Sigmoid");
      add_activation(i, "hidden_activation", "Tanh");
      if (is_lstm) add_activation(i, "cell_activation", "Tanh");
    }
  }

  [[nodiscard]] bool has_child(const Node& node, std::string_view key) const {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](std::size_t child) { return nodes_[child].key == key; });
  }

  void add_activation(std::size_t node, std::string_view key, std::string_view name) {
    if (has_child(nodes_[node], key)) return;
    nodes_[node].children.push_back(nodes_.size());
    nodes_.push_back({.key = key, .configuration = unit_variant(name)});
  }

  void write_value(const Value& value) {
    if (value.kind() == ballast::Kind::dict) {
      out_.map(value.size());
      for (std::size_t i = 0; i < value.size(); ++i) {
        out_.text(value.key(i).as_string());
        write_value(value.value(i));
      }
    } else if (value.kind() == ballast::Kind::list) {
      out_.array(value.size());
      for (std::size_t i = 0; i < value.size(); ++i) write_value(value.element(i));
    } else if (value.kind() == ballast::Kind::none) {
      out_.nil();
    } else {
      fail(Errc::bad_json, where_, "metadata {} holds {}, and configuration is made of maps, lists and null",
           kConfigurationKey, value.summary());
    }
  }

  // The end of a new path.
  Node& node_of(std::string_view name) {
    std::size_t node = 0;
    std::size_t segments = 0;
    key_path::for_each_segment(name, [&](std::string_view before, std::string_view segment) {
      const std::size_t end = before.size() + segment.size();
      if (++segments > kMaxSegments)
        fail(Errc::not_representable, where_, "tensor {} has more than {} parts in its name", quoted(name),
             kMaxSegments);
      node = child_of(node, name.substr(0, end), segment);
      const bool is_end = end == name.size();
      if (is_leaf(nodes_[node]) || (is_end && !nodes_[node].children.empty()))
        fail(Errc::not_representable, where_,
             "{} is the name of a tensor and of something that holds others: a Burn record cannot have both",
             quoted(name.substr(0, end)));
    });
    return nodes_[node];
  }

  std::size_t child_of(std::size_t parent, std::string_view path, std::string_view key) {
    const auto [found, is_new] = by_path_.emplace(path, nodes_.size());
    if (is_new) {
      nodes_[parent].children.push_back(nodes_.size());
      nodes_.push_back({.key = key});
    }
    return found->second;
  }

  static bool is_leaf(const Node& node) {
    return node.tensor != kNone || node.scalar != nullptr || node.configuration;
  }

  void write_metadata() {
    out_.text("metadata");
    const RecordPrecision& precision = precision_of(checkpoint_);
    const std::string fields[] = {
        std::string(precision.floating), std::string(precision.integer),
        fmt::format("burn_core::record::file::NamedMpkFileRecorder<burn_core::record::settings::{}>",
                    precision.settings),
        fmt::format("0.{}.0", std::min(version_.minor, kLastWithRecorders)), std::string(precision.settings)};
    for (const std::string_view key : kRecordFields) metadata_.erase("burn." + std::string(key));
    const auto producer = metadata_.find("producer");  // understood of a Burn file
    if (producer != metadata_.end() && producer->second == "burn") metadata_.erase(producer);
    out_.map(kRecordFields.size() + (metadata_.empty() ? 0 : 1));
    for (std::size_t i = 0; i < kRecordFields.size(); ++i) {
      out_.text(kRecordFields[i]);
      out_.text(fields[i]);
    }
    if (metadata_.empty()) return;
    out_.text("ballast");  // Burn passes over what it does not know
    out_.map(metadata_.size());
    for (const auto& [key, value] : metadata_) {
      out_.text(key);
      out_.text(value);
    }
  }

  void write(std::size_t index) {
    Node& node = nodes_[index];
    if (node.tensor != kNone) return write_tensor(node.tensor);
    if (node.scalar != nullptr) return out_.scalar(*node.scalar);
    if (node.configuration) return write_value(*node.configuration);
    if (is_sequence(node)) {
      out_.array(node.children.size());
      for (const std::size_t child : node.children) write(child);
      return;
    }
    const auto constants = constants_of(node);
    out_.map(node.children.size() + constants.size());
    for (const std::size_t child : node.children) {
      out_.text(nodes_[child].key);
      write(child);
    }
    for (const auto& [key, count] : constants) {
      out_.text(key);
      out_.array(count);
      for (std::size_t i = 0; i < count; ++i) out_.nil();
    }
  }

  // True when the keys are 0, 1, …, in any order; they are in that order afterwards.
  bool is_sequence(Node& node) {
    std::vector<std::size_t> sorted(node.children.size(), kNone);
    for (const std::size_t child : node.children) {
      const std::string_view key = nodes_[child].key;
      std::size_t position = 0;
      const auto result = std::from_chars(key.data(), key.data() + key.size(), position);
      const bool is_plain = key.size() == 1 || (!key.empty() && key[0] != '0');
      if (result.ec != std::errc() || result.ptr != key.data() + key.size() || !is_plain ||
          position >= sorted.size())
        return false;
      sorted[position] = child;
    }
    if (sorted.empty()) return false;
    node.children = std::move(sorted);
    return true;
  }

  // Burn takes an absent number for granted, but not an absent array of them: its convolutions have some.
  std::vector<std::pair<std::string_view, std::size_t>> constants_of(const Node& node) const {
    std::size_t rank = 0;
    for (const std::size_t child : node.children) {
      if (nodes_[child].key == "weight" && nodes_[child].tensor != kNone)
        rank = checkpoint_[nodes_[child].tensor].shape.size();
    }
    std::vector<std::pair<std::string_view, std::size_t>> constants;
    const auto add = [&](std::string_view key, std::size_t count) {
      if (!has_child(node, key)) constants.emplace_back(key, count);
    };
    if (rank == 4 || rank == 5) {
      for (const char* key : {"stride", "kernel_size", "dilation", "padding", "padding_out"})
        add(key, rank - 2);
    }
    if (rank >= 3 && rank <= 5) add("channels", 2);
    return constants;
  }

  void write_tensor(std::size_t index) {
    const Entry entry = checkpoint_[index];
    const WrittenDType dtype = written_dtype(entry, extras_, version_, where_);
    if (entry.bytes > kMaxBinary)
      fail(Errc::not_representable, where_, "tensor {} has {} bytes, a record holds at most {} (use .bpk)",
           quoted(entry.name), entry.bytes, kMaxBinary);
    const auto id = extras_.ids.find(entry.name);
    out_.map(2);
    out_.text("id");
    if (id == extras_.ids.end())
      out_.text(encode_id(id_for(entry.name)));
    else if (const auto* number = std::get_if<std::uint64_t>(&id->second))
      out_.text(encode_id(*number));
    else
      out_.text(std::get<std::string>(id->second));
    out_.text("param");
    out_.map(3);
    out_.text("bytes");
    out_.binary_header(entry.bytes);
    BytesInStorage bytes = row_major_bytes(entry.tensor());
    parts_.push_back({.at = size_,
                      .before = out_.take(),
                      .storage = std::move(bytes.storage),
                      .offset = bytes.offset,
                      .size = entry.bytes});
    size_ = parts_.back().end();
    out_.text("shape");
    out_.array(entry.shape.size());
    for (const std::int64_t dim : entry.shape) out_.unsigned_number(static_cast<std::uint64_t>(dim));
    out_.text("dtype");
    if (!dtype.store.empty()) out_.map(1);
    out_.text(dtype.name);
    if (!dtype.store.empty()) out_.text(dtype.store);
  }

  const Checkpoint& checkpoint_;
  BurnVersion version_;
  std::string where_;
  Value configured_;  // its keys are in the nodes
  Metadata metadata_;
  Extras extras_;
  std::vector<Node> nodes_;           // the first is the item
  NameViewMap<std::size_t> by_path_;  // names up to a dot or their end → node
  MsgpackWriter out_;
  std::vector<Part> parts_;
  std::uint64_t size_ = 0;
};

void require_mpk_again(const ByteSource& record, const std::string& where) {
  Budget budget(where);
  budget.admit(record.size());
  require_read_again(where, [&] { return open_mpk(record, std::move(budget)); });
}

}  // namespace

void save_mpk(const Checkpoint& checkpoint, const std::string& path, const SaveOptions& options, bool gzip) {
  const std::string where = display(path);
  require_data(checkpoint, where);
  std::vector<Part> parts = MpkWriter(checkpoint, BurnVersion(options.burn), where).run();
  AtomicFile file(path, options.overwrite);
  if (gzip) {
    const auto record = std::make_shared<const PartsSource>(path, parts);
    require_one_reading(*record, Meant::none);
    require_mpk_again(*record, where);
    containers::write_gzip(file, parts, options.progress);
    // What it unpacks to lies in memory when it is read: a reader refuses what its packed bytes do not vouch
    // for.
    const std::uint64_t packed = file.written()->size();
    if (parts.back().end() > containers::most_unpacked(packed))
      fail(Errc::not_representable, where,
           "{} bytes that pack into {} would be refused by every reader as a bomb; write .mpk",
           parts.back().end(), packed);
  } else {
    file.reserve(parts.back().end());
    containers::write_parts(file, parts, {}, options.progress);
    require_mpk_again(*file.written(), where);
  }
  containers::check_sources(parts);
  require_one_reading(file, Meant::none);
  file.commit();
}

}  // namespace ballast::burn
