// SPDX-License-Identifier: Apache-2.0
// What a layer knows besides its parameters: where it stands in its model, for messages, and what its
// operation prepared for the next call.
//
// Throws: run() what the work throws, with the layer's path before it.
#pragma once

#include <string>

#include "ballast/detail/ops/cache.h"
#include "ballast/error.h"

#pragma GCC visibility push(default)

namespace ballast::nn {

/// Where a layer stands, and what its operation keeps. A copy has the path, and keeps nothing.
struct Place {
  std::string path = {};       ///< "layer2.0.conv1"; set by load(), init() and fuse()
  mutable OpCache cache = {};  ///< for the layer's operation alone

  /// What `work` returns; an Error it throws gets the layer's path and type before its own place.
  template <class Work>
  auto run(const char* layer, const Work& work) const {
    const Entered entered(*this, layer);
    try {
      return work();
    } catch (const Error& error) {
      rethrow(layer, error);
    }
  }

 private:
  // Tells a trace where it is.
  class Entered {
   public:
    Entered(const Place& place, const char* layer);
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    ~Entered();

   private:
    bool told_;
  };

  [[noreturn]] void rethrow(const char* layer, const Error& error) const;
};

}  // namespace ballast::nn

#pragma GCC visibility pop
