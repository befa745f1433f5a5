// SPDX-License-Identifier: Apache-2.0
// oneDNN (2.6, the v2 interface: operation descriptor → primitive descriptor → primitive) as the operations
// use it.
#pragma once

#include <dnnl.hpp>
#include <initializer_list>
#include <new>

#include "ballast/detail/ops/activation.h"
#include "ballast/tensor.h"
#include "base/fail.h"
#include "ops/cache.h"

namespace ballast::ops {

using Desc = dnnl::memory::desc;

[[nodiscard]] dnnl::engine& engine();

[[nodiscard]] dnnl::memory::dims dims_of(const Dims& dims);
/// F32 memory with these strides.
[[nodiscard]] Desc strided(const Dims& shape, const Dims& strides);
/// F32, in whatever order oneDNN likes best.
[[nodiscard]] Desc any_order(const Dims& shape);

/// oneDNN reads what it is given through pointers that are not const.
[[nodiscard]] dnnl::memory memory_of(const Desc& desc, const void* data);

/// Memory of the primitive's own order with the values of `data`.
[[nodiscard]] dnnl::memory reordered(const Desc& from, const void* data, const Desc& to);

/// A weight in an order of oneDNN's. All that is prepared from it, for whatever shapes, shares one.
struct OrderedWeight {
  dnnl::memory memory;
};

using SharedWeight = std::shared_ptr<const OrderedWeight>;

/// `weight` in the order `to`: what the cache has, or `values`, which lie as `from` says, brought into it.
[[nodiscard]] SharedWeight ordered(OpCache* cache, const Tensor& weight, const Desc& from,
                                   const Tensor& values, const Desc& to);

/// The values of `in`, in another order, to `out`.
void reorder(const Desc& from, const void* in, const Desc& to, void* out);

/// Attributes with the caller's scratch memory, so that one primitive can run on two threads; and with the
/// activation as a step of oneDNN's own where its results are those of our kernels. They seldom are: its ReLU
/// and ReLU6 turn NaN into 0, and are taken where everything is finite (bounds.h). `left` is what remains to
/// be applied.
struct Attributes {
  dnnl::primitive_attr attr;
  Activation left;
};

[[nodiscard]] Attributes attributes_for(Activation activation, bool finite = false);
/// Whether `finite` makes a difference.
[[nodiscard]] bool is_step_when_finite(Activation activation);

/// Runs `work`; what oneDNN throws becomes an Error of `op`.
template <class Work>
auto guarded(const char* op, const Work& work) {
  try {
    return work();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    fail(Errc::unsupported, op, "oneDNN: {}", error.what());
  }
}

/// The calling thread's memory for work that ends with the call: of at least this size, 64 bytes aligned.
[[nodiscard]] void* scratch_of(std::size_t size);

struct Argument {
  int index;  ///< DNNL_ARG_…
  dnnl::memory memory;
};

/// Runs a primitive on the calling thread's stream, with scratch memory of that thread. Arguments without
/// memory are left out.
void execute(const dnnl::primitive& primitive, const Desc& scratch,
             std::initializer_list<Argument> arguments);

}  // namespace ballast::ops
