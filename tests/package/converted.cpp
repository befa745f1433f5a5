// Links ballast::core alone: loads the record that CMake converted, and the one that is linked in.
#include <ballast/record.h>

#include <iostream>

#include "weights.h"

struct Net {
  struct Layer {
    ballast::Tensor weight;
    ballast::Tensor bias;
  };

  Layer head;
};

int main(int, char** argv) try {
  Net from_file;
  ballast::load_record(from_file, argv[1], {}, {.verify = true});
  Net from_program;
  weights::load(from_program);
  const auto bias = weights::values<"head.bias">();
  static_assert(decltype(bias)::extent == 10);
  const bool same = from_program.head.bias.span<float>()[3] == bias[3] &&
                    from_file.head.bias.dtype() == ballast::DType::f16;
  const bool in_place = from_program.head.bias.data() == reinterpret_cast<const std::byte*>(bias.data());
  std::cout << (same && in_place ? "converted and embedded" : "wrong") << '\n';
  return same && in_place ? 0 : 1;
} catch (const ballast::Error& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
