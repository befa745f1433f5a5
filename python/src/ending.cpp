// SPDX-License-Identifier: Apache-2.0
#include "ending.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "py.h"

namespace py {
namespace {

using namespace std::chrono_literals;

// Since Python 3.14 a thread that asks too late stays in there for ever.
constexpr auto kLongestWait = 500ms;

std::atomic<int> at_work = 0;  // threads in C++, without the GIL
std::atomic<int> asking = 0;   // threads between the question for the GIL and its answer
std::atomic<bool> interpreter_ends = false;
std::atomic<std::thread::id> ends_it;

struct Asks {
  Asks() { ++asking; }
  Asks(const Asks&) = delete;
  Asks& operator=(const Asks&) = delete;
  ~Asks() { --asking; }
};

template <class Take>
auto take_gil(const Take& take) noexcept {
  return in_python([&] {
    {
      const Asks asks;  // before the look at the flag: see interpreter_goes()
      if (!interpreter_ends || ends_it.load() == std::this_thread::get_id()) return take();
    }
    wait_for_the_end();
  });
}

// The last moment at which all of the interpreter is there. Its threads are no longer given the GIL: whoever
// is asking comes back at once, whoever asks from now on is held back.
void interpreter_goes(PyObject* /*capsule*/) {
  ends_it = std::this_thread::get_id();
  interpreter_ends = true;
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (asking > 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
}

void leave_at_once(int status, void* /*nothing*/) {
  if (at_work == 0) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

void wait_for_the_end() {
  for (;;) pause();
}

void end_well() {
  interpreter_ends = false;
  const Ref guard(PyCapsule_New(&at_work, nullptr, interpreter_goes));
  check(PyDict_SetItemString(PyInterpreterState_GetDict(PyInterpreterState_Get()), "ballast.ending",
                             guard.get()));
  // Registered as late as Python allows, so that it runs before any library's end: glibc goes backwards.
  Py_AtExit([] { on_exit(leave_at_once, nullptr); });
}

AtWork::AtWork() {
  ++at_work;
}

AtWork::~AtWork() {
  --at_work;
}

Unlocked::Unlocked() {
  ++at_work;  // first: whoever is without the GIL is counted
  state_ = PyEval_SaveThread();
}

Unlocked::~Unlocked() {
  --at_work;
  take_gil([this] {
    PyEval_RestoreThread(state_);
    return true;
  });
}

Locked::Locked() : state_(take_gil([] { return PyGILState_Ensure(); })) {}

}  // namespace py
