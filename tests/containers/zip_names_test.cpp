// SPDX-License-Identifier: Apache-2.0
// Looking names of an archive up, against a plain loop over all of them.
#include "containers/zip_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "containers/zip.h"

namespace ballast {
namespace {

using containers::ZipEntry;

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const char* const folder : {"", "n/", "n/data/", "N/data/", "n/DATA/", "n/data/0/", "m/data/"}) {
    for (const char* const part :
         {"0", "00", "7", "07", "11", "12345678", "123456789", "x", "X", "1x", "-1", "+1"})
      names.push_back(std::string(folder) + part);
  }
  return names;
}

std::vector<ZipEntry> entries_of(const std::vector<std::string>& names) {
  std::vector<ZipEntry> entries;
  for (const std::string& name : names) {
    ZipEntry entry{};
    entry.name = name;
    entries.push_back(entry);
  }
  return entries;
}

// Every archive of two names and twelve others, each of the two also in the other's place.
TEST(ZipNames, WhatIsThereTwiceIsFoundWhateverItsCaseIs) {
  const std::vector<std::string> names = all_names();
  std::size_t twice = 0;
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      std::vector<std::string> held = {a};
      for (int i = 0; i < 12; ++i) held.push_back("other/" + std::to_string(i));
      held.push_back(b);
      for (int turn = 0; turn < 2; ++turn) {
        const auto entries = entries_of(held);
        std::set<std::pair<std::size_t, std::size_t>> found;
        containers::ZipNameIndex().build(entries, [&](std::size_t i, std::size_t j) { found.emplace(i, j); });
        const bool same = containers::equal_any_case(a, b);
        ASSERT_EQ(found.contains({0, 13}), same) << a << " and " << b;
        ASSERT_EQ(found.size(), same ? 1U : 0U) << a << " and " << b;
        twice += same ? 1 : 0;
        std::swap(held.front(), held.back());
      }
    }
  }
  EXPECT_GT(twice, 2 * names.size());
}

TEST(ZipNames, EachIsFoundInWhateverCaseAndNoOther) {
  const std::vector<std::string> names = all_names();
  for (std::size_t first = 0; first < names.size(); ++first) {  // which folder's numbers get the table
    std::vector<std::string> held;
    for (std::size_t i = first; i < names.size(); i += 2) {
      const auto is_same = [&](const std::string& other) {
        return containers::equal_any_case(other, names[i]);
      };
      if (std::none_of(held.begin(), held.end(), is_same)) held.push_back(names[i]);
    }
    const auto entries = entries_of(held);
    containers::ZipNameIndex index;
    index.build(entries, [](std::size_t, std::size_t) { ADD_FAILURE(); });
    for (const std::string& name : names) {
      const auto by_loop = std::find_if(held.begin(), held.end(), [&](const std::string& other) {
        return containers::equal_any_case(other, name);
      });
      const auto found = index.find(entries, name);
      ASSERT_EQ(found.has_value(), by_loop != held.end()) << name << " from " << names[first];
      if (found) {
        ASSERT_EQ(*found, static_cast<std::size_t>(by_loop - held.begin())) << name;
      }
    }
  }
}

}  // namespace
}  // namespace ballast
