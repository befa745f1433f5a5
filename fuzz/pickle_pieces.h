// SPDX-License-Identifier: Apache-2.0
// Pieces of pickles, at random: values, globals of the table of roles and calls of them with the arguments
// they are usually given. Each leaves one value on the stack.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>

#include "formats/torch/roles.h"

namespace ballast::fuzzing {

using Random = std::minstd_rand;

/// Storages that pieces name, each of 16 bytes: containers made for them hold them all (torch_mutator.h).
struct PieceStorage {
  std::string_view key;
  std::string_view scalar;
  unsigned numel;
};

inline constexpr std::uint64_t kPieceStorageBytes = 16;
inline constexpr PieceStorage kPieceStorages[] = {
    {"s0", "Float", 4},  {"s1", "Byte", 16},    {"s2", "Long", 2},  {"s3", "Half", 8},   {"s4", "Int", 4},
    {"s5", "Double", 2}, {"s6", "BFloat16", 8}, {"s7", "Bool", 16}, {"s8", "QInt8", 16}, {"s9", "Short", 8},
};

class Pieces {
 public:
  explicit Pieces(std::uint32_t seed) : random_(seed) {}

  /// 0 to `count` - 1.
  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  bool once_in(std::size_t count) { return below(count) == 0; }

  template <class Range>
  const auto& one_of(const Range& range) {
    return range[below(std::size(range))];
  }

  static std::string le(std::uint64_t value, std::size_t bytes) {
    std::string text(bytes, '\0');
    std::memcpy(text.data(), &value, bytes);
    return text;
  }

  static std::string text(std::string_view value) { return "X" + le(value.size(), 4) + std::string(value); }

  static std::string bytes(std::string_view value) { return "B" + le(value.size(), 4) + std::string(value); }

  /// As GLOBAL or STACK_GLOBAL.
  std::string global(std::string_view module, std::string_view name) {
    if (once_in(4)) return text(module) + text(name) + '\x93';
    return "c" + std::string(module) + "\n" + std::string(name) + "\n";
  }

  std::string known_global() {
    const auto& row = one_of(torch::known_globals());
    if (row.module == "builtins" && once_in(2)) return global("__builtin__", row.name);
    return global(row.module, row.name);
  }

  std::string stranger() {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kStrangers = {
        {{"os", "system"},
         {"posix", "system"},
         {"__main__", "Net"},
         {"functools", "partial"},
         {"torch.nn.modules.linear", "Linear"},
         {"builtins", "eval"},
         {"torch", "load"},
         {"numpy", "float64"}}};
    const auto& [module, name] = one_of(kStrangers);
    return global(module, name);
  }

  std::string any_global() { return once_in(8) ? stranger() : known_global(); }

  std::string integer() {
    static constexpr std::int64_t kOdd[] = {0, 1, 2, 3, 4, 8, 16, -1, 255, 65536, INT32_MAX, INT32_MIN};
    if (once_in(6)) return "\x8a\x08" + le(random_() * std::uint64_t{0x9E3779B97F4A7C15}, 8);
    if (once_in(12)) return "L9223372036854775808L\n";
    return "J" + le(static_cast<std::uint64_t>(one_of(kOdd)), 4);
  }

  std::string small() { return std::string("K") + static_cast<char>(below(5)); }

  std::string leaf() {
    static constexpr std::string_view kTexts[] = {
        "",    "a",     "weight", "cpu",   "cuda:0",           "storage", "latin1",       "module.a.b",
        "<f4", "utf-8", "_data",  "\n",    "torch.float32",    "name",    "_metadata",    "\xed\xa0\x80",
        "|b1", "O8",    "little", "tuple", "torch.sparse_coo", "0",       "a\nos\nsystem"};
    switch (below(12)) {
      case 0:
        return "N";
      case 1:
        return once_in(2) ? "\x88" : "\x89";
      case 2:
        return "G\x3f\xb9\x99\x99\x99\x99\x99\x9a";
      case 3:
        return bytes(one_of(kTexts));
      case 4:
        return "U\x03" + std::string(once_in(2) ? "abc" : "\xff\xfe\x80");
      case 5:
        return "I01\n";
      case 6:
        return "F-1e308\n";
      case 7:
      case 8:
        return integer();
      default:
        return text(one_of(kTexts));
    }
  }

  std::string sizes() {
    std::string code = "(";
    for (std::size_t i = below(4); i > 0; --i) code += once_in(16) ? integer() : small();
    return code + "t";
  }

  std::string storage() {
    const PieceStorage& one = one_of(kPieceStorages);
    const std::string numel = "K" + std::string(1, static_cast<char>(one.numel));
    return "(" + text("storage") + global("torch", std::string(one.scalar) + "Storage") + text(one.key) +
           text("cpu") + (once_in(32) ? integer() : numel) + (once_in(2) ? "N" : "") + "tQ";
  }

  std::string hooks() { return global("collections", "OrderedDict") + ")R"; }

  /// A small one that is right most of the time.
  std::string tensor() {
    const bool scalar = once_in(2);
    const std::string shape = scalar ? ")" : once_in(8) ? sizes() : std::string("K\x02\x85");
    const std::string strides = scalar ? ")" : once_in(8) ? sizes() : std::string("K\x01\x85");
    return global("torch._utils", "_rebuild_tensor_v2") + "(" + storage() + (once_in(8) ? integer() : kZero) +
           shape + strides + (once_in(2) ? "\x88" : "\x89") + hooks() + "tR";
  }

  std::string sequence(int depth) {
    std::string code = "(";
    for (std::size_t i = below(4); i > 0; --i) code += value(depth - 1);
    static constexpr char kEnds[] = {'t', 't', 'l', '\x91'};
    return code + one_of(kEnds);
  }

  std::string dict(int depth) {
    std::string code = once_in(2) ? "}(" : hooks() + "(";
    for (std::size_t i = below(4); i > 0; --i)
      code += (once_in(4) ? value(depth - 1) : leaf()) + value(depth - 1);
    code += "u";
    if (once_in(8)) code += dict(depth - 1) + "b";
    return code;
  }

  /// A global called, made, or built, with anything.
  std::string call(int depth) {
    const std::string arguments = once_in(4) ? ")" : sequence_of_arguments(depth);
    switch (below(8)) {
      case 0:
        return any_global() + arguments + "\x81";
      case 1:
        return any_global() + arguments + dict(depth - 1) + "\x92";
      case 2:
        return "(" + any_global() + value(depth - 1) + "o";
      case 3:
        return any_global() + arguments + "R" + value(depth - 1) + "b";
      case 4:
        return any_global() + ")\x81" + value(depth - 1) + "b";
      default:
        return any_global() + arguments + "R";
    }
  }

  /// Calls as PyTorch and NumPy write them.
  std::string rebuild(int depth) {
    switch (below(14)) {
      case 0:
        return global("torch._utils", "_rebuild_parameter") + "(" + tensor() + "\x88" + hooks() + "tR";
      case 1:
        return global("torch._utils", "_rebuild_sparse_tensor") + layout() + "(" + tensor() + tensor() +
               sizes() + "t\x86R";
      case 2:
        return global("torch._utils", "_rebuild_qtensor") + "(" + storage() + kZero + "K\x02\x85K\x01\x85(" +
               global("torch", "per_tensor_affine") + "G?\xb9\x99\x99\x99\x99\x99\x9aK\x01t\x89" + hooks() +
               "tR";
      case 3:
        return global("torch._tensor", "_rebuild_from_type_v2") + "(" + any_global() + any_global() +
               sequence_of_arguments(depth) + dict(depth - 1) + "tR";
      case 4:
        return global("torch._utils", "_rebuild_tensor_v3") + "(" + storage() + kZero + sizes() + sizes() +
               "\x89" + hooks() + global("torch", once_in(2) ? "uint16" : "float8_e4m3fn") + "tR";
      case 5:
        return global("torch._utils", "_rebuild_meta_tensor_no_storage") + "(" + global("torch", "float32") +
               sizes() + sizes() + "\x89tR";
      case 6:
        return global("numpy.core.multiarray", "scalar") + numpy_dtype() + bytes("\x01\x02\x03\x04") +
               "\x86R";
      case 7:
        return global("numpy.core.multiarray", "_reconstruct") + global("numpy", "ndarray") + kZero + "\x85" +
               bytes("b") + "\x87R(K\x01" + sizes() + numpy_dtype() + "\x89" + bytes("\x01\x02\x03\x04") +
               "tb";
      case 8:
        return global("copyreg", "_reconstructor") + any_global() + global("builtins", "object") + "N\x87R" +
               dict(depth - 1) + "b";
      case 9:
        return global("collections", "defaultdict") + global("builtins", "list") + "\x85R(" + leaf() +
               value(depth - 1) + "u";
      case 10:
        return global("_codecs", "encode") + text("\xc3\xa9") + text("latin1") + "\x86R";
      case 11:
        return global("torch", "device") + text("cuda") + small() + "\x86R";
      case 12:
        return global("torch", "Size") + sizes() + "\x85R";
      default:
        return stream("\x80\x02" + value(depth - 1) + ".");
    }
  }

  /// A whole pickle inside a pickle.
  std::string stream(std::string_view pickle) {
    return global("torch.storage", "_load_from_bytes") + bytes(pickle) + "\x85R";
  }

  std::string value(int depth) {
    if (depth <= 0) return leaf();
    switch (below(8)) {
      case 0:
      case 1:
        return leaf();
      case 2:
        return sequence(depth);
      case 3:
        return dict(depth);
      case 4:
        return tensor();
      case 5:
        return call(depth);
      case 6:
        return rebuild(depth);
      default:
        return once_in(2) ? any_global() : storage();
    }
  }

 private:
  const std::string kZero = std::string("K\0", 2);

  std::string sequence_of_arguments(int depth) {
    std::string code = "(";
    for (std::size_t i = below(5); i > 0; --i) code += value(depth - 1);
    return code + "t";
  }

  std::string layout() {
    return global("torch.serialization", "_get_layout") +
           text(once_in(2) ? "torch.sparse_coo" : "torch.sparse_csr") + "\x85R";
  }

  std::string numpy_dtype() {
    return global("numpy", "dtype") + text(once_in(2) ? "f4" : "i4") + "\x89\x88\x87R(K\x03" + text("<") +
           "NNN" + integer() + integer() + kZero + "tb";
  }

  Random random_;
};

}  // namespace ballast::fuzzing
