// Links ballast::import: a format and a source of bytes of the stranger's own (with_layers.cpp has an
// operation).
#include <ballast/ballast.h>

#include <algorithm>
#include <iostream>

using ballast::Tensor;

// "OWN " and a count, then as many floats: one tensor, called w.
static ballast::Likeness recognise(const ballast::FileHead& head) {
  return head.text().starts_with("OWN ") ? ballast::Likeness::certain : ballast::Likeness::none;
}

static ballast::Checkpoint open_own(const ballast::ByteSource& source, const ballast::OpenOptions&) {
  std::uint32_t count = 0;
  source.read(4, std::as_writable_bytes(std::span(&count, 1)));
  ballast::Checkpoint checkpoint;
  checkpoint.add("w", Tensor::contiguous_view(ballast::DType::f32, {count},
                                              ballast::Storage::of(source, 8, std::uint64_t{count} * 4, 4)));
  return checkpoint;
}

static void save_own(const ballast::Checkpoint& checkpoint, const std::string& path,
                     const ballast::SaveOptions& options) {
  ballast::save_pieces(path, options.overwrite, [&](const ballast::AppendBytes& append) {
    const Tensor w = checkpoint.tensor("w");
    const auto count = static_cast<std::uint32_t>(w.numel());
    append(std::as_bytes(std::span("OWN ", 4)));
    append(std::as_bytes(std::span(&count, 1)));
    append(std::as_bytes(std::span(w.span<float>().data(), count)));
  });
}

static constexpr ballast::FormatRow kOwn = {
    .name = "own",
    .extensions = {".own"},
    .recognise = recognise,
    .open = open_own,
    .save = save_own,
    .holds = [](ballast::DType dtype) { return dtype == ballast::DType::f32; }};

// Bytes that are kept the other way round.
class Mirrored final : public ballast::ByteSource {
 public:
  explicit Mirrored(std::vector<std::byte> bytes)
      : ByteSource("mirrored", bytes.size()), bytes_(std::move(bytes)) {
    std::reverse(bytes_.begin(), bytes_.end());
  }

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> out) const override {
    std::copy_n(bytes_.rbegin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

  std::vector<std::byte> bytes_;
};

int main(int, char** argv) {
  const std::string path = argv[1];
  ballast::Checkpoint made;
  made.add("w", Tensor::from({1.0F, 2.0F, 3.0F}, {3}));
  ballast::save(made, path, {.format = kOwn, .overwrite = true});
  const auto file = ballast::file_source(path);
  const auto mirrored = std::make_shared<Mirrored>(file->read(0, file->size()));
  const ballast::Checkpoint read = ballast::open(mirrored, {.formats = {kOwn}});
  std::cout << read.format << ' ' << read.tensor("w") << '\n';
}
