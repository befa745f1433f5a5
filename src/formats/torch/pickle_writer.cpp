// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/pickle_writer.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ballast/display.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "checkpoint/value_tree.h"
#include "formats/torch/pickle_emitter.h"
#include "formats/torch/pickle_forms.h"
#include "formats/torch/tensor_pickle.h"

namespace ballast::torch {
namespace {

constexpr std::size_t kBatch = 1000;  // items between two marks, as Python does it

std::uint64_t identity(const Value& value) {
  return ValueTree::ref(value).bits();
}

// A container and the next of its children. A dict's children are key, value, key, value, …, attributes.
struct Frame {
  Value value;
  Form form;
  std::size_t next = 0;
};

bool is_dict(Form form) {
  return form == Form::dict || form == Form::ordered_dict || form == Form::counter;
}

std::size_t child_count(const Frame& frame) {
  return is_dict(frame.form) ? frame.value.size() * 2 : frame.value.size();
}

Value child(const Frame& frame, std::size_t index) {
  if (!is_dict(frame.form)) return frame.value.element(index);
  return index % 2 == 0 ? frame.value.key(index / 2) : frame.value.value(index / 2);
}

std::optional<Value> attributes_to_build(const Frame& frame) {
  if (frame.form != Form::ordered_dict) return std::nullopt;
  Value attributes = frame.value.attributes();
  if (attributes.kind() != Kind::dict || attributes.size() == 0) return std::nullopt;
  return attributes;
}

std::string label(const Frame& frame) {
  const std::size_t index = frame.next - 1;
  if (!is_dict(frame.form)) return std::to_string(index);
  if (index >= child_count(frame)) return "(attributes)";
  const Value key = frame.value.key(index / 2);
  return key.kind() == Kind::string ? display(key.as_string()) : key.summary();
}

// Python text: UTF-8, in which single surrogates are allowed.
bool is_python_text(std::string_view text) {
  while (!text.empty()) {
    std::size_t size = decode_utf8(text).size;
    if (size == 0 && text.size() >= 3 && text[0] == '\xED' && (text[1] & 0xE0) == 0xA0 &&
        (text[2] & 0xC0) == 0x80)
      size = 3;
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

// First pass: everything can be written, and what appears twice is known.
class Survey {
 public:
  Survey(const FormOptions& options, TensorPickler& tensors) : options_(options), tensors_(tensors) {}

  void run(const Value& root) {
    visit(root, false);
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const std::size_t index = frame.next++;
      const std::size_t count = child_count(frame);
      if (index < count) {
        const bool must_hash = (is_dict(frame.form) && index % 2 == 0) || frame.form == Form::set;
        visit(child(frame, index), must_hash);
      } else if (const auto attributes = attributes_to_build(frame); attributes && index == count) {
        visit(*attributes, false);
      } else {
        open_.erase(identity(frame.value));
        stack_.pop_back();
      }
    }
  }

  [[nodiscard]] bool is_shared(const Value& value) const { return shared_.contains(identity(value)); }

  [[nodiscard]] bool is_repeated(std::string_view text) const {
    const auto found = strings_.find(text);
    return found != strings_.end() && found->second;
  }

 private:
  void visit(const Value& given, bool must_hash) {
    const Value value = written_value(given, options_);
    const Form form = form_of(value, options_);
    if (form == Form::unrepresentable) {
      const bool has_more = value.kind() == Kind::tensor && !value.attributes().is_none();
      fail(Errc::not_representable, path(),
           "{} ({}{}) is not something torch.load(weights_only=True) reads{}", value.summary(),
           display(value.type()), has_more ? " with Python attributes" : "",
           options_.simplify ? "" : "; simplify writes it as what it is made of, where it can");
    }
    if (must_hash && !is_hashable(form))
      fail(Errc::not_representable, path(), "{} cannot be a key or an element of a set", value.summary());
    check_leaf(value, form);
    if (form == Form::string) {
      const auto [found, is_new] = strings_.try_emplace(value.as_string(), false);
      if (!is_new) found->second = true;
    }
    if (form != Form::tensor && form != Form::bytes && form != Form::bytearray && !is_container(form)) return;
    if (!seen_.insert(identity(value)).second) {
      if (is_made_last(form) && open_.contains(identity(value)))
        fail(Errc::not_representable, path(), "{} contains itself", value.summary());
      shared_.insert(identity(value));
      return;
    }
    if (form == Form::tensor) tensors_.note(value.tensor_value(), [this] { return path(); });
    if (!is_container(form)) return;
    if (is_made_last(form)) open_.insert(identity(value));
    stack_.push_back({value, form});
  }

  void check_leaf(const Value& value, Form form) const {
    if (form == Form::string &&
        (!is_python_text(value.as_string()) || value.as_string().size() > 0xFFFFFFFF)) {
      fail(Errc::not_representable, path(), "text that is not UTF-8, or longer than 4 GiB");
    }
    if (form == Form::bytes && value.as_bytes().size() > 0x7FFFFFFF)
      fail(Errc::not_representable, path(), "more than 2 GiB of bytes");
    if (form == Form::integer && !value.fits_int() && !PickleEmitter().big_integer(value.as_decimal())) {
      fail(Errc::not_representable, path(), "an integer of more than 255 bytes");
    }
  }

  [[nodiscard]] std::string path() const {
    std::string dotted;
    for (const Frame& frame : stack_) dotted += (dotted.empty() ? "" : ".") + label(frame);
    return dotted.empty() ? "the root" : dotted;
  }

  FormOptions options_;
  TensorPickler& tensors_;
  std::vector<Frame> stack_;
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_set<std::uint64_t> shared_;
  std::unordered_set<std::uint64_t> open_;  // tuples and sets being surveyed
  std::unordered_map<std::string_view, bool> strings_;
};

// Second pass: opcodes.
class TreePickler {
 public:
  TreePickler(const FormOptions& options, const Survey& survey, PickleEmitter& emitter,
              TensorPickler& tensors)
      : options_(options), survey_(survey), out_(emitter), tensors_(tensors) {}

  void run(const Value& root) {
    write(root);
    while (!stack_.empty()) step();
  }

 private:
  void step() {
    Frame& frame = stack_.back();
    const std::size_t index = frame.next++;
    const std::size_t count = child_count(frame);
    const std::size_t batch = is_dict(frame.form) ? 2 * kBatch : kBatch;
    const bool in_batches = frame.form != Form::tuple && frame.form != Form::size;
    if (index < count) {
      if (in_batches && index % batch == 0) {
        if (index > 0) close_batch(frame.form);
        out_.mark();
      }
      return write(child(frame, index));
    }
    if (index == count) {
      if (in_batches && count > 0) close_batch(frame.form);
      if (const auto attributes = attributes_to_build(frame)) return write(*attributes);
    } else {
      out_.build();
    }
    close(frame);
    stack_.pop_back();
  }

  void close_batch(Form form) {
    if (is_dict(form))
      out_.set_items();
    else
      out_.appends();
  }

  void open(const Value& value, Form form) {
    switch (form) {
      case Form::list:
        out_.empty_list();
        break;
      case Form::dict:
        out_.empty_dict();
        break;
      case Form::ordered_dict:
        out_.ordered_dict();
        break;
      case Form::counter:
        out_.global("collections\nCounter\n");
        out_.empty_dict();
        break;
      case Form::set:
        out_.global("__builtin__\nset\n");
        out_.empty_list();
        break;
      case Form::size:
        out_.global("torch\nSize\n");
        [[fallthrough]];
      default:
        if (value.size() > 3) out_.mark();
    }
    if (!is_made_last(form)) remember(value);
    stack_.push_back({value, form});
  }

  void close(const Frame& frame) {
    if (frame.form == Form::tuple || frame.form == Form::size) out_.tuple(frame.value.size());
    if (frame.form == Form::size || frame.form == Form::set || frame.form == Form::counter) {
      out_.tuple(1);
      out_.call();
    }
    if (is_made_last(frame.form)) remember(frame.value);
  }

  void remember(const Value& value) {
    if (survey_.is_shared(value)) slots_.emplace(identity(value), out_.remember());
  }

  void write(const Value& given) {
    const Value value = written_value(given, options_);
    const Form form = form_of(value, options_);
    const bool has_identity =
        is_container(form) || form == Form::tensor || form == Form::bytes || form == Form::bytearray;
    if (const auto found = has_identity ? slots_.find(identity(value)) : slots_.end(); found != slots_.end())
      return out_.recall(found->second);
    if (is_container(form)) return open(value, form);
    write_leaf(value, form);
    if (has_identity) remember(value);
  }

  void write_leaf(const Value& value, Form form) {
    switch (form) {
      case Form::none:
        return out_.none();
      case Form::boolean:
        return out_.boolean(value.as_bool());
      case Form::integer:
        return write_integer(value);
      case Form::floating:
        return out_.floating(value.as_float());
      case Form::string:
        return write_string(value.as_string());
      case Form::tensor:
        return tensors_.write(value.tensor_value());
      case Form::complex:
        out_.global("__builtin__\ncomplex\n");
        out_.floating(value.as_complex().real());
        out_.floating(value.as_complex().imag());
        break;
      case Form::bytes:
        out_.global("_codecs\nencode\n");
        out_.latin1(value.as_bytes());
        break;
      case Form::bytearray:
        out_.global("__builtin__\nbytearray\n");
        out_.latin1(value.as_bytes());
        break;
      case Form::dtype:
      case Form::constant:
        return write_constant(value.as_string());
      case Form::device:
        return write_device(value.as_string());
      case Form::layout:
        return write_layout(value.as_string());
      default:
        return;  // containers and what the survey refused
    }
    out_.tuple(2);
    out_.call();
  }

  void write_integer(const Value& value) {
    if (value.fits_int()) return out_.integer(value.as_int());
    static_cast<void>(out_.big_integer(value.as_decimal()));  // the survey has tried it
  }

  void write_string(std::string_view text) {
    if (survey_.is_repeated(text))
      out_.repeated_string(text);
    else
      out_.string(text);
  }

  static std::string_view without_torch(std::string_view name) {
    return name.starts_with("torch.") ? name.substr(6) : name;
  }

  void write_constant(std::string_view name) {
    out_.global(*names_.insert("torch\n" + std::string(without_torch(name)) + "\n").first);
  }

  void write_device(std::string_view text) {
    const std::size_t colon = text.find(':');
    out_.global("torch\ndevice\n");
    out_.string(text.substr(0, colon));
    if (colon != std::string_view::npos) out_.integer(std::atoi(std::string(text.substr(colon + 1)).c_str()));
    out_.tuple(colon == std::string_view::npos ? 1 : 2);
    out_.call();
  }

  void write_layout(std::string_view text) {
    out_.global("torch.serialization\n_get_layout\n");
    out_.string("torch." + std::string(without_torch(text)));
    out_.tuple(1);
    out_.call();
  }

  FormOptions options_;
  const Survey& survey_;
  PickleEmitter& out_;
  TensorPickler& tensors_;
  std::vector<Frame> stack_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
  std::unordered_set<std::string> names_;  // nodes stay where they are: the emitter refers to them
};

}  // namespace

std::string pickle_tree(const Value& root, const SaveOptions& options, StorageTable& storages) {
  PickleEmitter emitter;
  TensorPickler tensors(emitter, storages, options.legacy);
  const FormOptions form_options{.plain_dict = options.plain_dict, .simplify = options.simplify};
  Survey survey(form_options, tensors);
  survey.run(root);
  storages.settle();
  TreePickler(form_options, survey, emitter, tensors).run(root);
  return std::move(emitter).finish();
}

std::string pickle_tensors(const Checkpoint& checkpoint, const SaveOptions& options, StorageTable& storages) {
  PickleEmitter emitter;
  TensorPickler tensors(emitter, storages, options.legacy);
  for (const Entry& entry : checkpoint) {
    if (!is_python_text(entry.name))
      fail(Errc::not_representable, quoted(entry.name), "a name that is not UTF-8");
    if (info(entry.dtype).kind == DTypeKind::quantized) {
      fail(Errc::not_representable, display(entry.name), "{} has no scale and zero point outside a tree",
           info(entry.dtype).code);
    }
    tensors.note(entry.tensor(), [&] { return display(entry.name); });
  }
  const FormOptions form_options{.plain_dict = options.plain_dict, .simplify = options.simplify};
  Survey survey(form_options, tensors);
  const bool has_metadata = options.metadata && !options.plain_dict;
  if (has_metadata) survey.run(*options.metadata);
  storages.settle();

  if (options.plain_dict)
    emitter.empty_dict();
  else
    emitter.ordered_dict();
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    if (i % kBatch == 0) {
      if (i > 0) emitter.set_items();
      emitter.mark();
    }
    emitter.string(checkpoint[i].name);
    tensors.write(checkpoint[i].tensor());
  }
  if (!checkpoint.empty()) emitter.set_items();
  if (has_metadata) {
    emitter.empty_dict();
    emitter.mark();
    emitter.string("_metadata");
    TreePickler(form_options, survey, emitter, tensors).run(*options.metadata);
    emitter.set_items();
    emitter.build();
  }
  return std::move(emitter).finish();
}

}  // namespace ballast::torch
