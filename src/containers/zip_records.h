// SPDX-License-Identifier: Apache-2.0
// The numbers of the zip format (PKWARE's APPNOTE 6.3), shared by the reader and the writer.
#pragma once

#include <cstdint>

namespace ballast::containers::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;       // "PK\3\4"
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;  // "PK\7\8"
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;     // "PK\1\2"
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;       // "PK\6\6"
inline constexpr std::uint32_t kLocatorSignature = 0x07064b50;     // "PK\6\7"
inline constexpr std::uint32_t kEndSignature = 0x06054b50;         // "PK\5\6"

inline constexpr std::uint64_t kLocalSize = 30;
inline constexpr std::uint64_t kDescriptorSize = 16;  // with its signature
inline constexpr std::uint64_t kDescriptor64Size = 24;
inline constexpr std::uint64_t kCentralSize = 46;
inline constexpr std::uint64_t kEnd64Size = 56;
inline constexpr std::uint64_t kLocatorSize = 20;
inline constexpr std::uint64_t kEndSize = 22;

// "The number is in the zip64 field."
inline constexpr std::uint64_t kMarker16 = 0xFFFF;
inline constexpr std::uint64_t kMarker32 = 0xFFFFFFFF;
inline constexpr std::uint16_t kZip64Extra = 0x0001;
inline constexpr std::uint16_t kUnicodePath = 0x7075;  // Info-ZIP's other name

inline constexpr unsigned kDescriptorFlag = 0x0008;
inline constexpr unsigned kUtf8Flag = 0x0800;
inline constexpr unsigned kDeflateHints = 0x0006;
inline constexpr unsigned kKnownFlags = kDescriptorFlag | kUtf8Flag | kDeflateHints;

}  // namespace ballast::containers::zip
