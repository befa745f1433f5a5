// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/reader.h"

#include <algorithm>

#include "ballast/error.h"
#include "base/bytes.h"
#include "checkpoint/flatten.h"
#include "containers/magic.h"
#include "formats/torch/modules.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kMaxStreams = 8;  // inside each other
constexpr std::size_t kNamesInANote = 12;

// A checkpoint of TensorFlow: an index, which is a table of LevelDB's with its number at the end, and files
// it leads to, of which only the name tells.
std::string_view what_of_tensorflow(const ByteSource& source) {
  constexpr std::uint64_t kTableNumber = 0xdb4775248b80fb57;
  constexpr std::size_t kFooter = 48;
  if (source.size() >= kFooter) {
    const auto end = load_range(source, source.size() - sizeof kTableNumber, sizeof kTableNumber);
    if (load_le<std::uint64_t>(end->data()) == kTableNumber)
      return "the index of a TensorFlow checkpoint, which Ballast does not read";
  }
  const std::string_view name = source.name();
  const std::size_t at = name.rfind(".data-");
  if (at != name.npos && name.size() - at == 20 && name.substr(at + 11, 4) == "-of-")
    return "no format Ballast reads (by its name the data of a TensorFlow checkpoint)";
  return "no format Ballast reads";
}

std::string unknown_classes_note(Objects& objects) {
  const auto& names = objects.ledger().unknown_names();
  std::string note = "classes and functions that stay inert objects: ";
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kNamesInANote) return note + fmt::format(", and {} more", names.size() - shown);
    note += fmt::format("{}{}", shown++ == 0 ? "" : ", ", display(name, 100));
  }
  return note;
}

}  // namespace

Reader::Reader(std::shared_ptr<const ByteSource> source, Settings settings)
    : source_(std::move(source)), objects_(std::make_shared<ValueTree>(), settings) {
  objects_.load_stream = [this](std::shared_ptr<const Storage> bytes, const std::string& where) {
    return read_nested(std::move(bytes), where);
  };
}

Document Reader::read() {
  Document document;
  document.root = read_container(*source_, document);
  objects_.finish();
  for (const std::string& sentence : objects_.ledger().left_out()) document.notes.push_back(sentence);
  if (!objects_.ledger().unknown_names().empty()) document.notes.push_back(unknown_classes_note(objects_));
  return document;
}

Ref Reader::read_container(const ByteSource& source, Document& document) {
  const auto head_bytes =
      load_range(source, 0, std::min<std::uint64_t>(source.size(), containers::kMagicBytes));
  const auto head = span_of(*head_bytes);
  if (containers::is_zip(head)) return read_zip(objects_, source, document);
  if (containers::is_tar(head)) return read_tar(objects_, source, document);
  const bool says_pickle = !head.empty() && head[0] == std::byte{0x80};  // PROTO
  const std::string_view likely = says_pickle ? std::string_view() : containers::what_is_it(head);
  const auto is_what = [&]() -> std::string {
    if (head.empty()) return "is empty";
    return fmt::format("is {}", likely.empty() ? what_of_tensorflow(source) : likely);
  };
  if (!may_be_pickle(head)) fail(Errc::unknown_format, source.where(), "{}", is_what());
  if (says_pickle) return read_pickles(objects_, source, document);
  // Protocols 0 and 1 have no mark: text that is no pickle fails in ways that say little.
  try {
    return read_pickles(objects_, source, document);
  } catch (const Error& error) {
    const bool tells = error.code() == Errc::bad_pickle || error.code() == Errc::memo_range ||
                       (error.code() == Errc::truncated && !likely.empty());
    if (!tells) throw;
    if (!likely.empty()) fail(Errc::unknown_format, source.where(), "{}", is_what());
    fail(Errc::unknown_format, source.where(), "{}; read as a pickle it fails: {}", is_what(), error.what());
  }
}

Ref Reader::read_nested(std::shared_ptr<const Storage> bytes, const std::string& where) {
  if (++depth_ > kMaxStreams)
    fail(Errc::too_deep, where, "streams inside streams, more than {} deep", kMaxStreams);
  Document inner;
  Ref root = read_container(*memory_source(std::move(bytes), where), inner);
  --depth_;
  return root;
}

std::string key_text(Objects& objects, Ref key, const char* what) {
  const auto number = as_int(key);
  std::string text = number ? std::to_string(*number) : std::string(objects.need_text(key, what));
  objects.budget().step(steps_for_text(text.size()));
  // 1 and "1" are two keys in Python.
  if (objects.keys_are_numbers.value_or(number.has_value()) != number.has_value())
    objects.refuse(Errc::type_mismatch, "{}, {}, is {}, and others are {}", what, quoted(text),
                   number ? "a number" : "text", number ? "text" : "numbers");
  objects.keys_are_numbers = number.has_value();
  return text;
}

void FirstMention::check(const Objects& objects, const StorageId& again) const {
  if (bytes != again.bytes) {
    objects.refuse(Errc::size_mismatch, "storage {} has {} bytes here, {} where it was named first",
                   quoted(again.key), again.bytes, bytes);
  }
  // Old releases go by the first mention, new ones by each.
  if (dtype.value_or(DType::u8) != again.dtype.value_or(DType::u8))
    objects.refuse(Errc::bad_dtype, "storage {} is of another class than where it was named first",
                   quoted(again.key));
}

StorageId parse_storage_id(Objects& objects, Ref id) {
  const auto parts = objects.need_sequence(id, "a persistent id");
  if (parts.size() != 5 && parts.size() != 6)
    objects.refuse(Errc::type_mismatch, "a persistent id of {} parts, a storage has 5 or 6", parts.size());
  if (objects.need_text(parts[0], "the kind of a persistent id") != "storage") {
    objects.refuse(Errc::unsupported, "a persistent id of kind {}", quoted(*as_text(parts[0])));
  }
  StorageId storage;
  storage.dtype = objects.views().dtype_of_class(parts[1]);
  storage.type = parts[1].node()->type;
  storage.key = key_text(objects, parts[2], "a storage's key");
  // PyTorch decodes bytes here, which name a device as text does; it writes none.
  if (const auto location = objects.need_text(parts[3], "a storage's location"); location != "cpu") {
    objects.budget().step(steps_for_text(location.size()));
    storage.location = objects.tree().type_id(location);
    objects.note_device(location);
  }
  const std::int64_t numel = objects.need_int(parts[4], "a storage's element count");
  if (numel < 0) objects.refuse(Errc::size_mismatch, "a storage of {} elements", numel);
  storage.numel = static_cast<std::uint64_t>(numel);
  const auto bytes = storage_bytes(storage.dtype, numel);
  if (!bytes) objects.refuse(Errc::size_overflow, "a storage of {} elements", numel);
  storage.bytes = *bytes;
  if (parts.size() > 5) storage.view = parts[5];
  return storage;
}

void refuse_trailing(Objects& objects, const std::string& where, const std::string& entry,
                     std::uint64_t offset, std::uint64_t bytes) {
  objects.ledger().find(Severity::warning, Errc::trailing_data, fmt::format("{} bytes behind the end", bytes),
                        offset, entry);
  if (!objects.settings().inert) {
    fail(Errc::trailing_data, where,
         "{} bytes behind the end at byte {} (another file appended, or something hidden?)", bytes, offset);
  }
}

namespace {

Ref run_machine(Objects& objects, std::span<const std::byte> code, Stream stream, std::size_t& used) {
  if (objects.machine == nullptr) objects.budget().admit(code.size());
  Machine machine(objects, code, std::move(stream));
  const Ref root = machine.run();
  used = machine.position();
  return root;
}

}  // namespace

Ref run_pickle(Objects& objects, const std::shared_ptr<const Storage>& bytes, std::size_t offset,
               Stream stream, std::size_t& used) {
  objects.tree().keep_alive(bytes);
  // What a pickle may make grows with its size, so it gets no more than its own bytes; a broken one gets the
  // rest and says what is wrong.
  const auto rest = span_of(*bytes).subspan(offset);
  return run_machine(objects, rest.first(pickle_length(rest).value_or(rest.size())), std::move(stream), used);
}

Ref run_whole_pickle(Objects& objects, const std::shared_ptr<const Storage>& bytes, Stream stream) {
  objects.tree().keep_alive(bytes);
  const std::string where = stream.where;
  const std::string entry = stream.entry;
  const std::uint64_t base = stream.base;
  std::size_t used = 0;
  const Ref root = run_machine(objects, span_of(*bytes), std::move(stream), used);
  if (used != bytes->size()) refuse_trailing(objects, where, entry, base + used, bytes->size() - used);
  return root;
}

void name_tensors(Reader& reader, const Document& document, Checkpoint& checkpoint) {
  std::uint64_t shown = 0;
  const auto spend = [&](std::uint64_t memory, std::uint64_t data) {
    reader.objects().budget().take(memory);
    shown += std::min(data, UINT64_MAX - shown);
    reader.objects().views().check_expansion(shown);
  };
  const ScriptModules script(document.script);
  flatten(*checkpoint.tree, checkpoint, spend, document.format->is_program ? &script : nullptr);
}

// torch.jit.freeze makes constants of the weights: their names are gone, their order is the program's.
void name_constants(Reader& reader, const Document& document, Checkpoint& checkpoint) {
  Document constants = document;
  constants.root = document.constants;
  Checkpoint found;
  found.tree = ValueTree::value(reader.objects().shared_tree(), document.constants);
  name_tensors(reader, constants, found);
  for (const Entry& entry : found) checkpoint.add("constants." + std::string(entry.name), entry.tensor());
  if (found.size() > 0)
    checkpoint.notes.emplace_back(
        "it is a frozen program (torch.jit.freeze), whose weights are constants without names");
}

// Parts of a checkpoint of torch.distributed.checkpoint, which are zip archives behind one another.
void refuse_part_of_dcp(const ByteSource& source) {
  if (source.name().ends_with(".distcp"))
    fail(Errc::unsupported, source.where(),
         "is one process' part of a checkpoint of torch.distributed.checkpoint (DCP), which Ballast does not "
         "read; "
         "python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pt makes one file of "
         "all");
}

Checkpoint open(const ByteSource& source, const OpenOptions& options) {
  refuse_part_of_dcp(source);
  Reader reader(source.shared_from_this(), {.inert = options.inert,
                                            .report = nullptr,
                                            .input_bytes = source.size(),
                                            .expansion = options.expansion,
                                            .where = source.where()});
  const Document document = reader.read();
  Checkpoint checkpoint;
  checkpoint.format = document.format;
  checkpoint.notes = document.notes;
  checkpoint.tree = ValueTree::value(reader.objects().shared_tree(), document.root);
  name_tensors(reader, document, checkpoint);
  if (checkpoint.size() == 0 && !document.constants.is_none()) name_constants(reader, document, checkpoint);
  if (checkpoint.tree->type() == "torch.distributed.checkpoint.metadata.Metadata")
    checkpoint.notes.emplace_back(
        "it is the table of contents of a checkpoint of torch.distributed.checkpoint (DCP), whose tensors "
        "are beside it");
  if (is_optimizer(*checkpoint.tree))
    checkpoint.notes.emplace_back("it is the state of an optimizer, and no model");
  return checkpoint;
}

}  // namespace ballast::torch
