// SPDX-License-Identifier: Apache-2.0
#include "containers/packed_zstd.h"

#include <zstd.h>

#include <new>

#include "base/fail.h"

namespace ballast::packed {
namespace {

// Of the byte behind a frame's magic number: dictionaries, and bits that mean nothing and are 0.
constexpr std::size_t kDescriptor = 4;
constexpr unsigned kNotWritten = 0x1BU;

constexpr int kNoMatches = -131072;  // the level that looks for the fewest
// Whether literals are Huffman codes: "always", which a negative level would not have. A name of zstd's own
// is there for static linking alone.
constexpr auto kLiteralMode = static_cast<ZSTD_cParameter>(1002);

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }

  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

void set(ZSTD_CCtx* context, ZSTD_cParameter parameter, int value) {
  const std::size_t done = ZSTD_CCtx_setParameter(context, parameter, value);
  if (ZSTD_isError(done) != 0U)
    fail(Errc::unsupported, "pack", "this libzstd ({}) does not know parameter {} ({})", ZSTD_versionString(),
         static_cast<int>(parameter), ZSTD_getErrorName(done));
}

}  // namespace

struct PlaneCompressor::State {
  std::unique_ptr<ZSTD_CCtx, FreeContext> context{ZSTD_createCCtx()};
};

PlaneCompressor::PlaneCompressor() : state_(std::make_unique<State>()) {
  if (!state_->context) throw std::bad_alloc();
  set(state_->context.get(), ZSTD_c_compressionLevel, kNoMatches);
  set(state_->context.get(), kLiteralMode, 1);
}

PlaneCompressor::~PlaneCompressor() = default;

std::size_t PlaneCompressor::compress(std::span<const std::byte> plane, std::span<std::byte> out) {
  const std::size_t size =
      ZSTD_compress2(state_->context.get(), out.data(), out.size(), plane.data(), plane.size());
  return ZSTD_isError(size) != 0U ? 0 : size;
}

struct PlaneDecompressor::State {
  std::unique_ptr<ZSTD_DCtx, FreeContext> context{ZSTD_createDCtx()};
};

PlaneDecompressor::PlaneDecompressor() : state_(std::make_unique<State>()) {
  if (!state_->context) throw std::bad_alloc();
}

PlaneDecompressor::~PlaneDecompressor() = default;

void PlaneDecompressor::decompress(std::span<const std::byte> frame, std::span<std::byte> plane,
                                   const std::string& where) {
  const unsigned long long says = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (says == ZSTD_CONTENTSIZE_ERROR || says == ZSTD_CONTENTSIZE_UNKNOWN)
    fail(Errc::bad_packed, where, "a plane of {} bytes is no zstd frame that says its size", frame.size());
  if (says != plane.size())
    fail(Errc::bad_packed, where, "a zstd frame says it holds {} bytes, {} elements have {}", says,
         plane.size(), plane.size());
  if ((std::to_integer<unsigned>(frame[kDescriptor]) & kNotWritten) != 0)
    fail(Errc::bad_packed, where, "a zstd frame has bits in its head that are not used here");
  const std::size_t whole = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
  if (whole != frame.size())
    fail(Errc::bad_packed, where, "a plane of {} bytes is not one zstd frame", frame.size());
  const std::size_t done =
      ZSTD_decompressDCtx(state_->context.get(), plane.data(), plane.size(), frame.data(), frame.size());
  if (ZSTD_isError(done) != 0U)
    fail(Errc::bad_packed, where, "a zstd frame cannot be read: {} (damaged?)", ZSTD_getErrorName(done));
  if (done != plane.size())
    fail(Errc::bad_packed, where, "a zstd frame holds {} bytes and says {}", done, plane.size());
}

}  // namespace ballast::packed
