// SPDX-License-Identifier: Apache-2.0
// Value: what else a checkpoint holds besides tensors. The whole Python object of a PyTorch file as data:
// numbers, text, lists, dicts with any keys, tensors, and objects of classes nobody has here, each with the
// name of its Python class. A Value is a handle: copying it copies a pointer. Trees are immutable, may share
// parts and may contain cycles; nothing here recurses.
//
// Throws: Errc::type_mismatch where a value is asked for what it is not, too_many for a container of more
// than 2^31 parts, and what the functions say. Owns: a
// Value keeps alive what lies in it, texts and bytes too; one of a file the file's whole tree (but not None,
// a bool or a small integer, which are no part of it); tensors keep their bytes without it. Threads: every
// function may be called from several at once, on one tree too. Costs: an access takes constant time, find()
// of a dict nearly so; no tensor's bytes are read.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ballast/tensor.h"

#pragma GCC visibility push(default)

namespace ballast {

class ValueTree;

/// What a value is made of; type() says which Python class it is. numpy.float64 is `floating`, torch.Size is
/// a `tuple`, argparse.Namespace is a `dict`, torch.dtype, torch.device, paths and dates are a `string`.
enum class Kind : std::uint8_t {
  none,
  boolean,
  integer,
  floating,
  complex,
  string,
  bytes,
  list,
  tuple,
  set,
  dict,
  tensor,
  object
};

/// "none", "integer" and so on: constants.
[[nodiscard]] std::string_view name(Kind kind) noexcept;

/// How the integers of a quantized tensor stand for numbers: (q - zero_point) * scale.
struct Quantization {
  std::string scheme = "per_tensor_affine";  ///< or per_channel_affine, per_channel_affine_float_qparams
  double scale = 1.0;                        ///< of the whole tensor
  std::int64_t zero_point = 0;               ///< of the whole tensor
  Tensor scales = {};                        ///< per channel; undefined when per tensor
  Tensor zero_points = {};                   ///< per channel; undefined when per tensor
  std::int64_t axis = 0;                     ///< the dimension of the channels
};

/// The parts a sparse tensor is stored as. The tensor itself is their dense form, computed when it is read.
struct Sparse {
  std::string layout = "coo";  ///< coo, csr, csc, bsr, bsc
  Tensor indices = {};         ///< coo: [dims, count]
  Tensor compressed = {};      ///< the others: row (or column) pointers
  Tensor plain = {};           ///< the others: column (or row) indices
  Tensor values = {};          ///< those that are not zero
};

/// A tensor and what Python knew of it.
struct TensorValue {
  Tensor tensor;                                  ///< the numbers
  bool requires_grad = false;                     ///< as Python had it
  bool is_parameter = false;                      ///< torch.nn.Parameter
  std::string location = "cpu";                   ///< where it lay when it was saved: "cuda:0"
  std::optional<Quantization> quantization = {};  ///< how its integers stand for numbers
  std::optional<Sparse> sparse = {};              ///< the parts it is stored as
};

/// std::complex<double> or what has its functions.
template <class T>
concept ComplexNumber = requires(const T& number) {
  { number.real() } -> std::same_as<double>;
  { number.imag() } -> std::same_as<double>;
  T(0.0, 0.0);
};

/// A complex number that converts to and from std::complex<double>. Not that itself: its header takes a tenth
/// of what compiling this library's headers takes, of everybody.
class Complex {
 public:
  /// Real + imag i.
  constexpr Complex(double real, double imag) noexcept : real_(real), imag_(imag) {}

  /// Of a std::complex<double>.
  template <ComplexNumber T>
  constexpr Complex(const T& number) : Complex(number.real(), number.imag()) {}

  /// The real part.
  [[nodiscard]] constexpr double real() const noexcept { return real_; }

  /// The imaginary part.
  [[nodiscard]] constexpr double imag() const noexcept { return imag_; }

  /// As a std::complex<double>.
  template <ComplexNumber T>
  constexpr operator T() const {
    return T(real_, imag_);
  }

  friend bool operator==(const Complex&, const Complex&) = default;

 private:
  double real_;
  double imag_;
};

/// One value of what PyTorch saved: a number, a text, a container, a tensor, an object. Cheap to copy: it
/// shares its tree and keeps it alive. Never changed, so safe to read from several threads.
class Value {
 public:
  /// None.
  Value() noexcept : ref_(2) {}

  /// True or false.
  Value(bool value) noexcept;  // values are written as literals

  /// An integer.
  template <class T>
  requires(std::integral<T> && !std::same_as<T, bool>) Value(T value)
      : Value(from_integer(static_cast<std::int64_t>(value), std::cmp_greater(value, INT64_MAX))) {}

  /// A number.
  Value(double value);
  /// A complex number.
  Value(Complex value);

  /// A complex number.
  template <ComplexNumber T>
  Value(const T& value) : Value(Complex(value.real(), value.imag())) {}

  /// A text, which is copied.
  Value(std::string_view text);

  /// A text.
  Value(const std::string& text) : Value(std::string_view(text)) {}

  /// A text.
  Value(const char* text) : Value(std::string_view(text)) {}

  /// A tensor, as a view. Errc::invalid_argument for an undefined one.
  Value(const Tensor& tensor);
  /// A tensor with what Python knew of it.
  Value(const TensorValue& tensor);

  /// An integer of any size, from its decimal digits. Errc::invalid_argument when they are not digits.
  static Value integer(std::string_view decimal);
  /// Bytes, which are copied.
  static Value bytes(std::span<const std::byte> bytes);
  /// A list.
  static Value list(const std::vector<Value>& elements);
  /// A tuple.
  static Value tuple(const std::vector<Value>& elements);
  /// A set; nothing is compared.
  static Value set(const std::vector<Value>& elements);
  /// A dict; nothing is compared.
  static Value dict(const std::vector<std::pair<Value, Value>>& pairs);
  /// An object of a Python class: its class name, constructor arguments (a tuple, or None) and state.
  static Value object(std::string_view class_name, const Value& args = {}, const Value& state = {});
  /// The same structure as another Python class: dict → "collections.OrderedDict". A new object.
  [[nodiscard]] Value as_type(std::string_view type) const;
  /// The same dict or object with Python attributes (OrderedDict's `_metadata`). A new object.
  [[nodiscard]] Value with_attributes(const Value& dict) const;

  /// What it is made of.
  [[nodiscard]] Kind kind() const noexcept;
  /// "int", "collections.OrderedDict", "numpy.float64", "__main__.Net". Valid as long as this value, or one
  /// it lies in.
  [[nodiscard]] std::string_view type() const noexcept;

  /// Python's None.
  [[nodiscard]] bool is_none() const noexcept { return kind() == Kind::none; }

  /// One object in two places, not just two equal ones.
  [[nodiscard]] bool same_object(const Value& other) const noexcept;

  /// A number for this object among all of its tree: equal exactly where same_object() is true.
  [[nodiscard]] std::uint64_t identity() const noexcept { return ref_; }

  /// @name Leaves
  /// Errc::type_mismatch, naming what it is, when it is something else.

  /// A bool alone; numbers are none.
  [[nodiscard]] bool as_bool() const;
  /// Errc::size_overflow beyond 64 bits. A bool is 0 or 1.
  [[nodiscard]] std::int64_t as_int() const;
  /// Integers too, rounded where a double has not all their digits; Errc::size_overflow beyond its range.
  [[nodiscard]] double as_float() const;
  /// Floats and integers too, as as_float().
  [[nodiscard]] Complex as_complex() const;
  /// Valid as long as this value, or one it lies in.
  [[nodiscard]] std::string_view as_string() const;
  /// Valid as long as this value, or one it lies in.
  [[nodiscard]] std::span<const std::byte> as_bytes() const;
  /// Decimal digits of an integer of any size, a bool as 0 or 1; Errc::size_overflow beyond 8192 bytes of it,
  /// as Python refuses to print those.
  [[nodiscard]] std::string as_decimal() const;
  /// Whether as_int() has it: an integer of 64 bits, or a bool.
  [[nodiscard]] bool fits_int() const noexcept;

  /// The tensor alone, a view that keeps its bytes alive.
  [[nodiscard]] Tensor as_tensor() const { return tensor_value().tensor; }

  /// A tensor with what Python knew of it.
  [[nodiscard]] TensorValue tensor_value() const;

  /// @name Containers
  /// Values of the same tree, in the file's order.

  /// Elements of a list, tuple or set, pairs of a dict; 0 for everything else.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Of a list, tuple or set, else Errc::type_mismatch; Errc::offset_out_of_range outside it.
  [[nodiscard]] Value element(std::size_t index) const;
  /// Of a dict, else Errc::type_mismatch; Errc::offset_out_of_range outside it.
  [[nodiscard]] Value key(std::size_t index) const;
  /// As key().
  [[nodiscard]] Value value(std::size_t index) const;
  /// The value of a dict's text key (or integer key, by its decimal), an object's attribute; nullopt when
  /// there is none, and of all that has no keys.
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;

  /// Whether find() finds something.
  [[nodiscard]] bool contains(std::string_view key) const { return find(key).has_value(); }

  /// A dotted path of keys, list indices and attributes: "optimizer.param_groups.0.lr". Keys may contain dots
  /// themselves: the longest that leads somewhere is taken. The empty path is the value itself.
  /// Errc::not_found names how far it got.
  [[nodiscard]] Value at(std::string_view path) const;
  /// The same, and nullopt where at() throws.
  [[nodiscard]] std::optional<Value> find_path(std::string_view path) const;

  /// @name Objects
  /// None of everything else.

  /// A class or function itself, not an instance of it; type() is its name.
  [[nodiscard]] bool is_global() const noexcept;
  [[nodiscard]] Value args() const;    ///< tuple, or None
  [[nodiscard]] Value kwargs() const;  ///< dict, or None
  [[nodiscard]] Value state()
      const;  ///< whatever the class's __setstate__ was to get; None when there was none
  [[nodiscard]] Value items() const;  ///< list appended to it, or None: list subclasses
  [[nodiscard]] Value pairs() const;  ///< dict set on it, or None: dict subclasses
  /// Python attributes of a dict (`_metadata` of a state dict) or object, as a dict; None when it has none.
  [[nodiscard]] Value attributes() const;

  /// One line: "3", "\"text\"", "list of 2", "F32 [2, 3]", "__main__.Net object"; text from the file made
  /// safe to show.
  [[nodiscard]] std::string summary() const;

 private:
  friend class ValueTree;

  Value(std::shared_ptr<const ValueTree> tree, std::uint64_t ref) noexcept
      : tree_(std::move(tree)), ref_(ref) {}

  static Value from_integer(std::int64_t value, bool is_unsigned);

  std::shared_ptr<const ValueTree> tree_;  // null: the value is in ref_ itself
  std::uint64_t ref_;                      // 2: None; see src/checkpoint/value_tree.h
};

/// Walks a tree in order, without recursion; every container is entered once, so that cycles and bombs end.
class ValueWalk {
 public:
  /// One value and where it stands.
  struct Step {
    Value value;  ///< the value itself
    std::string
        label;  ///< key, index or attribute name below its parent, made safe to show; empty for the root
    std::size_t depth = 0;  ///< 0 for the root
    bool repeated = false;  ///< a container met before: what is in it is not shown again
  };

  /// Where a walk ends.
  struct Limits {
    std::size_t steps = 1'000'000;  ///< values in all
    std::size_t depth = 1'000'000;  ///< containers below it are not entered
  };

  /// From `root` on, to the usual limits.
  explicit ValueWalk(Value root) : ValueWalk(std::move(root), Limits{}) {}

  /// From `root` on.
  ValueWalk(Value root, Limits limits);
  ~ValueWalk();
  ValueWalk(ValueWalk&&) noexcept;
  ValueWalk& operator=(ValueWalk&&) noexcept;

  /// The next value, or nullopt at the end.
  [[nodiscard]] std::optional<Step> next();
  /// True when the walk ended because of its limits, not because there was nothing left.
  [[nodiscard]] bool cut() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ballast

#pragma GCC visibility pop
