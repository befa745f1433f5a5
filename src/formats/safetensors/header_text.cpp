// SPDX-License-Identifier: Apache-2.0
// The header's JSON. What is accepted is what the reference accepts, quirks included, because files in the
// world rely on them:
//   {"__metadata__": {"key": "value", …} or null,                               at most once
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24], …}}     fields in any order, each
//    once; others are ignored
// A tensor may also be the array ["F32", [2, 3], [0, 24]], and a dtype the object {"F32": null}.
#include <array>
#include <limits>

#include "ballast/error.h"
#include "base/checked.h"
#include "base/json_scanner.h"
#include "formats/safetensors/header.h"

namespace ballast::safetensors {
namespace {

using Kind = JsonScanner::Kind;

constexpr std::string_view kMetadataKey = "__metadata__";
// The reference has no such limit; without one, a hostile header makes a map many times its own size.
constexpr std::size_t kMaxMetadataKeys = 1'000'000;

class HeaderParser {
 public:
  HeaderParser(std::span<char> text, const std::string& where, Mode mode)
      : json_(text, where), where_(where), mode_(mode) {}

  Header parse() {
    // What a usual tensor takes; untouched memory costs nothing, and moving a growing list does.
    header_.tensors.reserve(json_.size() / 96);
    header_.dims.reserve(json_.size() / 48);
    if (json_.peek() != Kind::object) fail(Errc::bad_json, where_, "the header is not a JSON object");
    bool metadata_seen = false;
    json_.object([&](std::string_view key) {
      if (key != kMetadataKey) return tensor(key);
      if (metadata_seen)
        fail(Errc::duplicate_key, where_, "{} is there twice in the header", quoted(kMetadataKey));
      metadata_seen = true;
      metadata();
    });
    json_.finish();
    return std::move(header_);
  }

 private:
  void metadata() {
    if (json_.peek() == Kind::null) return json_.null();
    if (json_.peek() != Kind::object)
      fail(Errc::bad_json, where_, "{} is neither an object nor null", quoted(kMetadataKey));
    auto& pairs = header_.metadata.emplace();
    json_.object([&](std::string_view key) {
      if (json_.peek() != Kind::string) {
        fail(Errc::bad_json, where_,
             "metadata {} is not a string (Safetensors metadata holds nothing but strings)", quoted(key));
      }
      if (mode_ == Mode::strict && pairs.size() == kMaxMetadataKeys) {
        fail(Errc::too_many, where_, "more than {} metadata keys", kMaxMetadataKeys);
      }
      pairs.emplace_back(key, json_.string());
    });
  }

  void tensor(std::string_view name) {
    name_ = name;
    if (mode_ == Mode::strict && name.find('\0') != std::string_view::npos) {
      fail(Errc::bad_name, where_, "tensor name {} has a NUL in it (meant to hide something?)", quoted(name));
    }
    HeaderEntry entry{.name_text = name.data(),
                      .begin = 0,
                      .end = 0,
                      .name_size = static_cast<std::uint32_t>(name.size()),
                      .rank = 0,
                      .first_dim = static_cast<std::uint32_t>(header_.dims.size()),
                      .dtype = DType::u8};
    if (!usual_form(entry)) any_form(entry);
    header_.tensors.push_back(entry);
  }

  // The form the reference and most others write, without a stray space: worth a shortcut, since it is nearly
  // every tensor there is. Takes nothing when it is anything else.
  bool usual_form(HeaderEntry& entry) {
    const std::size_t start = json_.offset();
    if (json_.take_text(R"({"dtype":")") && usual_dtype(entry.dtype) && json_.take_text(R"(,"shape":[)") &&
        usual_shape(entry) && json_.take_text(R"(,"data_offsets":[)") && json_.take_unsigned(entry.begin) &&
        json_.take_text(",") && json_.take_unsigned(entry.end) && json_.take_text("]}")) {
      return true;
    }
    json_.rewind(start);
    header_.dims.resize(entry.first_dim);
    entry.rank = 0;
    return false;
  }

  // Up to and with the closing quote. The dtype of the last tensor is most often the next one's too.
  bool usual_dtype(DType& dtype) {
    if (json_.take_text(last_dtype_quoted())) {
      dtype = last_dtype_;
      return true;
    }
    return false;
  }

  bool usual_shape(HeaderEntry& entry) {
    if (json_.take_text("]")) return true;
    do {
      std::uint64_t dim = 0;
      if (!json_.take_unsigned(dim)) return false;
      header_.dims.push_back(dim);
      ++entry.rank;
    } while (json_.take_text(","));
    if (!json_.take_text("]")) return false;
    if (mode_ == Mode::strict) check_dims(entry);
    return true;
  }

  [[nodiscard]] std::string_view last_dtype_quoted() const { return {last_code_.data(), last_code_size_}; }

  void any_form(HeaderEntry& entry) {
    switch (json_.peek()) {
      case Kind::object:
        return object_form(entry);
      case Kind::array:
        return array_form(entry);
      default:
        fail(Errc::bad_json, where_, "tensor {} is not described by an object", quoted(name_));
    }
  }

  void object_form(HeaderEntry& entry) {
    enum Field : unsigned { dtype_field = 1, shape_field = 2, offsets_field = 4 };

    unsigned seen = 0;
    const auto once = [&](Field field, const char* key) {
      if ((seen & field) != 0)
        fail(Errc::duplicate_key, where_, "tensor {} has two fields \"{}\"", quoted(name_), key);
      seen |= field;
    };
    json_.object([&](std::string_view key) {
      if (key == "dtype") {
        once(dtype_field, "dtype");
        dtype(entry);
      } else if (key == "shape") {
        once(shape_field, "shape");
        shape(entry);
      } else if (key == "data_offsets") {
        once(offsets_field, "data_offsets");
        offsets(entry);
      } else {
        json_.skip_value();
      }
    });
    for (const auto& [field, key] : {std::pair(dtype_field, "dtype"), std::pair(shape_field, "shape"),
                                     std::pair(offsets_field, "data_offsets")}) {
      if ((seen & field) == 0)
        fail(Errc::bad_json, where_, "tensor {} has no field \"{}\"", quoted(name_), key);
    }
  }

  void array_form(HeaderEntry& entry) {
    int count = 0;
    json_.array([&] {
      switch (count++) {
        case 0:
          return dtype(entry);
        case 1:
          return shape(entry);
        case 2:
          return offsets(entry);
        default:
          json_.skip_value();
      }
    });
    if (count != 3)
      fail(Errc::bad_json, where_, "tensor {} is an array of {} values, 3 are needed", quoted(name_), count);
  }

  void dtype(HeaderEntry& entry) {
    const Kind kind = json_.peek();
    if (kind == Kind::string) {
      set_dtype(entry, json_.string());
    } else if (kind == Kind::object) {
      int count = 0;
      json_.object([&](std::string_view code) {
        set_dtype(entry, code);
        if (++count > 1 || json_.peek() != Kind::null) bad_dtype();
        json_.null();
      });
      if (count != 1) bad_dtype();
    } else {
      bad_dtype();
    }
  }

  [[noreturn]] void bad_dtype() const {
    fail(Errc::bad_dtype, where_, "tensor {}: its dtype is not a string", quoted(name_));
  }

  void set_dtype(HeaderEntry& entry, std::string_view code) {
    const auto found = dtype_from_code(code);
    if (!found || !info(*found).in_safetensors) {
      fail(Errc::bad_dtype, where_, "tensor {}: Safetensors has no dtype {}", quoted(name_), quoted(code));
    }
    entry.dtype = *found;
    last_dtype_ = *found;
    last_code_size_ = info(*found).code.copy(last_code_.data(), last_code_.size() - 1);
    last_code_[last_code_size_++] = '"';
  }

  void shape(HeaderEntry& entry) {
    if (json_.peek() != Kind::array)
      fail(Errc::bad_json, where_, "tensor {}: its shape is not an array", quoted(name_));
    json_.array([&] {
      header_.dims.push_back(whole_number("a dimension"));
      ++entry.rank;
    });
    if (mode_ == Mode::strict) check_dims(entry);
  }

  void check_dims(const HeaderEntry& entry) const {
    for (const std::uint64_t dim : header_.shape(entry)) {
      if (dim > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail(Errc::size_overflow, where_, "tensor {}: dimension {} does not fit into 63 bits", quoted(name_),
             dim);
      }
    }
  }

  void offsets(HeaderEntry& entry) {
    if (json_.peek() != Kind::array)
      fail(Errc::bad_json, where_, "tensor {}: its data_offsets are not an array", quoted(name_));
    int count = 0;
    json_.array([&] {
      if (count == 2) fail(Errc::bad_json, where_, "tensor {}: more than two data_offsets", quoted(name_));
      (count++ == 0 ? entry.begin : entry.end) = whole_number("an offset");
    });
    if (count != 2)
      fail(Errc::bad_json, where_, "tensor {}: {} data_offsets, 2 are needed", quoted(name_), count);
  }

  std::uint64_t whole_number(const char* what) {
    if (json_.peek() != Kind::number)
      fail(Errc::bad_json, where_, "tensor {}: {} is not a number", quoted(name_), what);
    const JsonScanner::Number number = json_.number();
    if (!number.is_unsigned) {
      fail(Errc::bad_json, where_, "tensor {}: {} is {}, a whole number from 0 to 2^64 - 1 is needed",
           quoted(name_), what, display(number.text, 40));
    }
    return number.value;
  }

  JsonScanner json_;
  const std::string& where_;
  Mode mode_;
  Header header_;
  std::string_view name_;  // of the tensor being read, for messages
  DType last_dtype_ = DType::f32;
  std::array<char, 16> last_code_ = {'F', '3', '2', '"'};
  std::size_t last_code_size_ = 4;
};

}  // namespace

Header parse_header_text(std::shared_ptr<char[]> text, std::size_t size, const std::string& where,
                         Mode mode) {
  if (!is_utf8({text.get(), size}))
    fail(Errc::bad_utf8, where, "the header of {} bytes is not UTF-8 (not a Safetensors file, or damaged?)",
         size);
  Header header = HeaderParser({text.get(), size}, where, mode).parse();
  header.text = std::move(text);
  return header;
}

}  // namespace ballast::safetensors
