// A store that one process serves to others by TCP.
#pragma once

#include <atomic>
#include <set>
#include <thread>

#include "packages/distributed/csrc/store/store.h"

namespace argand::distributed {

// Serves a HashStore; a thread a connection. Connections that do not begin with our greeting are closed.
class TCPServer {
 public:
  explicit TCPServer(int port);  // on all interfaces; 0: any free port
  ~TCPServer();
  int port() const { return port_; }

 private:
  void accept_all();
  void serve(int fd);

  HashStore store_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::set<int> connections_;  // open ones
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

struct Message;  // tcp_store.cc

class TCPStore : public Store {
 public:
  // Tries until the server answers, for at most `timeout`.
  TCPStore(std::string host, int port, Millis timeout, std::shared_ptr<TCPServer> server);
  ~TCPStore() override;
  const std::string& host() const { return host_; }
  int port() const { return port_; }

  void set(const std::string& key, const std::string& value) override;
  bool fetch(const std::string& key, std::string* value) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  bool check(const Keys& keys) override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  bool wait_for(const Keys& keys, Millis slice) override;
  std::shared_ptr<Store> clone() override { return std::make_shared<TCPStore>(host_, port_, timeout_, nullptr); }
  std::string local_address() override;
  void set_answer_limit(Millis limit) { answer_limit_ = limit; }

 private:
  void connect(Millis timeout);
  Message ask(const Message& request, Millis patience = Millis{0});

  std::string host_;
  int port_;
  std::shared_ptr<TCPServer> server_;
  std::mutex mutex_;  // one question at a time
  int fd_ = -1;
  Millis answer_limit_{10000};  // for what needs no waiting
};

}  // namespace argand::distributed
