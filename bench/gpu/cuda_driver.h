// SPDX-License-Identifier: Apache-2.0
// The few functions of the CUDA driver that moving bytes takes, found at run time: nothing of CUDA is needed
// to build, and a machine without a GPU gets an error and not a missing library.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ballast::bench {

class Cuda {
 public:
  using Handle = void*;  // contexts, streams and events are opaque pointers
  using Address = std::uint64_t;

  Cuda() {
    check(function<int(unsigned)>("cuInit")(0), "cuInit");
    int device = 0;
    check(function<int(int*, int)>("cuDeviceGet")(&device, 0), "cuDeviceGet");
    check(function<int(Handle*, int)>("cuDevicePrimaryCtxRetain")(&context_, device),
          "cuDevicePrimaryCtxRetain");
    enter();
  }

  Cuda(const Cuda&) = delete;
  Cuda& operator=(const Cuda&) = delete;

  /// Every thread that calls the driver does this first.
  void enter() const { check(set_current_(context_), "cuCtxSetCurrent"); }

  [[nodiscard]] Address allocate(std::uint64_t size) const {
    Address address = 0;
    check(allocate_(&address, size), "cuMemAlloc");
    return address;
  }

  void release(Address address) const { check(free_(address), "cuMemFree"); }

  /// Pins memory that is there already: what the copy engine reads without the driver's own bounce buffer.
  void pin(void* data, std::size_t size) const { check(pin_(data, size, 0), "cuMemHostRegister"); }

  void unpin(void* data) const { check(unpin_(data), "cuMemHostUnregister"); }

  [[nodiscard]] Handle stream() const {
    Handle made = nullptr;
    check(make_stream_(&made, 1), "cuStreamCreate");  // 1: does not wait for the default stream
    return made;
  }

  [[nodiscard]] Handle event() const {
    Handle made = nullptr;
    check(make_event_(&made, 2), "cuEventCreate");  // 2: without time stamps
    return made;
  }

  void upload(Address to, const void* from, std::size_t size, Handle stream) const {
    check(upload_(to, from, size, stream), "cuMemcpyHtoDAsync");
  }

  void download(void* to, Address from, std::size_t size) const {
    check(download_(to, from, size), "cuMemcpyDtoH");
  }

  void record(Handle event, Handle stream) const { check(record_(event, stream), "cuEventRecord"); }

  void wait(Handle event) const { check(wait_event_(event), "cuEventSynchronize"); }

  void finish(Handle stream) const { check(wait_stream_(stream), "cuStreamSynchronize"); }

 private:
  static void* driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) throw std::runtime_error("no CUDA driver on this machine (libcuda.so.1)");
    return library;
  }

  template <class Signature>
  [[nodiscard]] Signature* function(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
    return reinterpret_cast<Signature*>(found);
  }

  static void check(int result, const char* call) {
    if (result != 0)
      throw std::runtime_error(std::string(call) + " failed with CUDA error " + std::to_string(result));
  }

  void* library_ = driver();
  Handle context_ = nullptr;
  int (*set_current_)(Handle) = function<int(Handle)>("cuCtxSetCurrent");
  int (*allocate_)(Address*, std::size_t) = function<int(Address*, std::size_t)>("cuMemAlloc_v2");
  int (*free_)(Address) = function<int(Address)>("cuMemFree_v2");
  int (*pin_)(void*, std::size_t,
              unsigned) = function<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2");
  int (*unpin_)(void*) = function<int(void*)>("cuMemHostUnregister");
  int (*make_stream_)(Handle*, unsigned) = function<int(Handle*, unsigned)>("cuStreamCreate");
  int (*make_event_)(Handle*, unsigned) = function<int(Handle*, unsigned)>("cuEventCreate");
  int (*upload_)(Address, const void*, std::size_t,
                 Handle) = function<int(Address, const void*, std::size_t, Handle)>("cuMemcpyHtoDAsync_v2");
  int (*download_)(void*, Address,
                   std::size_t) = function<int(void*, Address, std::size_t)>("cuMemcpyDtoH_v2");
  int (*record_)(Handle, Handle) = function<int(Handle, Handle)>("cuEventRecord");
  int (*wait_event_)(Handle) = function<int(Handle)>("cuEventSynchronize");
  int (*wait_stream_)(Handle) = function<int(Handle)>("cuStreamSynchronize");
};

}  // namespace ballast::bench
