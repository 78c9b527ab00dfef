// Stores, as PyTorch's are called.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <optional>

#include "packages/distributed/csrc/python/binding.h"
#include "packages/distributed/csrc/store/tcp_store.h"

namespace argand::distributed {

namespace {

constexpr auto kNoGil = py::call_guard<WithoutGil>();

std::string to_bytes(const py::object& value) {
  if (py::isinstance<py::bytes>(value) || py::isinstance<py::str>(value)) return value.cast<std::string>();
  throw py::type_error("Store.set: got " + std::string(Py_TYPE(value.ptr())->tp_name) + ", expected str or bytes");
}

std::shared_ptr<TCPStore> make_tcp_store(const std::string& host, int port, std::optional<int> world_size, bool is_master, Millis timeout,
                                         bool wait_for_workers) {
  WithoutGil released;
  std::shared_ptr<TCPServer> server;
  if (is_master) server = std::make_shared<TCPServer>(port);
  auto store = std::make_shared<TCPStore>(is_master && (host == "0.0.0.0" || host.empty()) ? "127.0.0.1" : host, server ? server->port() : port,
                                          timeout, server);
  if (world_size && wait_for_workers) {
    const int64_t here = store->add("/workers", 1);
    if (here == *world_size) store->set("/workers complete", "1");
    if (is_master) store->wait({"/workers complete"}, timeout);
  }
  return store;
}

}  // namespace

void bind_stores(py::module_& m) {
  using namespace py::literals;
  py::class_<Store, std::shared_ptr<Store>>(m, "Store", "Keys and values that processes share. Values are bytes; text is encoded.")
      .def(
          "set",
          [](Store& self, const std::string& key, const py::object& value) {
            const std::string bytes = to_bytes(value);
            WithoutGil released;
            self.set(key, bytes);
          },
          "key"_a, "value"_a)
      .def(
          "get",
          [](Store& self, const std::string& key) {
            std::string value;
            {
              WithoutGil released;
              value = self.get(key);
            }
            return py::bytes(value);
          },
          "key"_a, "The value; waits for the key, at most `timeout`.")
      .def("add", &Store::add, "key"_a, "amount"_a, kNoGil, "Adds to the integer under `key`, from 0; the sum.")
      .def(
          "compare_set",
          [](Store& self, const std::string& key, const py::object& expected, const py::object& desired) {
            const std::string from = to_bytes(expected), to = to_bytes(desired);
            std::string value;
            {
              WithoutGil released;
              value = self.compare_set(key, from, to);
            }
            return py::bytes(value);
          },
          "key"_a, "expected_value"_a, "desired_value"_a,
          "Sets `desired_value` where the value is `expected_value`, or where there is none and that is empty; the value after that.")
      .def("check", &Store::check, "keys"_a, kNoGil, "Whether all keys are there.")
      .def("delete_key", &Store::delete_key, "key"_a, kNoGil, "Whether it was there.")
      .def("num_keys", &Store::num_keys, kNoGil)
      .def(
          "wait", [](Store& self, const Keys& keys) { self.wait(keys, self.timeout()); }, "keys"_a, kNoGil)
      .def("wait", &Store::wait, "keys"_a, "timeout"_a, kNoGil, "Waits for all keys; DistStoreError after `timeout`.")
      .def(
          "multi_get",
          [](Store& self, const Keys& keys) {
            std::vector<std::string> values;
            {
              WithoutGil released;
              for (const auto& key : keys) values.push_back(self.get(key));
            }
            py::list out;
            for (const auto& value : values) out.append(py::bytes(value));
            return out;
          },
          "keys"_a)
      .def(
          "multi_set",
          [](Store& self, const Keys& keys, const std::vector<py::object>& values) {
            if (keys.size() != values.size())
              throw py::value_error("Store.multi_set: got " + std::to_string(keys.size()) + " keys and " + std::to_string(values.size()) +
                                    " values, expected as many");
            for (size_t i = 0; i < keys.size(); i++) {
              const std::string bytes = to_bytes(values[i]);
              WithoutGil released;
              self.set(keys[i], bytes);
            }
          },
          "keys"_a, "values"_a)
      .def("set_timeout", &Store::set_timeout, "timeout"_a)
      .def_property_readonly("timeout", &Store::timeout)
      .def("_clone", &Store::clone, kNoGil)
      .def("_local_address", &Store::local_address, kNoGil);

  py::class_<HashStore, Store, std::shared_ptr<HashStore>>(m, "HashStore", "A store for threads of one process.").def(py::init<>());
  py::class_<FileStore, Store, std::shared_ptr<FileStore>>(
      m, "FileStore", "A store in a file that all processes can lock; the last of `world_size` stores to go removes it (-1: it stays).")
      .def(py::init<std::string, int64_t>(), "file_name"_a, "world_size"_a = -1)
      .def_property_readonly("path", &FileStore::path);
  py::class_<PrefixStore, Store, std::shared_ptr<PrefixStore>>(m, "PrefixStore", "Another store whose keys all get `prefix`/.")
      .def(py::init<std::string, std::shared_ptr<Store>>(), "prefix"_a, "store"_a)
      .def_property_readonly("underlying_store", &PrefixStore::underlying);
  py::class_<TCPStore, Store, std::shared_ptr<TCPStore>>(
      m, "TCPStore",
      "A store that one process, the master, serves to the others by TCP. Port 0: any free one. Only for networks of which every host is trusted.")
      .def(py::init(&make_tcp_store), "host_name"_a, "port"_a, "world_size"_a = py::none(), "is_master"_a = false,
           "timeout"_a = Millis(std::chrono::minutes(5)), "wait_for_workers"_a = true)
      .def_property_readonly("host", &TCPStore::host)
      .def_property_readonly("port", &TCPStore::port)
      .def("_set_answer_limit", &TCPStore::set_answer_limit);
}

}  // namespace argand::distributed
