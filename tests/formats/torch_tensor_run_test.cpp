// SPDX-License-Identifier: Apache-2.0
// Tensors read at once are the tensors their opcodes make: each stream is run both ways, and so is every
// prefix of it and every change of one of its bytes. What is refused is refused in the same words.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "formats/pickle_asm.h"
#include "formats/torch/objects.h"
#include "formats/torch/reader.h"
#include "oracle/canonical_text.h"

namespace ballast {
namespace {

using namespace testing::pickle;
using Numbers = std::vector<std::int64_t>;

constexpr std::uint64_t kFloatsHeld = 70'000;

struct Outcome {
  std::string text;           // the value, or the refusal
  std::size_t looked_up = 0;  // storages of tensors that were read at once
};

// Storages of every key hold the same numbers; one of the key "gone" is missing.
Outcome run(const std::string& code, bool at_once) {
  static const auto numbers = [] {
    const auto storage = Storage::heap(kFloatsHeld * 4);
    for (std::size_t i = 0; i < storage->size(); ++i)
      storage->mutable_data()[i] = static_cast<std::byte>(i / 4 * 7 % 251);
    return storage;
  }();
  const auto copy = Storage::heap(code.size());
  if (!code.empty()) std::memcpy(copy->mutable_data(), code.data(), code.size());
  torch::Objects objects(std::make_shared<ValueTree>(), {.input_bytes = 1U << 30U});
  std::map<std::string, std::uint32_t> indices;
  const auto storage = [&](const torch::StorageId& id) -> torch::StorageInfo {
    if (id.key == "gone" || id.bytes > numbers->size())
      objects.refuse(Errc::missing_storage, "storage {} of {} bytes", quoted(id.key), id.bytes);
    const auto [place, added] =
        indices.try_emplace(id.key, static_cast<std::uint32_t>(objects.tree().storages.size()));
    if (added) objects.tree().storages.push_back(numbers);
    return {.dtype = id.dtype, .location = id.location, .numel = id.numel, .index = place->second};
  };
  Outcome out;
  torch::Stream stream{.where = "stream", .entry = {}, .persistent = [&](Ref id) {
                         const torch::StorageId parsed = torch::parse_storage_id(objects, id);
                         return objects.views().storage(storage(parsed), parsed.type);
                       }};
  if (at_once) {
    stream.storage = [&](const torch::StorageId& id) {
      ++out.looked_up;
      return storage(id);
    };
  }
  try {
    std::size_t used = 0;
    const Ref root = torch::run_pickle(objects, copy, 0, std::move(stream), used);
    objects.finish();
    out.text = std::to_string(used) + " " + std::to_string(objects.tree().tensors) + " " +
               testing::CanonicalText::of(ValueTree::value(objects.shared_tree(), root));
    for (const std::string& name : objects.ledger().unknown_names()) out.text += " " + name;
  } catch (const Error& error) {
    out.text = std::string(name(error.code())) + ": " + error.what();
  }
  return out;
}

struct Style {
  bool puts = true;   // behind everything that PyTorch's pickler remembers
  bool wide = false;  // LONG_BINPUT and LONG_BINGET
  std::uint32_t first_slot = 0;
  std::uint32_t jump_at = 0;  // this PUT leaves a slot out; 0: none does
};

// Writes as CPython's pickler does: what was written before is fetched.
class Pickler {
 public:
  explicit Pickler(Style style) : style_(style), slots_(style.first_slot) {}

  std::uint32_t put() {
    if (++puts_ == style_.jump_at) ++slots_;
    if (style_.puts) code += at(slots_, 'q', 'r');
    return slots_++;
  }

  void get(std::uint32_t slot) { code += at(slot, 'h', 'j'); }

  // `what` is written once, and remembered whatever the style is.
  void once(const std::string& what) {
    const auto [place, added] = known_.try_emplace(what, slots_);
    if (!added) return get(place->second);
    code += what + at(slots_++, 'q', 'r');
  }

  void number(std::int64_t value) {
    if (value >= 0 && value < 256)
      code += "K" + le(static_cast<std::uint64_t>(value), 1);
    else if (value >= 0 && value < 65'536)
      code += "M" + le(static_cast<std::uint64_t>(value), 2);
    else
      code += "J" + le(static_cast<std::uint64_t>(value), 4);
  }

  void numbers(const Numbers& values) {
    if (values.empty()) {
      code += ")";
      return;
    }
    if (values.size() > 3) code += "(";
    for (const std::int64_t value : values) number(value);
    code += values.size() > 3 ? 't' : static_cast<char>(0x84 + values.size());
    put();
  }

  struct Tensor {
    std::string key = "0";
    std::int64_t numel = 60;
    std::int64_t offset = 0;
    Numbers sizes = {3, 4};
    Numbers strides = {4, 1};
    std::string type = "Float";
    std::string location = "cpu";
    bool requires_grad = false;
  };

  /// The slots of key, id, sizes, strides, hooks and arguments, as far as there are any.
  std::pair<std::uint32_t, std::uint32_t> tensor(const std::string& name, const Tensor& tensor) {
    code += text(name);
    put();
    once(global("torch._utils", "_rebuild_tensor_v2"));
    const std::uint32_t first = slots_;
    code += "((";
    once(text("storage"));
    once(global("torch", tensor.type + "Storage"));
    code += text(tensor.key);
    put();
    once(text(tensor.location));
    number(tensor.numel);
    code += "t";
    put();
    code += "Q";
    number(tensor.offset);
    numbers(tensor.sizes);
    numbers(tensor.strides);
    code += tensor.requires_grad ? '\x88' : '\x89';
    once(global("collections", "OrderedDict"));
    code += ")R";
    put();
    code += "t";
    const std::uint32_t last = put();
    code += "R";
    put();
    return {first, last};
  }

  std::string code;

 private:
  std::string at(std::uint32_t slot, char narrow, char wide) const {
    if (slot < 256 && !style_.wide) return narrow + le(slot, 1);
    return wide + le(slot, 4);
  }

  Style style_;
  std::uint32_t slots_;
  std::uint32_t puts_ = 0;
  std::map<std::string, std::uint32_t> known_;
};

const std::string kTail = "X" + le(200, 4) + std::string(200, 'x') + "Nu.";  // runs do not end at the end

// Three tensors, of which the first names everything; `between` may say more behind the second.
std::string stream(const Style& style, const Pickler::Tensor& tensor = {},
                   const std::function<void(Pickler&, std::uint32_t, std::uint32_t)>& between = {}) {
  Pickler pickler(style);
  pickler.code =
      "\x80\x02}(" + std::string(style.first_slot + 1, 'N') + std::string(style.first_slot + 1, '0');
  pickler.tensor("a", {.key = "1", .type = tensor.type, .location = tensor.location});
  const auto [first, last] = pickler.tensor("b", tensor);
  if (between) between(pickler, first, last);
  pickler.tensor("c", {.key = "2", .offset = 1, .type = tensor.type, .location = tensor.location});
  return pickler.code + kTail;
}

// How many of the tensors are read at once.
std::size_t expect_same(const std::string& code, const std::string& what = {}) {
  const Outcome at_once = run(code, true);
  EXPECT_EQ(at_once.text, run(code, false).text) << what;
  return at_once.looked_up;
}

std::vector<Style> styles() {
  return {{}, {.wide = true}, {.puts = false}, {.wide = true, .first_slot = 1000}};
}

TEST(TensorRun, TensorsAsPyTorchWritesThemAreReadAtOnce) {
  for (const Style& style : styles()) {
    const std::string code = stream(style);
    EXPECT_EQ(expect_same(code), 2U);
    EXPECT_TRUE(run(code, true).text.find("float32[3,4,]") != std::string::npos);
  }
}

TEST(TensorRun, EveryShapeClassPlaceAndKeyIsTheOneTheOpcodesMake) {
  const std::vector<Pickler::Tensor> tensors = {
      {.sizes = {}, .strides = {}},
      {.sizes = {60}, .strides = {1}},
      {.sizes = {2, 3, 4}, .strides = {1, 2, 6}},
      {.sizes = {1, 2, 3, 4}, .strides = {24, 12, 4, 1}},
      {.sizes = {1, 2, 3, 1, 2}, .strides = {12, 6, 2, 2, 1}},
      {.sizes = {1, 2, 3, 1, 2, 1}, .strides = {12, 6, 2, 2, 1, 1}},
      {.sizes = {0, 3}, .strides = {3, 1}},
      {.sizes = {3}, .strides = {0}},
      {.numel = 70'000, .offset = 300, .sizes = {69'000}, .strides = {1}},
      {.numel = 30, .sizes = {5}, .strides = {1}, .type = "Double"},
      {.sizes = {2}, .strides = {1}, .type = "BFloat16"},
      {.location = "cuda:0"},
      {.location = "meta"},
      {.requires_grad = true},
      {.key = "a/b"},
      {.key = std::string(40, '7')},
      {.key = "\xc3\xa9"},
      // and what is refused
      {.key = "gone"},
      {.numel = 5},
      {.offset = 59},
      {.sizes = {3, 4}, .strides = {4}},
      {.sizes = {-3}, .strides = {1}},
      {.sizes = {3}, .strides = {-1}},
      {.sizes = {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF}, .strides = {0, 0, 0}},
      {.numel = -1},
      {.numel = 0x7FFFFFFF},
      {.type = "Strange"},
  };
  for (const Style& style : styles()) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      expect_same(stream(style, tensors[i]), "tensor " + std::to_string(i));
  }
}

// What is between the opcodes of a tensor can be fetched later, and is the one thing it was.
TEST(TensorRun, WhatATensorWasMadeOfCanBeFetchedLater) {
  for (const Style& style : styles()) {
    if (!style.puts) continue;
    for (std::uint32_t skip = 0; skip < 6; ++skip) {
      const auto fetch = [skip](Pickler& pickler, std::uint32_t first, std::uint32_t) {
        pickler.code += "X" + le(1, 4) + "v(";
        pickler.get(first + skip);
        pickler.get(first);
        pickler.get(first + skip);
        pickler.code += "t";
      };
      expect_same(stream(style, {}, fetch), "slot " + std::to_string(skip));
      // All slots in one list, the hooks filled: what is filled is what the arguments hold.
      const auto fill = [skip](Pickler& pickler, std::uint32_t first, std::uint32_t last) {
        pickler.code += "X" + le(1, 4) + "v](";
        for (std::uint32_t slot = first; slot <= last; ++slot) pickler.get(first + (slot - first + skip) % 6);
        pickler.code += "eX" + le(1, 4) + "w";
        pickler.get(last - 1);
        pickler.code += "K\x01K\x02s";
      };
      expect_same(stream(style, {}, fill), "from slot " + std::to_string(skip));
    }
  }
}

// A slot that is set again, be it one that the tensor fetched, changes what others find and nothing else.
TEST(TensorRun, SlotsThatAreSetAgainChangeNothingThatWasMadeBefore) {
  for (const Style& style : styles()) {
    if (!style.puts) continue;
    for (std::uint32_t slot = style.first_slot; slot < style.first_slot + 30; ++slot) {
      const auto overwrite = [slot](Pickler& pickler, std::uint32_t first, std::uint32_t last) {
        pickler.code += "X" + le(1, 4) + "v]r" + le(slot, 4) + "X" + le(1, 4) + "w](";
        for (std::uint32_t at = first; at <= last; ++at) pickler.get(at);
        pickler.code += "e";
      };
      expect_same(stream(style, {}, overwrite), "slot " + std::to_string(slot));
    }
  }
}

TEST(TensorRun, SlotsThatAreLeftOutStayEmpty) {
  std::size_t at_once = 0;
  for (std::uint32_t jump = 1; jump <= 22; ++jump) {
    const auto fetch = [](Pickler& pickler, std::uint32_t first, std::uint32_t last) {
      pickler.code += "X" + le(1, 4) + "v](";
      for (std::uint32_t slot = first; slot <= last; ++slot) pickler.get(slot);
      pickler.code += "e";
    };
    at_once += expect_same(stream({.jump_at = jump}), "put " + std::to_string(jump));
    expect_same(stream({.jump_at = jump}, {}, fetch), "put " + std::to_string(jump));
  }
  EXPECT_GT(at_once, 22U);
  EXPECT_LT(at_once, 44U);
}

TEST(TensorRun, MemoizeCountsTheSlotsOfTensors) {
  const auto memoize = [](Pickler& pickler, std::uint32_t first, std::uint32_t last) {
    pickler.code += "X" + le(1, 4) + "v]\x94(";
    pickler.get(last + 1);
    pickler.get(first);
    pickler.code += "e";
  };
  for (const Style& style : styles()) expect_same(stream(style, {}, memoize));
}

// Before the first tensor nothing is known of any slot: what was never set, is None or was read at once
// itself is no kind, class, place or hooks.
TEST(TensorRun, TheFirstTensorOfSlotsThatHoldNothingIsNone) {
  const std::string at_once = global("torch._utils", "_rebuild_tensor_v2") + "q" + le(0, 1) + "0N" + "q" +
                              le(1, 1) + "0" + text("storage") + "q" + le(2, 1) + "0" +
                              global("torch", "FloatStorage") + "q" + le(3, 1) + "0" + text("cpu") + "q" +
                              le(4, 1) + "0" + global("collections", "OrderedDict") + "q" + le(5, 1) + "0";
  const auto slot = [](unsigned number) { return "h" + le(number, 1); };
  for (unsigned kind : {1U, 2U, 99U}) {
    for (unsigned type : {1U, 3U, 99U}) {
      for (unsigned place : {1U, 4U, 99U}) {
        for (unsigned hooks : {1U, 5U, 99U}) {
          std::string code = "\x80\x02}(" + at_once + text("w") + slot(0) + "((" + slot(kind) + slot(type) +
                             text("0") + slot(place) + "K\x04tQK" + std::string(1, '\0') +
                             "K\x04\x85K\x01\x85\x89" + slot(hooks) + ")RtR";
          const std::size_t read =
              expect_same(code + kTail, fmt::format("{} {} {} {}", kind, type, place, hooks));
          EXPECT_EQ(read, kind == 2 && type == 3 && place == 4 && hooks == 5 ? 1U : 0U);
        }
      }
    }
  }
}

TEST(TensorRun, EveryPrefixEndsAsItsOpcodesDo) {
  for (const Style& style : styles()) {
    const std::string code = stream(style);
    for (std::size_t size = 0; size < code.size(); ++size)
      expect_same(code.substr(0, size) + ".", "cut at " + std::to_string(size));
  }
}

TEST(TensorRun, EveryChangedByteEndsAsItsOpcodesDo) {
  std::size_t different = 0;
  for (const Style& style : {Style{}, Style{.puts = false}}) {
    const auto fetch = [](Pickler& pickler, std::uint32_t first, std::uint32_t last) {
      pickler.code += "X" + le(1, 4) + "v(";
      for (std::uint32_t at = first; at <= last; ++at) pickler.get(at);
      pickler.code += "t";
    };
    const std::string code =
        style.puts ? stream(style, {.sizes = {2, 2, 3}, .strides = {6, 3, 1}}, fetch) : stream(style);
    const std::string same = run(code, true).text;
    for (std::size_t at = 0; at + kTail.size() < code.size(); ++at) {
      for (unsigned value = 0; value < 256; ++value) {
        std::string changed = code;
        changed[at] = static_cast<char>(value);
        const Outcome at_once = run(changed, true);
        const std::string by_opcodes = run(changed, false).text;
        ASSERT_EQ(at_once.text, by_opcodes) << "byte " << at << " is " << value;
        different += by_opcodes != same ? 1 : 0;
      }
    }
  }
  EXPECT_GT(different, 100'000U);
}

}  // namespace
}  // namespace ballast
