// SPDX-License-Identifier: Apache-2.0
// StreamWriter: every byte exactly once, from wherever it comes.
#include <map>
#include <mutex>

#include "ballast/error.h"
#include "base/atomic_file.h"
#include "base/checked.h"
#include "base/hash.h"
#include "checkpoint/file_options.h"
#include "formats/one_reading.h"
#include "formats/safetensors/data_copy.h"
#include "formats/safetensors/layout.h"

namespace ballast::safetensors {
namespace {

// Disjoint ranges of [0, size); neighbours are one range, so that bytes that come in order cost nothing.
class Ranges {
 public:
  /// False, and nothing changed, when some of [begin, end) was there before.
  bool add(std::uint64_t begin, std::uint64_t end) {
    if (begin == end) return true;
    auto after = ranges_.upper_bound(begin);
    if (after != ranges_.end() && after->first < end) return false;
    if (after != ranges_.begin()) {
      const auto before = std::prev(after);
      if (before->second > begin) return false;
      if (before->second == begin) {
        begin = before->first;
        ranges_.erase(before);
      }
    }
    if (after != ranges_.end() && after->first == end) {
      end = after->second;
      ranges_.erase(after);
    }
    ranges_.emplace(begin, end);
    return true;
  }

  /// "0-15, 32-63": what is missing in [0, size), the first few; empty when nothing is.
  [[nodiscard]] std::string missing(std::uint64_t size) const {
    constexpr int kShown = 5;
    std::string text;
    int count = 0;
    std::uint64_t expected = 0;
    const auto gap = [&](std::uint64_t end) {
      if (expected < end && count++ < kShown)
        text += fmt::format("{}{}-{}", text.empty() ? "" : ", ", expected, end - 1);
    };
    for (const auto& [begin, end] : ranges_) {
      gap(begin);
      expected = end;
    }
    gap(size);
    if (count > kShown) text += fmt::format(" and {} more ranges", count - kShown);
    return text;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin → end
};

std::vector<Declared> declared_by(std::span<const StreamWriter::Declaration> tensors) {
  std::vector<Declared> declared;
  declared.reserve(tensors.size());
  for (const StreamWriter::Declaration& tensor : tensors)
    declared.push_back({tensor.name, tensor.dtype, tensor.shape});
  return declared;
}

}  // namespace

struct StreamWriter::State {
  struct Slot {
    Layout::Place place;
    Ranges written;
  };

  State(const std::string& path, std::vector<Declaration> declarations,
        const std::optional<Metadata>& metadata, const SaveOptions& options)
      : where(display(path)),
        tensors(std::move(declarations)),
        layout(make_layout(declared_by(tensors), metadata, where)),
        progress(options.progress),
        out(path, options.overwrite) {
    require_known(options, "safetensors::StreamWriter", {});
    out.reserve(layout.file_size);
    out.append(layout.head);
    slots.reserve(tensors.size());
    for (const Layout::Place& place : layout.places)
      slots.emplace(tensors[place.tensor].name, Slot{place, {}});
  }

  Slot& slot(std::string_view name) {
    const auto found = slots.find(name);
    if (found != slots.end()) return found->second;
    std::vector<std::string_view> names;
    for (const Declaration& tensor : tensors) names.push_back(tensor.name);
    fail(Errc::not_found, where, "tensor {} was not declared{}", quoted(name), did_you_mean(name, names));
  }

  // The range is taken before it is written, so that two threads with the same bytes cannot both go on.
  void claim(Slot& target, std::string_view name, std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t size = target.place.end - target.place.begin;
    if (!fits(offset, length, size)) {
      fail(Errc::offset_out_of_range, where, "tensor {}: {} bytes at {} lie outside its {} bytes",
           quoted(name), length, offset, size);
    }
    const std::lock_guard lock(mutex);
    if (!target.written.add(offset, offset + length)) {
      fail(Errc::overlap, where, "tensor {}: some of the {} bytes at {} were written before", quoted(name),
           length, offset);
    }
    ++under_way;
  }

  void release(std::uint64_t length, bool succeeded) {
    const std::lock_guard lock(mutex);
    --under_way;
    if (!succeeded) {
      failed = true;
      return;
    }
    done += length;
    if (progress) progress(done, layout.file_size - layout.head.size());
  }

  template <class Write>
  void write(Slot& target, std::string_view name, std::uint64_t offset, std::uint64_t length,
             Write&& write_bytes) {
    claim(target, name, offset, length);
    try {
      write_bytes();
    } catch (...) {
      release(length, false);
      throw;
    }
    release(length, true);
  }

  void check_complete() {
    const std::lock_guard lock(mutex);
    if (under_way > 0)
      fail(Errc::invalid_argument, where, "finish() was called while {} writes are under way", under_way);
    if (failed) fail(Errc::io_error, where, "a write failed before; the file cannot be finished");
    for (const Layout::Place& place : layout.places) {
      const std::string& name = tensors[place.tensor].name;
      const std::string missing = slots.at(name).written.missing(place.end - place.begin);
      if (!missing.empty())
        fail(Errc::gap, where, "tensor {}: bytes {} of {} never came", quoted(name), missing,
             place.end - place.begin);
    }
  }

  std::string where;
  std::vector<Declaration> tensors;
  Layout layout;
  Progress progress;
  AtomicFile out;
  NameViewMap<Slot> slots;  // the map itself never changes after construction
  std::mutex mutex;         // for Slot::written and what follows
  std::uint64_t done = 0;
  std::size_t under_way = 0;
  bool failed = false;
};

StreamWriter::StreamWriter(const std::string& path, std::vector<Declaration> tensors,
                           std::optional<Metadata> metadata, const SaveOptions& options)
    : state_(std::make_unique<State>(path, std::move(tensors), metadata, options)) {}

StreamWriter::StreamWriter(StreamWriter&&) noexcept = default;
StreamWriter& StreamWriter::operator=(StreamWriter&&) noexcept = default;
StreamWriter::~StreamWriter() = default;

void StreamWriter::write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
  State& state = live();
  State::Slot& target = state.slot(name);
  state.write(target, name, offset, bytes.size(),
              [&] { state.out.write_at(target.place.begin + offset, bytes); });
}

void StreamWriter::write(std::string_view name, const Tensor& tensor) {
  State& state = live();
  State::Slot& target = state.slot(name);
  const Declaration& declared = state.tensors[target.place.tensor];
  if (!tensor.has_data()) fail(Errc::invalid_argument, state.where, "tensor {} has no data", quoted(name));
  if (tensor.dtype() != declared.dtype) {
    fail(Errc::bad_dtype, state.where, "tensor {} is {}, {} was declared", quoted(name),
         info(tensor.dtype()).code, info(declared.dtype).code);
  }
  if (tensor.shape() != declared.shape) {
    fail(Errc::shape_mismatch, state.where, "tensor {} is {}, {} was declared", quoted(name),
         to_string(tensor.shape()), to_string(declared.shape));
  }
  state.write(target, name, 0, tensor.size_bytes(),
              [&] { copy_tensor(tensor, state.out, target.place.begin); });
}

void StreamWriter::finish() {
  State& state = live();
  state.check_complete();
  require_one_reading(state.out, Meant::none);
  state.out.commit();
  state_.reset();
}

StreamWriter::State& StreamWriter::live() const {
  if (!state_) fail(Errc::invalid_argument, "StreamWriter", "is finished");
  return *state_;
}

}  // namespace ballast::safetensors
