#include "packages/distributed/csrc/store/tcp_store.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace argand::distributed {

enum class Verb : uint8_t { kSet, kFetch, kAdd, kCompareSet, kCheck, kDelete, kCount, kWait };
enum class Answer : uint8_t { kYes, kNo, kError };

// On the wire: u32 length of what follows, u8 kind, i64 number, then each part as u32 length and bytes. Both ends have one byte order.
struct Message {
  uint8_t kind = 0;
  int64_t number = 0;
  std::vector<std::string> parts;
};

namespace {

constexpr char kGreeting[8] = {'a', 'r', 'g', 's', 't', 'o', 'r', '1'};
constexpr uint32_t kMaxMessage = 1u << 30;

bool write_all(int fd, const char* data, size_t n) {
  while (n) {
    const ssize_t done = ::send(fd, data, n, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    n -= static_cast<size_t>(done);
  }
  return true;
}

// `deadline` max: for ever.
bool read_all(int fd, char* data, size_t n, Clock::time_point deadline) {
  while (n) {
    if (deadline != Clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::now()).count();
      pollfd waiting{fd, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left, 0)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
    }
    const ssize_t done = ::recv(fd, data, n, 0);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    n -= static_cast<size_t>(done);
  }
  return true;
}

bool send_message(int fd, const Message& m) {
  std::string bytes(4, '\0');
  bytes.push_back(static_cast<char>(m.kind));
  bytes.append(reinterpret_cast<const char*>(&m.number), 8);
  for (const auto& part : m.parts) {
    const uint32_t length = static_cast<uint32_t>(part.size());
    bytes.append(reinterpret_cast<const char*>(&length), 4);
    bytes += part;
  }
  if (bytes.size() > kMaxMessage) throw DistError(DistErrorKind::kStore, "TCPStore: a value of more than 1 GiB");
  const uint32_t length = static_cast<uint32_t>(bytes.size() - 4);
  std::memcpy(bytes.data(), &length, 4);
  return write_all(fd, bytes.data(), bytes.size());
}

bool receive_message(int fd, Message& m, Clock::time_point deadline) {
  uint32_t length = 0;
  if (!read_all(fd, reinterpret_cast<char*>(&length), 4, deadline) || length < 9 || length > kMaxMessage) return false;
  std::string bytes(length, '\0');
  if (!read_all(fd, bytes.data(), length, deadline)) return false;
  m.kind = static_cast<uint8_t>(bytes[0]);
  std::memcpy(&m.number, &bytes[1], 8);
  m.parts.clear();
  for (size_t at = 9; at < length;) {
    uint32_t size = 0;
    if (length - at < 4) return false;
    std::memcpy(&size, &bytes[at], 4);
    at += 4;
    if (length - at < size) return false;
    m.parts.push_back(bytes.substr(at, size));
    at += size;
  }
  return true;
}

void no_delay(int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Message answer(HashStore& store, const Message& q) {
  static constexpr size_t kParts[] = {2, 1, 1, 3, 0, 1, 0, 0};
  Message a;
  const auto yes = [&](bool y) { a.kind = static_cast<uint8_t>(y ? Answer::kYes : Answer::kNo); };
  try {
    if (q.kind > static_cast<uint8_t>(Verb::kWait) || q.parts.size() < kParts[q.kind])
      throw DistError(DistErrorKind::kStore, "TCPStore: a request that is none");
    switch (static_cast<Verb>(q.kind)) {
      case Verb::kSet:
        store.set(q.parts[0], q.parts[1]);
        break;
      case Verb::kFetch:
        a.parts.resize(1);
        yes(store.fetch(q.parts[0], &a.parts[0]));
        break;
      case Verb::kAdd:
        a.number = store.add(q.parts[0], q.number);
        break;
      case Verb::kCompareSet:
        a.parts.push_back(store.compare_set(q.parts[0], q.parts[1], q.parts[2]));
        break;
      case Verb::kCheck:
        yes(store.check(q.parts));
        break;
      case Verb::kDelete:
        yes(store.delete_key(q.parts[0]));
        break;
      case Verb::kCount:
        a.number = store.num_keys();
        break;
      case Verb::kWait:
        yes(store.wait_for(q.parts, Millis{q.number}));
        break;
    }
  } catch (const DistError& e) {
    a.kind = static_cast<uint8_t>(Answer::kError);
    a.parts = {e.what()};
  }
  return a;
}

}  // namespace

// ---- server --------------------------------------------------------------------------------------------------------
TCPServer::TCPServer(int port) {
  listener_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool v6 = listener_ >= 0;
  if (!v6) listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1, zero = 0;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in6 six{};
  sockaddr_in four{};
  sockaddr* address = reinterpret_cast<sockaddr*>(&four);
  socklen_t length = sizeof four;
  four.sin_family = AF_INET;
  four.sin_port = htons(static_cast<uint16_t>(port));
  if (v6) {
    ::setsockopt(listener_, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    six.sin6_family = AF_INET6;
    six.sin6_addr = in6addr_any;
    six.sin6_port = four.sin_port;
    address = reinterpret_cast<sockaddr*>(&six);
    length = sizeof six;
  }
  if (listener_ < 0 || ::bind(listener_, address, length) != 0 || ::listen(listener_, 1024) != 0) {
    const std::string why = std::strerror(errno);
    if (listener_ >= 0) ::close(listener_);
    throw DistError(DistErrorKind::kNetwork,
                    "TCPStore: cannot listen on port " + std::to_string(port) + ": " + why + "; choose another port (MASTER_PORT, --rdzv-endpoint)");
  }
  ::getsockname(listener_, address, &length);
  port_ = ntohs(v6 ? six.sin6_port : four.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

TCPServer::~TCPServer() {
  stopping_ = true;
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  store_.close();
  {
    std::lock_guard lock(mutex_);
    for (int fd : connections_) ::shutdown(fd, SHUT_RDWR);
  }
  for (auto& thread : threads_) thread.join();
}

void TCPServer::accept_all() {
  while (!stopping_) {
    const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) {
      if (stopping_) return;
      std::this_thread::sleep_for(Millis{10});  // out of descriptors, or a connection that was given up
      continue;
    }
    no_delay(fd);
    std::lock_guard lock(mutex_);
    connections_.insert(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void TCPServer::serve(int fd) {
  char greeting[sizeof kGreeting];
  bool good = read_all(fd, greeting, sizeof greeting, Clock::now() + std::chrono::seconds(10)) && !std::memcmp(greeting, kGreeting, sizeof greeting);
  Message question;
  while (good && receive_message(fd, question, Clock::time_point::max())) good = send_message(fd, answer(store_, question));
  std::lock_guard lock(mutex_);
  connections_.erase(fd);
  ::close(fd);
}

// ---- client --------------------------------------------------------------------------------------------------------
namespace {

// -1 when nobody listens there.
int try_connect(const std::string& host, int port, Millis limit, std::string& why) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int status = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (status != 0) {
    why = ::gai_strerror(status);
    return -1;
  }
  int fd = -1;
  for (addrinfo* one = found; one && fd < 0; one = one->ai_next) {
    const int candidate = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (candidate < 0) continue;
    int error = ::connect(candidate, one->ai_addr, one->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      pollfd waiting{candidate, POLLOUT, 0};
      socklen_t length = sizeof error;
      if (::poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) {
        error = ETIMEDOUT;
      } else {
        ::getsockopt(candidate, SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
    if (error) {
      why = std::strerror(error);
      ::close(candidate);
      continue;
    }
    int blocking = 0;
    ::ioctl(candidate, FIONBIO, &blocking);
    fd = candidate;
  }
  ::freeaddrinfo(found);
  return fd;
}

}  // namespace

TCPStore::TCPStore(std::string host, int port, Millis timeout, std::shared_ptr<TCPServer> server)
    : host_(std::move(host)), port_(port), server_(std::move(server)) {
  timeout_ = timeout;
  connect(timeout);
}

TCPStore::~TCPStore() {
  if (fd_ >= 0) ::close(fd_);
}

void TCPStore::connect(Millis timeout) {
  const auto deadline = Clock::now() + timeout;
  std::string why;
  for (;;) {
    const auto left = std::chrono::duration_cast<Millis>(deadline - Clock::now());
    fd_ = try_connect(host_, port_, std::clamp(left, Millis{1}, Millis{2000}), why);
    if (fd_ >= 0) {
      no_delay(fd_);
      if (write_all(fd_, kGreeting, sizeof kGreeting)) return;
      ::close(fd_);
      fd_ = -1;
    }
    if (Clock::now() >= deadline)
      throw DistError(DistErrorKind::kNetwork, "TCPStore: cannot reach " + host_ + ":" + std::to_string(port_) + " (" + why +
                                                   "); does rank 0, or the launcher, run there, and is the port open?");
    check_interrupt();
    std::this_thread::sleep_for(Millis{20});
  }
}

Message TCPStore::ask(const Message& request, Millis patience) {
  std::lock_guard lock(mutex_);
  if (fd_ < 0) connect(answer_limit_);
  Message response;
  if (!send_message(fd_, request) || !receive_message(fd_, response, Clock::now() + patience + answer_limit_)) {
    ::close(fd_);  // a late answer must not be taken for the next question's
    fd_ = -1;
    throw DistError(DistErrorKind::kNetwork, "TCPStore: " + host_ + ":" + std::to_string(port_) +
                                                 " does not answer; the process that serves it (rank 0, or the launcher) is stopped or gone");
  }
  if (response.kind == static_cast<uint8_t>(Answer::kError)) throw DistError(DistErrorKind::kStore, response.parts.at(0));
  return response;
}

namespace {
Message request(Verb verb, std::vector<std::string> parts, int64_t number = 0) { return {static_cast<uint8_t>(verb), number, std::move(parts)}; }
bool is_yes(const Message& m) { return m.kind == static_cast<uint8_t>(Answer::kYes); }
}  // namespace

void TCPStore::set(const std::string& key, const std::string& value) { ask(request(Verb::kSet, {key, value})); }
bool TCPStore::fetch(const std::string& key, std::string* value) {
  Message response = ask(request(Verb::kFetch, {key}));
  if (!is_yes(response)) return false;
  *value = std::move(response.parts.at(0));
  return true;
}
int64_t TCPStore::add(const std::string& key, int64_t amount) { return ask(request(Verb::kAdd, {key}, amount)).number; }
std::string TCPStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return ask(request(Verb::kCompareSet, {key, expected, desired})).parts.at(0);
}
bool TCPStore::check(const Keys& keys) { return is_yes(ask(request(Verb::kCheck, keys))); }
bool TCPStore::delete_key(const std::string& key) { return is_yes(ask(request(Verb::kDelete, {key}))); }
int64_t TCPStore::num_keys() { return ask(request(Verb::kCount, {})).number; }
bool TCPStore::wait_for(const Keys& keys, Millis slice) { return is_yes(ask(request(Verb::kWait, keys, slice.count()), slice)); }

std::string TCPStore::local_address() {
  std::lock_guard lock(mutex_);
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char text[NI_MAXHOST];
  if (fd_ < 0 || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return text;
}

}  // namespace argand::distributed
