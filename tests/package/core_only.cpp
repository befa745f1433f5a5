// Links ballast::core alone: writes a Safetensors file and reads it back.
#include <ballast/safetensors.h>

#include <iostream>

int main(int, char** argv) {
  const std::string path = argv[1];
  ballast::Checkpoint made;
  made.add("weight", ballast::Tensor::from({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2}));
  ballast::safetensors::save(made, path, {.overwrite = true});
  const ballast::Checkpoint read = ballast::safetensors::open(path);
  for (const auto& t : read) std::cout << t.name << ' ' << t.dtype << ' ' << t.shape << '\n';
  return read.tensor("weight").span<float>()[3] == 4.0F ? 0 : 1;
}
