// SPDX-License-Identifier: Apache-2.0
// The GIL, also while the process ends. Daemon threads go on then: those that ask for the GIL must not reach
// an interpreter that is gone, and those at work in C++ must not see static objects taken apart.
#pragma once

#include <Python.h>
#include <cxxabi.h>

namespace py {

/// Makes the process end well while threads are at work. Called when the module is imported.
void end_well();

/// For a thread that Python no longer wants.
[[noreturn]] void wait_for_the_end();

/// Runs `body`, which runs Python's code. Before 3.14 Python stops a thread that it no longer wants by an
/// unwinding, and no destructor between here and the thread's start may see that.
template <class Body>
auto in_python(const Body& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    wait_for_the_end();
  }
}

/// The GIL is free for others while this lives. Nothing of Python may be touched.
class Unlocked {
 public:
  Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked();

 private:
  PyThreadState* state_;
};

/// A thread that works on without anybody who waits for it.
struct AtWork {
  AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
  ~AtWork();
};

/// Holds the GIL, on whatever thread.
class Locked {
 public:
  Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace py
