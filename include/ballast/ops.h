// SPDX-License-Identifier: Apache-2.0
// All operations on tensors: free functions that take tensors and give tensors. ballast/ops/operand.h says
// what they have in common. Part of ballast::nn.
#pragma once

#include "ballast/ops/activation.h"
#include "ballast/ops/cache.h"
#include "ballast/ops/conv.h"
#include "ballast/ops/create.h"
#include "ballast/ops/elementwise.h"
#include "ballast/ops/matmul.h"
#include "ballast/ops/movement.h"
#include "ballast/ops/norm.h"
#include "ballast/ops/operand.h"
#include "ballast/ops/pool.h"
#include "ballast/ops/reduce.h"
#include "ballast/ops/resize.h"
#include "ballast/ops/rnn.h"
