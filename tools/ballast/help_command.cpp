// SPDX-License-Identifier: Apache-2.0
// ballast help [COMMAND]
#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
#include "help.h"
#include "text.h"

namespace tool {

void add_help(CLI::App& app, Session& session) {
  auto topic = std::make_shared<std::string>();
  CLI::App& command = add_bare_command(app, "help", "show the overview, or the page of a command",
                                       "  ballast help\n  ballast help convert");
  command.add_option("COMMAND", *topic, "The command to explain");
  command.callback([&app, &session, topic] {
    session.run = [&app, &session, topic] {
      const CLI::App* page = topic->empty() ? &app : find_command(app, *topic);
      if (page == nullptr) {
        const std::vector<std::string> names = command_names(app);
        const std::string_view near = nearest(*topic, names);
        fail(ballast::Errc::invalid_argument, "", "no command {}{}", ballast::quoted(*topic),
             near.empty() ? fmt::format("; {}", kOverview)
                          : fmt::format("; did you mean {}?", ballast::quoted(near)));
      }
      session.out.write(page_of(*page));
      return static_cast<int>(kFine);
    };
  });
}

}  // namespace tool
