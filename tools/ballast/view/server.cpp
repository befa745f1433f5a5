// SPDX-License-Identifier: Apache-2.0
#include "view/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "ballast/error.h"
#include "fail.h"

namespace tool::view {
namespace {

using Clock = std::chrono::steady_clock;

struct HungUp {};  // thrown where nobody listens any more

// True when something can be done before the time is over.
bool wait_for(int socket, short events, Clock::time_point until) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd one{socket, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(left));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

bool has_hung_up(int socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// One client: heads and bodies in, answers out, one after the other.
class Dialogue {
 public:
  Dialogue(int socket, const Handler& handler, const std::atomic<bool>& is_stopping)
      : socket_(socket), handler_(handler), is_stopping_(is_stopping) {}

  void run() {
    bool is_first = true;
    while (!is_stopping_.load() && answer_one(is_first)) is_first = false;
  }

 private:
  // False when the connection is over.
  bool answer_one(bool is_first) {
    if (received_.empty() &&
        !wait_for(socket_, POLLIN, Clock::now() + (is_first ? Server::kForHead : Server::kBetween)))
      return false;  // browsers open connections they may never use
    const auto until = Clock::now() + Server::kForHead;
    std::size_t end = end_of_head(received_);
    while (end == std::string::npos || end > kMostHead) {
      if (received_.size() > kMostHead) return refuse(431, "the head of the request is too long");
      const Taken taken = take(until);
      if (taken == Taken::nothing) return false;
      if (taken == Taken::late) return refuse(408, "the request took too long");
      end = end_of_head(received_);
    }
    ParsedHead head = parse_head(std::string_view(received_).substr(0, end));
    if (head.status != 0) return refuse(head.status, head.why);
    received_.erase(0, end);
    while (received_.size() < head.request.body_bytes) {
      const Taken taken = take(until);
      if (taken == Taken::nothing) return false;
      if (taken == Taken::late) return refuse(408, "the request took too long");
    }
    head.request.body = received_.substr(0, head.request.body_bytes);
    received_.erase(0, head.request.body_bytes);
    return answer(head.request);
  }

  bool answer(const Request& request) {
    Response response = [&] {
      try {
        return handler_(request, [this] { return has_hung_up(socket_) || is_stopping_.load(); });
      } catch (...) {
        return current_exception_response();
      }
    }();
    const bool keep = request.keep_alive && !response.close && !is_stopping_.load();
    if (request.method == Method::head) {
      send_all(head_of(response, keep));
      return keep;
    }
    send_all(head_of(response, keep), MSG_MORE);  // in one packet with what follows
    if (response.stream)
      response.stream([this](std::string_view bytes) { send_all(bytes); });
    else
      send_all(response.content());
    return keep;
  }

  bool refuse(int status, std::string_view why) {
    send_all_of(error_response(status, "bad-request", why));
    // What the client still sends is read away: closing with bytes unread would take the answer back.
    ::shutdown(socket_, SHUT_WR);
    std::size_t most = 4U << 20U;
    const auto until = Clock::now() + std::chrono::seconds(1);
    while (most > 0 && wait_for(socket_, POLLIN, until)) {
      char away[4096];
      const ssize_t got = ::recv(socket_, away, sizeof away, 0);
      if (got <= 0) break;
      most -= std::min(most, static_cast<std::size_t>(got));
    }
    return false;
  }

  void send_all_of(const Response& response) {
    send_all(head_of(response, false), MSG_MORE);
    send_all(response.content());
  }

  enum class Taken { some, nothing, late };

  Taken take(Clock::time_point until) {
    if (!wait_for(socket_, POLLIN, until)) return Taken::late;
    char bytes[16384];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) return Taken::some;
    if (got <= 0) return Taken::nothing;
    received_.append(bytes, static_cast<std::size_t>(got));
    return Taken::some;
  }

  void send_all(std::string_view bytes, int more = 0) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT | more);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (errno == EINTR) continue;
      if ((errno != EAGAIN && errno != EWOULDBLOCK) ||
          !wait_for(socket_, POLLOUT, Clock::now() + Server::kForWrite))
        throw HungUp();
    }
  }

  int socket_;
  const Handler& handler_;
  const std::atomic<bool>& is_stopping_;
  std::string received_;  // and not taken yet
};

sockaddr_in address_v4(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Address>
int listen_on(const Address& address) {
  const int listener = ::socket(reinterpret_cast<const sockaddr&>(address).sa_family,
                                SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return -1;
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(listener, SOMAXCONN) == 0)
    return listener;
  const int error = errno;
  ::close(listener);
  errno = error;
  return -1;
}

}  // namespace

Server::Server(std::uint16_t port) {
  const int v4 = listen_on(address_v4(port));
  if (v4 < 0) {
    const int error = errno;
    if (error == EADDRINUSE)
      fail(ballast::Errc::invalid_argument, fmt::format("port {}", port),
           "is taken by another program; without --port any free one is used");
    if (error == EACCES)
      fail(ballast::Errc::permission_denied, fmt::format("port {}", port),
           "may not be used; those from 1024 on may");
    fail(ballast::Errc::io_error, "127.0.0.1", "cannot be listened on: {}", std::strerror(error));
  }
  listeners_.push_back(v4);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(v4, reinterpret_cast<sockaddr*>(&bound), &size);
  port_ = ntohs(bound.sin_port);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port_);
  v6.sin6_addr = in6addr_loopback;
  if (const int also = listen_on(v6); also >= 0) listeners_.push_back(also);
  wake_ = ::eventfd(0, EFD_CLOEXEC);
}

Server::~Server() {
  stop();
  reap(true);
  for (const int listener : listeners_) ::close(listener);
  if (wake_ >= 0) ::close(wake_);
}

void Server::stop() noexcept {
  is_stopping_.store(true);
  const std::uint64_t one = 1;
  const ssize_t ignored = ::write(wake_, &one, sizeof one);
  static_cast<void>(ignored);
}

void Server::reap(bool all) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    if (!all && !at->is_done.load()) {
      ++at;
      continue;
    }
    if (!at->is_done.load())
      ::shutdown(at->socket, SHUT_RD);  // a waiting one wakes up, an answer still goes out
    at->thread.join();
    ::close(at->socket);
    at = connections_.erase(at);
  }
}

namespace {

// Without a thread: what does not fit into the socket's buffer is not sent.
void turn_away(int socket, std::string_view why) {
  const Response full = error_response(503, "too-many", why);
  const std::string text = head_of(full, false) + full.body;
  const ssize_t ignored = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  static_cast<void>(ignored);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

}  // namespace

bool Server::accept_from(int listener, const Handler& handler) {
  const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  if (connections_.size() >= kMostConnections) {
    turn_away(socket, "too many connections");
    return true;
  }
  const int yes = 1;  // no answer waits for an acknowledgement of the one before
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  Connection& connection = connections_.emplace_back();
  connection.socket = socket;
  const auto talk = [this, &connection, &handler] {
    try {
      Dialogue(connection.socket, handler, is_stopping_).run();
    } catch (...) {  // hung up, or not even memory for an answer
    }
    ::shutdown(connection.socket, SHUT_RDWR);
    connection.is_done.store(true);
  };
  try {
    connection.thread = std::thread(talk);
  } catch (const std::system_error&) {  // no thread can be had: this one is not served, the others are
    connections_.pop_back();
    turn_away(socket, "no thread can be had for another connection; try again when others are closed");
  }
  return true;
}

void Server::serve(const Handler& handler, const std::function<bool()>& is_over) {
  constexpr int kPause = 100;  // milliseconds
  std::vector<pollfd> watched{{wake_, POLLIN, 0}};
  for (const int listener : listeners_) watched.push_back({listener, POLLIN, 0});
  bool is_full = false;
  while (!is_stopping_.load() && !is_over()) {
    for (pollfd& one : watched) one.revents = 0;
    // A client nobody has a descriptor for stays at the door, and poll() would tell of it again at once.
    ::poll(watched.data(), is_full ? 1 : watched.size(), is_full ? kPause : 1000);
    reap(false);
    is_full = false;
    for (const pollfd& one : watched) {
      if (one.fd != wake_ && one.revents != 0 && !accept_from(one.fd, handler)) is_full = true;
    }
  }
  is_stopping_.store(true);
  reap(true);
}

}  // namespace tool::view
