// Links ballast::import and ballast::nn: loads a layer and runs it.
#include <ballast/ballast.h>

#include <iostream>

struct Net {
  ballast::Flat<ballast::nn::Linear> layer{{2, 2, {.bias = false}}};  // key: weight
};

int main(int, char** argv) {
  try {
    Net net;
    ballast::load(net, argv[1]);
    std::cout << net.layer->forward(ballast::ones({1, 2})).shape() << '\n';
  } catch (const ballast::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
