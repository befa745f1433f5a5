// SPDX-License-Identifier: Apache-2.0
// Burnpack, read.
//
//   1. bytes 0-3   "NRUB" (0x4255524E, little-endian)
//   2. bytes 4-5   version, 1
//   3. bytes 6-9   length of the metadata
//   4. metadata    CBOR: {"tensors": {name: {"dtype", "shape": [..], "data_offsets": [begin, end],
//   "param_id"?}},
//                  "metadata"?: {text: text}, "scalars"?: {name: {"Int" | "UInt" | "Float" | "Bool": value}}}
//   5. zeros up to a multiple of 256 (none in files of Burn 0.19, whose tensors lie close together)
//   6. data        offsets count from here; every tensor begins on a multiple of 256
#include <algorithm>
#include <optional>
#include <set>

#include "ballast/error.h"
#include "base/budget.h"
#include "base/checked.h"
#include "base/hash.h"
#include "formats/burn/burn.h"
#include "formats/burn/cbor.h"
#include "formats/burn/msgpack.h"
#include "formats/burn/parts.h"
#include "formats/burn/quantized.h"
#include "formats/burn/scheme_reader.h"

namespace ballast::burn {
namespace {

constexpr std::string_view kMagic = "NRUB";
constexpr std::uint64_t kHeaderBytes = 10;
constexpr std::uint16_t kVersion = 1;

struct Described {
  std::string_view name;  // in the metadata's bytes
  std::optional<DType> dtype;
  std::optional<QuantScheme> quantized = {};
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class BpkReader {
 public:
  explicit BpkReader(const ByteSource& source) : source_(source), budget_(source.where()) {}

  Checkpoint read() {
    const std::uint64_t metadata_bytes = read_header();
    budget_.admit(metadata_bytes);
    const auto bytes = load_range(source_, kHeaderBytes, metadata_bytes);
    CborCursor cbor(span_of(*bytes), source_.where(), kHeaderBytes);
    read_metadata(cbor);
    if (!cbor.at_end())
      fail(Errc::trailing_data, source_.where(), "bytes behind the metadata's end at offset {}",
           cbor.offset());
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const Described& a, const Described& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    find_data(kHeaderBytes + metadata_bytes);
    check_places();
    for (const Described& tensor : tensors_) add(tensor);
    extras_.put(checkpoint_.metadata);
    state_producer();
    checkpoint_.format = formats::bpk;
    return std::move(checkpoint_);
  }

 private:
  std::uint64_t read_header() {
    const std::string& where = source_.where();
    if (source_.size() > kMaxFileBytes)
      fail(Errc::header_too_large, where, "{} bytes, Burnpack allows {}", source_.size(), kMaxFileBytes);
    if (source_.size() < kHeaderBytes)
      fail(Errc::truncated, where, "{} bytes, the header alone has {}", source_.size(), kHeaderBytes);
    const auto head = load_range(source_, 0, kHeaderBytes);
    ByteReader in(span_of(*head), where);
    if (in.take_text(4) != kMagic) fail(Errc::unknown_format, where, "is no Burnpack file");
    const auto version = in.take_le<std::uint16_t>();
    if (version > kVersion)
      fail(Errc::unsupported, where, "version {} of Burnpack, Ballast reads up to {}", version, kVersion);
    const auto size = in.take_le<std::uint32_t>();
    if (size > kMaxMetadataBytes)
      fail(Errc::header_too_large, where, "{} bytes of metadata, Burnpack allows {}", size,
           kMaxMetadataBytes);
    if (size > source_.size() - kHeaderBytes) {
      fail(Errc::truncated, where, "{} bytes of metadata are announced, {} follow", size,
           source_.size() - kHeaderBytes);
    }
    return size;
  }

  void read_metadata(CborCursor& cbor) {
    std::set<std::string, std::less<>> seen;
    cbor.object([&](std::string_view key) {
      const bool is_known = key == "tensors" || key == "metadata" || key == "scalars";
      if (is_known && !seen.emplace(key).second)
        fail(Errc::duplicate_key, cbor.where(), "{} stands there twice", quoted(key));
      if (key == "tensors")
        read_tensors(cbor);
      else if (key == "metadata")
        read_texts(cbor);
      else if (key == "scalars")
        read_scalars(cbor);
      else
        cbor.skip(1);
    });
    if (!seen.contains("tensors")) fail(Errc::bad_burn, cbor.where(), "metadata without a list of tensors");
  }

  void read_texts(CborCursor& cbor) {
    cbor.object([&](std::string_view name) {
      const std::string_view text = cbor.text();
      budget_.take(name.size() + text.size() + kMetadataEntryBytes);
      if (!checkpoint_.metadata) checkpoint_.metadata.emplace();
      if (!checkpoint_.metadata->emplace(name, text).second)
        fail(Errc::duplicate_key, cbor.where(), "metadata {} stands there twice", quoted(name));
    });
  }

  void read_scalars(CborCursor& cbor) {
    cbor.object([&](std::string_view name) {
      budget_.take(bytes_of_name(name.size()));
      if (!extras_.scalars.emplace(name, cbor.scalar()).second)
        fail(Errc::duplicate_key, cbor.where(), "scalar {} stands there twice", quoted(name));
    });
  }

  void read_tensors(CborCursor& cbor) {
    NameViewSet names;
    const std::uint64_t count = cbor.map();
    if (count > kMaxTensors)
      fail(Errc::too_many, cbor.where(), "{} tensors, Burnpack allows {}", count, kMaxTensors);
    tensors_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view name = cbor.text();
      budget_.take(bytes_of_name(name.size()));
      if (!names.insert(name).second)
        fail(Errc::duplicate_key, cbor.where(), "two tensors are called {}", quoted(name));
      tensors_.push_back(read_tensor(cbor, name));
    }
  }

  Described read_tensor(CborCursor& cbor, std::string_view name) {
    Described tensor;
    bool has_shape = false;
    bool has_place = false;
    cbor.object([&](std::string_view key) {
      if ((key == "dtype" && tensor.dtype) || (key == "shape" && has_shape) ||
          (key == "data_offsets" && has_place))
        fail(Errc::duplicate_key, cbor.where(), "tensor {}: {} stands there twice", quoted(name),
             quoted(key));
      if (key == "dtype") {
        tensor.dtype = read_dtype(cbor, name, tensor.quantized);
      } else if (key == "shape") {
        std::vector<std::uint64_t> dims;
        for (std::uint64_t count = cbor.array(); count > 0; --count) dims.push_back(cbor.unsigned_number());
        budget_.take(4 * sizeof(std::int64_t) * dims.size());
        tensor.shape = checked_shape(dims, name, cbor.where());
        has_shape = true;
      } else if (key == "data_offsets") {
        if (cbor.array() != 2) fail(Errc::bad_burn, cbor.where(), "tensor {}: not two offsets", quoted(name));
        tensor.begin = cbor.unsigned_number();
        tensor.end = cbor.unsigned_number();
        has_place = true;
      } else if (key == "param_id" && cbor.peek() == CborCursor::Kind::unsigned_integer) {
        extras_.ids.insert_or_assign(std::string(name), cbor.unsigned_number());
      } else {
        cbor.skip(3);
      }
    });
    if (!tensor.dtype || !has_shape || !has_place)
      fail(Errc::bad_burn, cbor.where(), "tensor {} lacks its {}", quoted(name),
           !tensor.dtype ? "dtype"
           : !has_shape  ? "shape"
                         : "data_offsets");
    tensor.name = name;
    return tensor;
  }

  DType read_dtype(CborCursor& cbor, std::string_view tensor, std::optional<QuantScheme>& quantized) {
    if (cbor.peek() == CborCursor::Kind::text)
      return dtype_from_variant(cbor.text(), {}, tensor, cbor.where(), checkpoint_.notes, extras_);
    if (cbor.map() != 1) fail(Errc::bad_burn, cbor.where(), "tensor {}: no dtype", quoted(tensor));
    const std::string_view variant = cbor.text();
    if (variant == "QFloat") {
      read_scheme(cbor, "", 4, quantized.emplace(), budget_);
      return DType::u8;
    }
    std::string_view store;
    if (cbor.peek() == CborCursor::Kind::text)
      store = cbor.text();
    else
      cbor.skip(4);
    return dtype_from_variant(variant, store, tensor, cbor.where(), checkpoint_.notes, extras_);
  }

  // Burn 0.19 put the data right behind the metadata and called it version 1 as well. Such a file is exactly
  // as long as its tensors, which lie without gaps; an aligned one of that length would be cut short.
  void find_data(std::uint64_t metadata_end) {
    data_ = (metadata_end + kAlignment - 1) / kAlignment * kAlignment;
    std::uint64_t last = 0;
    for (const Described& tensor : tensors_) {
      if (tensor.begin != last) return;
      last = tensor.end;
    }
    if (data_ == metadata_end || last == 0 || last > source_.size() || metadata_end + last != source_.size())
      return;
    data_ = metadata_end;
    checkpoint_.notes.emplace_back("the tensors lie close together, as Burn 0.19 wrote them");
  }

  // Inside the file, one behind the other: bytes on which two tensors lie would be copied twice.
  void check_places() {
    const std::string& where = source_.where();
    std::uint64_t last = 0;
    for (const Described& tensor : tensors_) {
      if (tensor.end < tensor.begin)
        fail(Errc::offset_out_of_range, where, "tensor {} ends at {}, before it begins at {}",
             quoted(tensor.name), tensor.end, tensor.begin);
      if (tensor.end - tensor.begin > kMaxTensorBytes)
        fail(Errc::too_many, where, "tensor {} has {} bytes, Burnpack allows {}", quoted(tensor.name),
             tensor.end - tensor.begin, kMaxTensorBytes);
      if (data_ > source_.size() || tensor.end > source_.size() - data_) {
        if (tensor.begin == tensor.end) continue;
        fail(Errc::truncated, where, "tensor {}: bytes {} to {} of the data, which begins at {} of {} bytes",
             quoted(tensor.name), tensor.begin, tensor.end, data_, source_.size());
      }
      if (tensor.begin < last && tensor.begin != tensor.end)
        fail(Errc::overlap, where, "tensor {} begins at {} of the data, the one before ends at {}",
             quoted(tensor.name), tensor.begin, last);
      last = std::max(last, tensor.end);
    }
    if (source_.size() > data_ + last + kAlignment)
      checkpoint_.notes.push_back(
          fmt::format("{} bytes behind the last tensor belong to nothing", source_.size() - data_ - last));
  }

  void add(const Described& tensor) {
    if (tensor.quantized) return add_quantized(tensor);
    check_size(*tensor.dtype, tensor.shape, tensor.end - tensor.begin, tensor.name, source_.where());
    const bool is_empty = tensor.begin == tensor.end;
    const std::uint32_t storage =
        CheckpointBuilder(checkpoint_)
            .add_storage(elements_of(source_, is_empty ? 0 : data_ + tensor.begin, tensor.end - tensor.begin,
                                     info(*tensor.dtype).bits / 8));
    static_cast<void>(CheckpointBuilder(checkpoint_)
                          .add_view(CheckpointBuilder(checkpoint_).store_name(tensor.name), *tensor.dtype,
                                    tensor.shape, storage, 0));  // names were settled before
  }

  void add_quantized(const Described& tensor) {
    const std::uint64_t size = tensor.end - tensor.begin;
    const auto bytes = elements_of(source_, size == 0 ? 0 : data_ + tensor.begin, size, 1);
    const Tensor raw = Tensor::contiguous_view(DType::u8, Shape{static_cast<std::int64_t>(size)}, bytes);
    checkpoint_.add(std::string(tensor.name),
                    read_quantized(*tensor.quantized, raw, tensor.shape, tensor.name, checkpoint_.notes));
  }

  // A copy in another format must still say whose layout it is.
  void state_producer() {
    if (!checkpoint_.metadata) checkpoint_.metadata.emplace();
    if (!checkpoint_.metadata->contains("ballast.layout")) checkpoint_.metadata->emplace("producer", "burn");
  }

  const ByteSource& source_;
  Budget budget_;
  Checkpoint checkpoint_;
  Extras extras_;
  std::vector<Described> tensors_;
  std::uint64_t data_ = 0;  // where the data begins
};

}  // namespace

bool is_bpk(std::span<const std::byte> head) noexcept {
  return as_text(head).starts_with(kMagic);
}

Checkpoint open_bpk(const ByteSource& source) {
  return BpkReader(source).read();
}

}  // namespace ballast::burn
