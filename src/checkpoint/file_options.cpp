// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file_options.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "base/fail.h"

namespace ballast {
namespace {

struct Option {
  std::string_view name;
  bool is_set;
};

void require_known(std::span<const Option> options, std::string_view who,
                   std::initializer_list<std::string_view> known) {
  for (const Option& option : options) {
    if (option.is_set && std::find(known.begin(), known.end(), option.name) == known.end())
      fail(Errc::invalid_argument, std::string(who), "{} is no option of it", option.name);
  }
}

}  // namespace

void require_known(const SaveOptions& options, std::string_view who,
                   std::initializer_list<std::string_view> known) {
  const auto all = std::to_array<Option>({{"format", static_cast<bool>(options.format)},
                                          {"plain_dict", options.plain_dict},
                                          {"simplify", options.simplify},
                                          {"extent", options.extent != torch::Extent::automatic},
                                          {"metadata", options.metadata.has_value()},
                                          {"burn", !options.burn.empty()},
                                          {"meta", !options.meta.empty()},
                                          {"shard_bytes", options.shard_bytes != 0},
                                          {"check", !options.check},
                                          {"pack", options.pack != Pack::none},
                                          {"recipients", !options.recipients.empty()},
                                          {"passphrase_file", !options.passphrase_file.empty()},
                                          {"durable", !options.durable}});
  require_known(all, who, known);
}

void require_known(const OpenOptions& options, std::string_view who,
                   std::initializer_list<std::string_view> known) {
  const auto all = std::to_array<Option>({{"mode", options.mode != safetensors::Mode::strict},
                                          {"inert", options.inert},
                                          {"verify", options.verify},
                                          {"expansion", options.expansion != kExpansion},
                                          {"formats", !options.formats.empty()},
                                          {"identities", !options.identities.empty()},
                                          {"passphrase_file", !options.passphrase_file.empty()}});
  require_known(all, who, known);
}

}  // namespace ballast
