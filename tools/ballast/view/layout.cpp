// SPDX-License-Identifier: Apache-2.0
// files/F/layout: what lies where in the file, from its first byte to its last.
#include <algorithm>
#include <map>

#include "ballast/error.h"
#include "view/app.h"

namespace tool::view {
namespace {

constexpr std::size_t kMostParts = 4000;
constexpr std::uint64_t kLargestPadding = 4096;

struct LaidPart {
  const char* kind;
  std::int64_t tensor;  // -1: none
  std::size_t file;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint64_t holds = 1;  // parts, where several are one
};

struct Strip {
  std::vector<std::string> files;
  std::vector<std::uint64_t> sizes;
  std::vector<LaidPart> tensors;
  std::uint64_t elsewhere = 0;  // tensors whose bytes do not lie in the file as they are
};

Strip tensors_of(const Document& document) {
  Strip strip;
  std::map<std::string, std::size_t> numbers;
  const void* last = nullptr;
  std::size_t file = 0;
  for (std::size_t i = 0; i < document.rows().size(); ++i) {
    const ballast::Tensor tensor = document.checkpoint()[i].tensor();
    const auto span = tensor.has_data() ? tensor.storage()->source_span() : std::nullopt;
    if (!span) {
      ++strip.elsewhere;
      continue;
    }
    const ballast::SourceSpan place = innermost(*span);
    if (place.source.get() != last) {
      const auto [found, is_new] = numbers.emplace(place.source->name(), strip.files.size());
      if (is_new) {
        strip.files.push_back(place.source->name());
        strip.sizes.push_back(place.source->size());
      }
      last = place.source.get();
      file = found->second;
    }
    strip.tensors.push_back({"tensor", static_cast<std::int64_t>(i), file,
                             place.offset + tensor.bit_offset() / 8, tensor.size_bytes()});
  }
  std::stable_sort(strip.tensors.begin(), strip.tensors.end(), [](const LaidPart& a, const LaidPart& b) {
    return std::pair(a.file, a.offset) < std::pair(b.file, b.offset);
  });
  return strip;
}

// Whether what lies between two tensors is the container's own.
bool is_archive(ballast::Format format) {
  using namespace ballast::formats;
  return format == torch_zip || format == torchscript || format == npz || format == torch_tar ||
         format == torch_legacy || format == pickle || format == onnx || format == mpk;
}

const char* kind_of_gap(std::uint64_t offset, std::uint64_t bytes, bool archive) {
  if (offset == 0) return "header";
  if (archive) return "other";
  return bytes <= kLargestPadding ? "padding" : "hole";
}

// Tensors, and what lies between them. Of tensors on the same bytes the first has them.
std::vector<LaidPart> parts_of(const Document& document, Strip& strip) {
  const bool archive = is_archive(document.checkpoint().format);
  std::vector<LaidPart> parts;
  std::size_t next = 0;
  for (std::size_t file = 0; file < strip.files.size(); ++file) {
    std::uint64_t at = 0;
    const auto fill_to = [&](std::uint64_t end, bool is_last) {
      if (end <= at) return;
      parts.push_back(
          {is_last && at > 0 ? "other" : kind_of_gap(at, end - at, archive), -1, file, at, end - at});
      at = end;
    };
    for (; next < strip.tensors.size() && strip.tensors[next].file == file; ++next) {
      LaidPart part = strip.tensors[next];
      fill_to(std::min(part.offset, strip.sizes[file]), false);
      const std::uint64_t end = part.offset + part.bytes;
      if (end <= at && part.bytes > 0) continue;
      part.offset = std::max(part.offset, at);
      part.bytes = end - part.offset;
      parts.push_back(part);
      at = end;
    }
    fill_to(strip.sizes[file], true);
  }
  return parts;
}

// The smallest become one with their neighbours, twice as large ones each time, until few enough are left.
// Files and their headers stay apart: of very many the first are shown.
std::uint64_t fold_small(std::vector<LaidPart>& parts) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 58U;
  const std::size_t before = parts.size();
  for (std::uint64_t small = 64; parts.size() > kMostParts && small <= kLargest; small *= 2) {
    std::vector<LaidPart> kept;
    for (const LaidPart& part : parts) {
      const bool joins = !kept.empty() && kept.back().file == part.file && part.bytes <= small &&
                         kept.back().bytes <= small * 16 && std::string_view(kept.back().kind) != "header";
      if (!joins) {
        kept.push_back(part);
        continue;
      }
      kept.back().kind = "tensors";
      kept.back().tensor = -1;
      kept.back().bytes += part.bytes;
      kept.back().holds += part.holds;
    }
    parts = std::move(kept);
  }
  if (parts.size() > kMostParts) parts.resize(kMostParts);
  return before - parts.size();
}

std::string last_piece(const std::string& path) {
  return ballast::display(path.substr(path.find_last_of('/') + 1));
}

std::string layout_text(const Document& document) {
  Strip strip = tensors_of(document);
  if (strip.files.empty()) {
    strip.files.push_back(document.path());
    strip.sizes.push_back(document.file_bytes());
  }
  std::vector<LaidPart> parts = parts_of(document, strip);
  const std::uint64_t folded = fold_small(parts);
  Json list = Json::array();
  for (const LaidPart& part : parts) {
    const bool is_tensor = part.tensor >= 0;
    list.push_back({{"kind", part.kind},
                    {"name", is_tensor ? Json(ballast::display(
                                             document.rows()[static_cast<std::size_t>(part.tensor)].name))
                                       : Json(nullptr)},
                    {"n", is_tensor ? Json(part.tensor) : Json(nullptr)},
                    {"file", part.file},
                    {"offset", part.offset},
                    {"bytes", part.bytes},
                    {"holds", part.holds}});
  }
  std::uint64_t bytes = 0;
  for (const std::uint64_t size : strip.sizes) bytes += size;
  Json files = Json::array();
  for (const std::string& file : strip.files) files.push_back(last_piece(file));
  return to_text({{"bytes", bytes},
                  {"parts", std::move(list)},
                  {"files", std::move(files)},
                  {"file_bytes", strip.sizes},
                  {"folded", folded},
                  {"elsewhere", strip.elsewhere}});
}

}  // namespace

Response get_layout(const Call& call) {
  Document& document = call.document();
  return {.body = document.layout_answer([&] { return layout_text(document); })};
}

}  // namespace tool::view
