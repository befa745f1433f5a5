// SPDX-License-Identifier: Apache-2.0
// Moved to the public headers.
#pragma once

#include "ballast/nearest.h"
