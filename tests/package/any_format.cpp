// Links ballast::import: opens whatever it is given.
#include <ballast/ballast.h>

#include <iostream>

int main(int, char** argv) {
  try {
    for (const auto& t : ballast::open(argv[1]))
      std::cout << t.name << ' ' << t.dtype << ' ' << t.shape << '\n';
  } catch (const ballast::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
