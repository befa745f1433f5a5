// Links ballast::import and ballast::nn: loads a layer and runs it, and an operation of its own.
#include <ballast/ballast.h>
#include <ballast/operation.h>

#include <iostream>

struct Net {
  ballast::Flat<ballast::nn::Linear> layer{{2, 2, {.bias = false}}};  // key: weight
};

// An operation of the stranger's own.
ballast::Tensor twice_cpu(const ballast::Operation&, const ballast::Tensor& x) {
  return x * 2;
}

const ballast::OperationOf<ballast::Tensor(const ballast::Tensor&)> kTwice = {
    {.name = "Twice", .inputs = {"x"}, .domain = "com.example"}, {twice_cpu}};

int main(int, char** argv) {
  try {
    Net net;
    ballast::load(net, argv[1]);
    std::cout << run(kTwice, net.layer->forward(ballast::ones({1, 2}))).shape() << '\n';
  } catch (const ballast::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
