// SPDX-License-Identifier: Apache-2.0
// All of Ballast.
#pragma once

#include "ballast/checkpoint.h"
#include "ballast/display.h"
#include "ballast/dtype.h"
#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/safetensors.h"
#include "ballast/shape.h"
#include "ballast/storage.h"
#include "ballast/tensor.h"
#include "ballast/threads.h"
#include "ballast/torch.h"
#include "ballast/value.h"
