// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 on the loopback interface: connections, their limits, and nothing of what is asked.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "view/request.h"
#include "view/response.h"

namespace tool::view {

/// Whether whoever asked has hung up: long work looks now and then, and stops.
using Gone = std::function<bool()>;

using Handler = std::function<Response(const Request& request, const Gone& gone)>;

class Server {
 public:
  static constexpr std::size_t kMostConnections = 64;
  static constexpr std::chrono::seconds kForHead{10};   ///< from the first byte to the last of a request
  static constexpr std::chrono::seconds kBetween{60};   ///< two requests of one connection
  static constexpr std::chrono::seconds kForWrite{60};  ///< somebody who takes nothing for so long is gone

  /// Listens on 127.0.0.1, and on ::1 where there is one. Port 0: any that is free.
  /// Errc::invalid_argument when it is taken.
  explicit Server(std::uint16_t port);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  /// Answers until stop(), or until `is_over`, which is asked every second.
  void serve(const Handler& handler, const std::function<bool()>& is_over);
  /// From any thread; the answer under way is still sent.
  void stop() noexcept;

 private:
  struct Connection {
    int socket = -1;
    std::thread thread;
    std::atomic<bool> is_done{false};
  };

  /// False when the process has no descriptor for another connection.
  bool accept_from(int listener, const Handler& handler);
  void reap(bool all);

  std::uint16_t port_ = 0;
  std::vector<int> listeners_;
  int wake_ = -1;  // an eventfd: stop() has something to poll for
  std::atomic<bool> is_stopping_{false};
  std::list<Connection> connections_;
};

}  // namespace tool::view
