// SPDX-License-Identifier: Apache-2.0
// Where ResNet50 was before resnet18 joined it.
#pragma once

#include "resnet.h"
