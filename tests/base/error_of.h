// SPDX-License-Identifier: Apache-2.0
// The error some work ends in.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "ballast/error.h"

namespace ballast {

/// A failure of the test when there is none.
inline Error error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {Errc::load_failed, "", ""};
}

inline Errc code_of(const std::function<void()>& work) {
  return error_of(work).code();
}

/// "code: message", to compare with.
inline std::string error_text(const std::function<void()>& work) {
  const Error error = error_of(work);
  return std::string(name(error.code())) + ": " + error.what();
}

}  // namespace ballast
