// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle_listing.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>

#include "ballast/scan.h"
#include "base/ascii.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "containers/magic.h"
#include "containers/tar.h"
#include "containers/zip.h"
#include "formats/encrypted.h"
#include "formats/format_table.h"
#include "formats/one_reading.h"
#include "formats/pickle_opcodes.h"
#include "formats/shards/shards.h"
#include "formats/torch/reader.h"

namespace ballast {
namespace {

constexpr std::size_t kLongestShown = 256;  // bytes of an argument
constexpr std::size_t kLongestListedLine = 64U << 10U;

// In the order of their bytes, by Python's pickletools.
constexpr auto kOpcodeNames = [] {
  std::array<std::string_view, 256> names{};
  constexpr std::pair<unsigned char, std::string_view> kTable[] = {
      {'(', "MARK"},          {')', "EMPTY_TUPLE"},
      {'.', "STOP"},          {'0', "POP"},
      {'1', "POP_MARK"},      {'2', "DUP"},
      {'B', "BINBYTES"},      {'C', "SHORT_BINBYTES"},
      {'F', "FLOAT"},         {'G', "BINFLOAT"},
      {'I', "INT"},           {'J', "BININT"},
      {'K', "BININT1"},       {'L', "LONG"},
      {'M', "BININT2"},       {'N', "NONE"},
      {'P', "PERSID"},        {'Q', "BINPERSID"},
      {'R', "REDUCE"},        {'S', "STRING"},
      {'T', "BINSTRING"},     {'U', "SHORT_BINSTRING"},
      {'V', "UNICODE"},       {'X', "BINUNICODE"},
      {']', "EMPTY_LIST"},    {'a', "APPEND"},
      {'b', "BUILD"},         {'c', "GLOBAL"},
      {'d', "DICT"},          {'e', "APPENDS"},
      {'g', "GET"},           {'h', "BINGET"},
      {'i', "INST"},          {'j', "LONG_BINGET"},
      {'l', "LIST"},          {'o', "OBJ"},
      {'p', "PUT"},           {'q', "BINPUT"},
      {'r', "LONG_BINPUT"},   {'s', "SETITEM"},
      {'t', "TUPLE"},         {'u', "SETITEMS"},
      {'}', "EMPTY_DICT"},    {0x80, "PROTO"},
      {0x81, "NEWOBJ"},       {0x82, "EXT1"},
      {0x83, "EXT2"},         {0x84, "EXT4"},
      {0x85, "TUPLE1"},       {0x86, "TUPLE2"},
      {0x87, "TUPLE3"},       {0x88, "NEWTRUE"},
      {0x89, "NEWFALSE"},     {0x8A, "LONG1"},
      {0x8B, "LONG4"},        {0x8C, "SHORT_BINUNICODE"},
      {0x8D, "BINUNICODE8"},  {0x8E, "BINBYTES8"},
      {0x8F, "EMPTY_SET"},    {0x90, "ADDITEMS"},
      {0x91, "FROZENSET"},    {0x92, "NEWOBJ_EX"},
      {0x93, "STACK_GLOBAL"}, {0x94, "MEMOIZE"},
      {0x95, "FRAME"},        {0x96, "BYTEARRAY8"},
      {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"}};
  for (const auto& [code, name] : kTable) names[code] = name;
  return names;
}();

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<std::size_t>(bytes.size(), 8));
  return value;
}

// What a fixed argument says: BINFLOAT is big-endian, BININT has a sign, all others have none.
std::string fixed_text(unsigned char opcode, std::span<const std::byte> bytes) {
  const std::uint64_t value = little_endian(bytes);
  if (opcode == 'G') return fmt::format("{}", std::bit_cast<double>(__builtin_bswap64(value)));
  if (opcode == 'J') return std::to_string(static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
  return std::to_string(value);
}

// LONG1 and LONG4: two's complement, any length.
std::string long_text(std::span<const std::byte> bytes, std::uint64_t length) {
  if (length > 8) return fmt::format("integer of {} bytes", length);
  if (length == 0) return "0";
  std::uint64_t value = little_endian(bytes);
  const auto unused = static_cast<unsigned>(64 - 8 * length);
  return std::to_string(static_cast<std::int64_t>(value << unused) >> unused);
}

bool is_bytes(unsigned char opcode) {
  return opcode == 'B' || opcode == 'C' || opcode == 0x8E || opcode == 0x96;
}

class PickleLister {
 public:
  PickleLister(const ByteSource& source, std::uint64_t at) : source_(source), at_(at) {}

  PickleLines run(std::size_t most) {
    PickleLines result;
    while (at_ < source_.size()) {
      if (result.lines.size() == most) {
        result.next = at_;
        return result;
      }
      PickleLine line{.offset = at_, .opcode = "?", .argument = {}};
      const bool goes_on = take(line);
      result.lines.push_back(std::move(line));
      if (!goes_on) return result;
    }
    return result;
  }

 private:
  // False at the end: behind STOP, unless another pickle begins there, and where an opcode is none or is cut.
  bool take(PickleLine& line) {
    const auto opcode = static_cast<unsigned char>(peek(at_, 1)[0]);
    const PickleArgument argument = pickle_argument(opcode);
    if (argument.kind == PickleArgument::unknown) {
      line.argument = fmt::format("{:#04x} is no opcode", opcode);
      return false;
    }
    line.opcode = kOpcodeNames[opcode];
    ++at_;
    switch (argument.kind) {
      case PickleArgument::fixed:
        return take_fixed(line, opcode, argument.size);
      case PickleArgument::length:
        return take_counted(line, opcode, argument.size);
      case PickleArgument::line:
        return take_text_line(line);
      case PickleArgument::two_lines:
        return take_text_line(line) && take_text_line(line);
      case PickleArgument::stop:
        return at_ < source_.size() && peek(at_, 1)[0] == std::byte{0x80};
      default:
        return true;
    }
  }

  static bool cut_short(PickleLine& line) {
    line.argument = "cut short";
    return false;
  }

  bool take_fixed(PickleLine& line, unsigned char opcode, std::size_t size) {
    const auto bytes = peek(at_, size);
    if (bytes.size() < size) return cut_short(line);
    line.argument = fixed_text(opcode, bytes);
    at_ += size;
    return true;
  }

  bool take_counted(PickleLine& line, unsigned char opcode, std::size_t size) {
    const auto number = peek(at_, size);
    if (number.size() < size) return cut_short(line);
    const std::uint64_t length = little_endian(number);
    at_ += size;
    if (length > source_.size() - at_) return cut_short(line);
    const auto shown = peek(at_, static_cast<std::size_t>(std::min<std::uint64_t>(length, kLongestShown)));
    if (opcode == 0x8A || opcode == 0x8B)
      line.argument = long_text(shown, length);
    else if (is_bytes(opcode))
      line.argument = fmt::format("{} bytes", length);
    else if (length > shown.size())
      line.argument = fmt::format("{} ({} bytes)", quoted(as_text(shown)), length);
    else
      line.argument = quoted(as_text(shown));
    at_ += length;
    return true;
  }

  bool take_text_line(PickleLine& line) {
    const std::string_view text = as_text(peek(at_, kLongestListedLine));
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return cut_short(line);
    if (!line.argument.empty()) line.argument += ' ';
    line.argument += display(text.substr(0, end), kLongestShown);
    at_ += end + 1;
    return true;
  }

  // Up to so many bytes, fewer at the end; until the next call.
  std::span<const std::byte> peek(std::uint64_t offset, std::size_t most) {
    const std::uint64_t there = source_.size() - std::min(offset, source_.size());
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(most, there));
    if (offset < window_at_ || offset - window_at_ + size > window_.size()) {
      window_at_ = offset;
      window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(2 * kLongestListedLine, there)));
      source_.read(offset, window_);
    }
    return std::span<const std::byte>(window_).subspan(static_cast<std::size_t>(offset - window_at_), size);
  }

  const ByteSource& source_;
  std::uint64_t at_;
  std::vector<std::byte> window_;
  std::uint64_t window_at_ = 0;
};

bool begins_as_zip(const ByteSource& source) {
  return source.size() >= 4 && containers::is_zip(source.read(0, 4));
}

// A pickle, or several in a row, that nothing is wrapped around.
bool is_bare_pickle(const ByteSource& source) {
  return source.size() > 0 && format_of(source) == formats::torch_zip && !begins_as_zip(source) &&
         pickle_argument(static_cast<unsigned char>(source.read(0, 1)[0])).kind != PickleArgument::unknown;
}

// A pickle in a file, by the name that scan() gives it; its bytes are read when they are asked for.
struct FoundPickle {
  std::string name;
  std::uint64_t bytes;
  std::function<std::shared_ptr<const ByteSource>()> content;
};

using FoundPickles = std::vector<FoundPickle>;

FoundPickles pickles_in_zip(const std::shared_ptr<const ByteSource>& source) {
  const auto zip = std::make_shared<const containers::ZipArchive>(containers::ZipArchive::open(source));
  FoundPickles list;
  for (const containers::ZipEntry& entry : zip->entries()) {
    if (!is_called_pickle(entry.name) || entry.size == 0) continue;
    list.push_back({std::string(entry.name), entry.size, [zip, &entry] {
                      if (entry.size > torch::kMaxPickleBytes)
                        fail(Errc::header_too_large, zip->where(entry), "a pickle of {} bytes", entry.size);
                      return memory_source(zip->storage(entry, Access::read), std::string(entry.name));
                    }});
  }
  return list;
}

// PyTorch's oldest files: each member begins with a pickle. Behind those of "storages" and "tensors" lie
// numbers, at which the list of opcodes ends.
FoundPickles pickles_in_tar(const std::shared_ptr<const ByteSource>& source) {
  FoundPickles list;
  for (const containers::TarMember& member : containers::read_tar_members(*source)) {
    if (member.size == 0) continue;
    list.push_back(
        {member.name, member.size, [source, member] { return window(source, member.offset, member.size); }});
  }
  return list;
}

FoundPickles pickles_in(const std::string& path, bool is_shard = false) {
  if (!is_shard && shards::is_folder(path)) return pickles_in(shards::find_in_folder(path).path);
  const std::shared_ptr<const ByteSource> source = open_content(path, {.io = Io::read}).content;
  if (begins_as_zip(*source)) return pickles_in_zip(source);
  const Format format = format_of(*source);
  if (format == formats::torch_zip && containers::is_tar(head_of(*source))) return pickles_in_tar(source);
  if (is_bare_pickle(*source))
    return {{"", source->size(), [source] { return std::shared_ptr<const ByteSource>(source); }}};
  FoundPickles list;
  if (is_shard || format != formats::sharded) return list;
  const shards::Index index = shards::read_index(*source);
  const std::vector<std::string> paths = shards::locate_all(path, index);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (FoundPickle& found : pickles_in(paths[i], true)) {
      found.name = found.name.empty() ? index.files[i] : index.files[i] + ": " + found.name;
      list.push_back(std::move(found));
    }
  }
  return list;
}

}  // namespace

bool is_called_pickle(std::string_view name) {
  static constexpr std::string_view kEnds[] = {".pkl", "_pkl", ".pickle", ".pt",
                                               ".pth", ".bin", ".ckpt",   ".joblib"};
  return std::any_of(std::begin(kEnds), std::end(kEnds),
                     [lower = lowered(name)](std::string_view end) { return lower.ends_with(end); });
}

std::vector<PickleEntry> pickle_entries(const std::string& path) {
  std::vector<PickleEntry> list;
  for (const FoundPickle& found : pickles_in(path)) list.push_back({found.name, found.bytes});
  return list;
}

PickleLines list_pickle(const std::string& path, std::size_t entry, std::uint64_t offset, std::size_t most) {
  const FoundPickles pickles = pickles_in(path);
  if (entry >= pickles.size()) fail(Errc::not_found, display(path), "there is no pickle {} in it", entry);
  const std::shared_ptr<const ByteSource> source = pickles[entry].content();
  if (offset > source->size())
    fail(Errc::offset_out_of_range, display(path), "byte {} lies behind its {}", offset, source->size());
  return PickleLister(*source, offset).run(most);
}

}  // namespace ballast
