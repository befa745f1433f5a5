// SPDX-License-Identifier: Apache-2.0
#include "containers/zip_writer.h"

#include <cstring>

#include "ballast/error.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "containers/zip_records.h"

namespace ballast::containers {

using namespace zip;

namespace {

template <class T>
void put(std::string& out, std::uint64_t value) {
  const T number = static_cast<T>(value);
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

// miniz compares with >=: the largest 32-bit number stands for "see the zip64 field".
bool is_wide(std::uint64_t number) {
  return number >= kMarker32;
}

bool has_descriptor64(const Part& part) {
  return is_wide(part.size) || is_wide(part.at);
}

std::uint64_t flags_of(std::uint64_t size) {
  return size > 0 ? kUtf8Flag | kDescriptorFlag : kUtf8Flag;
}

std::string zip64_field(std::uint64_t size, std::uint64_t header) {
  if (!is_wide(size) && !is_wide(header)) return {};
  std::string out;
  put<std::uint16_t>(out, kZip64Extra);
  put<std::uint16_t>(out, (is_wide(size) ? 16U : 0U) + (is_wide(header) ? 8U : 0U));
  if (is_wide(size)) {
    put<std::uint64_t>(out, size);
    put<std::uint64_t>(out, size);
  }
  if (is_wide(header)) put<std::uint64_t>(out, header);
  return out;
}

std::uint64_t narrow(std::uint64_t number) {
  return is_wide(number) ? kMarker32 : number;
}

void write_descriptor(const Part& part, std::span<std::byte> out) {
  std::string text;
  put<std::uint32_t>(text, kDescriptorSignature);
  put<std::uint32_t>(text, part.crc);
  for (int i = 0; i < 2; ++i) {  // packed and unpacked
    if (has_descriptor64(part))
      put<std::uint64_t>(text, part.size);
    else
      put<std::uint32_t>(text, part.size);
  }
  std::memcpy(out.data(), text.data(), out.size());
}

std::uint64_t central_size(std::string_view name, const Part& part) {
  return kCentralSize + name.size() + zip64_field(part.size, part.at).size();
}

}  // namespace

std::string ZipWriter::local_header(const ZipRecord& record, std::uint64_t at) const {
  std::string out;
  put<std::uint32_t>(out, kLocalSignature);
  put<std::uint16_t>(out, 0);  // version needed
  put<std::uint16_t>(out, flags_of(record.size));
  out.append(18, '\0');  // method, time, date, checksum, sizes
  put<std::uint16_t>(out, record.name.size());
  const std::string wide = zip64_field(record.size, at);
  const std::uint64_t before_padding = at + kLocalSize + record.name.size() + wide.size() + 4;
  const std::uint64_t padding = (kAlignment - before_padding % kAlignment) % kAlignment;
  put<std::uint16_t>(out, wide.size() + 4 + padding);
  out += record.name;
  out += wide;
  out += "FB";
  put<std::uint16_t>(out, padding);
  out.append(static_cast<std::size_t>(padding), 'Z');
  return out;
}

ZipWriter::ZipWriter(std::vector<ZipRecord> records) {
  parts_.reserve(records.size());
  names_.reserve(records.size());
  std::uint64_t at = 0;
  std::uint64_t directory_size = 0;
  for (ZipRecord& record : records) {
    if (record.name.size() > 0xFFFF) {
      fail(Errc::invalid_argument, quoted(record.name), "a record's name has at most 65535 bytes");
    }
    Part part{.at = at,
              .before = local_header(record, at),
              .storage = std::move(record.storage),
              .offset = record.offset,
              .size = record.size};
    if (part.size > 0)
      part.after_size =
          static_cast<std::uint32_t>(has_descriptor64(part) ? kDescriptor64Size : kDescriptorSize);
    at = part.end();
    directory_size += central_size(record.name, part);
    parts_.push_back(std::move(part));
    names_.push_back(std::move(record.name));
  }
  directory_at_ = at;
  size_ = at + directory_size + kEnd64Size + kLocatorSize + kEndSize;
}

std::string ZipWriter::directory() const {
  std::string out;
  out.reserve(static_cast<std::size_t>(size_ - directory_at_));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::string wide = zip64_field(part.size, part.at);
    put<std::uint32_t>(out, kCentralSignature);
    out.append(4, '\0');  // made by, version needed
    put<std::uint16_t>(out, flags_of(part.size));
    out.append(6, '\0');  // method, time, date
    put<std::uint32_t>(out, part.crc);
    put<std::uint32_t>(out, narrow(part.size));
    put<std::uint32_t>(out, narrow(part.size));
    put<std::uint16_t>(out, names_[i].size());
    put<std::uint16_t>(out, wide.size());
    out.append(10, '\0');  // comment size, disk, attributes
    put<std::uint32_t>(out, narrow(part.at));
    out += names_[i];
    out += wide;
  }
  const std::uint64_t end64_at = directory_at_ + out.size();
  const std::uint64_t directory_size = out.size();
  put<std::uint32_t>(out, kEnd64Signature);
  put<std::uint64_t>(out, kEnd64Size - 12);
  put<std::uint16_t>(out, 0x031E);  // made by: miniz says Unix, 3.0
  put<std::uint16_t>(out, 45);      // zip64
  out.append(8, '\0');              // disks
  put<std::uint64_t>(out, parts_.size());
  put<std::uint64_t>(out, parts_.size());
  put<std::uint64_t>(out, directory_size);
  put<std::uint64_t>(out, directory_at_);
  put<std::uint32_t>(out, kLocatorSignature);
  put<std::uint32_t>(out, 0);
  put<std::uint64_t>(out, end64_at);
  put<std::uint32_t>(out, 1);
  put<std::uint32_t>(out, kEndSignature);
  out.append(4, '\0');  // disks
  put<std::uint16_t>(out, std::min<std::uint64_t>(parts_.size(), kMarker16));
  put<std::uint16_t>(out, std::min<std::uint64_t>(parts_.size(), kMarker16));
  put<std::uint32_t>(out, narrow(directory_size));
  put<std::uint32_t>(out, narrow(directory_at_));
  put<std::uint16_t>(out, 0);
  return out;
}

void ZipWriter::write(AtomicFile& file, const Progress& progress,
                      const std::function<std::string(std::span<const Part>)>& last) {
  file.reserve(size_);
  const std::size_t early = parts_.size() - (last ? 1 : 0);
  write_parts(file, std::span(parts_).first(early), write_descriptor, progress);
  if (last) {
    const std::string text = last(std::span(parts_).first(early));
    if (text.size() != parts_.back().size)
      fail(Errc::invalid_argument, quoted(names_.back()), "is not of the size it was declared with");
    parts_.back().storage = Storage::borrow(static_cast<const void*>(text.data()), text.size());
    write_parts(file, std::span(parts_).last(1), write_descriptor, {});
    parts_.back().storage = nullptr;
  }
  file.write_at(directory_at_, as_bytes(directory()));
}

}  // namespace ballast::containers
