// SPDX-License-Identifier: Apache-2.0
// Nothing: what is compiled here are the headers that tests share (CMakeLists.txt).
