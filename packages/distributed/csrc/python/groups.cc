// Process groups and their work, as argand_distributed's Python calls them.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <cstring>
#include <unordered_map>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/distributed/csrc/group/gloo_group.h"
#include "packages/distributed/csrc/group/nccl_group.h"
#include "packages/distributed/csrc/python/binding.h"

namespace argand::distributed {

namespace {

// ---- tensors -------------------------------------------------------------------------------------------------------
Tensor tensor_of(const char* op, py::handle o) {
  ArgandTensor* t = python->unwrap(o.ptr());
  if (!t || !may_read_memory(o.ptr(), t, op)) throw py::error_already_set();
  if (!(t->flags & ARGAND_TENSOR_CONTIGUOUS))
    throw Error{ARGAND_RUNTIME_ERROR, std::string(op) + ": got a tensor that is not contiguous; call contiguous() first"};
  return Tensor::borrow(t);
}

TensorList tensors_of(const char* op, const py::sequence& sequence) {
  TensorList out;
  for (const auto& o : sequence) out.push_back(tensor_of(op, o));
  return out;
}

void written(const TensorList& tensors) {
  for (const Tensor& t : tensors) t.bump_version();
}

// ---- the user's line ---------------------------------------------------------------------------------------------
// A code object that was seen stays for ever, so its address stands for its file.
struct SeenCode {
  const char* file;  // NULL: of this package, or of what calls it in backward
};

const SeenCode& seen(PyCodeObject* code) {
  static auto* all = new std::unordered_map<PyCodeObject*, SeenCode>;
  auto found = all->find(code);
  if (found != all->end()) return found->second;
  Py_INCREF(code);
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  const bool own = !file || std::strstr(file, "argand_distributed/") || std::strstr(file, "argand_autograd/");
  return all->emplace(code, SeenCode{own ? nullptr : file}).first->second;
}

constexpr int64_t kAnySize = 1;

CallSite call_site() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  CallSite site;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    site.file = seen(code).file;
    Py_DECREF(code);
    if (site.file) site.line = PyFrame_GetLineNumber(frame);
    PyFrameObject* back = site.file ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return site;
}

// Starts an operation; one that the caller will wait for may run in this thread.
template <class Start>
WorkPtr run(bool sync, Start start) {
  const CallOptions call{call_site(), sync};
  if (!sync) return start(call);
  WithoutGil released;
  return start(call);
}

using Timeout = std::optional<Millis>;

py::dict to_dict(const Record& r) {
  static constexpr const char* states[] = {"queued", "running", "done", "failed"};
  using namespace py::literals;
  const auto ended = r.state == State::kDone || r.state == State::kFailed ? r.finished : Clock::now();
  return py::dict("seq"_a = r.seq, "op"_a = op_name(r.signature.kind), "call"_a = r.signature.text(),
                  "file"_a = r.site.file ? py::object(py::str(r.site.file)) : py::none(), "line"_a = r.site.line,
                  "state"_a = states[static_cast<int>(r.state)], "seconds"_a = std::chrono::duration<double>(ended - r.queued).count());
}

void bind_work(py::module_& m) {
  using namespace py::literals;
  py::class_<Work, WorkPtr>(m, "Work")
      .def("is_completed", &Work::is_completed)
      .def("is_success", &Work::is_success)
      .def("_wait",
           [](Work& self, const Timeout& timeout) {
             WithoutGil released;
             self.wait(timeout.value_or(Millis{-1}));
           })
      .def("_error",
           [](Work& self) -> py::object {
             auto error = self.error();
             return error ? py::object(py::str(error->what())) : py::none();
           })
      .def("source_rank", &Work::source_rank)
      .def_readonly("seq", &Work::seq);
}

void bind_collectives(py::class_<ProcessGroup, std::shared_ptr<ProcessGroup>>& group) {
  using namespace py::literals;
  group
      .def("all_reduce",
           [](ProcessGroup& self, const py::sequence& tensors, ReduceOp op, bool sync) {
             const TensorList list = tensors_of("all_reduce", tensors);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.all_reduce(list, op, call); });
             written(list);
             return work;
           })
      .def("reduce",
           [](ProcessGroup& self, py::handle tensor, int root, ReduceOp op, bool sync) {
             const Tensor t = tensor_of("reduce", tensor);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.reduce(t, root, op, call); });
             if (self.options().rank == root) written({t});
             return work;
           })
      .def("broadcast",
           [](ProcessGroup& self, const py::sequence& tensors, int root, bool sync) {
             const TensorList list = tensors_of("broadcast", tensors);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.broadcast(list, root, call); });
             if (self.options().rank != root) written(list);
             return work;
           })
      .def("all_gather",
           [](ProcessGroup& self, const py::sequence& outputs, py::handle input, bool sync) {
             const TensorList list = tensors_of("all_gather", outputs);
             const Tensor given = tensor_of("all_gather", input);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.all_gather(list, given, call); });
             written(list);
             return work;
           })
      .def("gather",
           [](ProcessGroup& self, const py::sequence& outputs, py::handle input, int root, bool sync) {
             const TensorList list = tensors_of("gather", outputs);
             const Tensor given = tensor_of("gather", input);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.gather(list, given, root, call); });
             written(list);
             return work;
           })
      .def("scatter",
           [](ProcessGroup& self, py::handle output, const py::sequence& inputs, int root, bool sync) {
             const Tensor t = tensor_of("scatter", output);
             const TensorList given = tensors_of("scatter", inputs);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.scatter(t, given, root, call); });
             written({t});
             return work;
           })
      .def("reduce_scatter",
           [](ProcessGroup& self, py::handle output, const py::sequence& inputs, ReduceOp op, bool sync) {
             const Tensor t = tensor_of("reduce_scatter", output);
             const TensorList given = tensors_of("reduce_scatter", inputs);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.reduce_scatter(t, given, op, call); });
             written({t});
             return work;
           })
      .def("all_to_all",
           [](ProcessGroup& self, const py::sequence& outputs, const py::sequence& inputs, bool same_shapes, bool sync) {
             const TensorList list = tensors_of("all_to_all", outputs);
             const TensorList given = tensors_of("all_to_all", inputs);
             WorkPtr work = run(sync, [&](const CallOptions& call) { return self.all_to_all(list, given, same_shapes, call); });
             written(list);
             return work;
           })
      .def("barrier", [](ProcessGroup& self, bool sync) { return run(sync, [&](const CallOptions& call) { return self.barrier(call); }); })
      .def("send",
           [](ProcessGroup& self, py::handle tensor, int peer, int tag) { return self.send(tensor_of("send", tensor), peer, tag, {call_site()}); })
      .def("recv", [](ProcessGroup& self, py::handle tensor, int peer, int tag) {
        const Tensor t = tensor_of("recv", tensor);
        WorkPtr work = self.recv(t, peer, tag, {call_site()});
        written({t});
        return work;
      });
}

std::shared_ptr<ProcessGroup> make_gloo_group(const std::string& name, int rank, int size, const std::vector<int>& global_ranks, Millis timeout,
                                              const std::string& interface, const std::string& address, std::shared_ptr<Store> store,
                                              std::shared_ptr<Store> monitor_store) {
  WithoutGil released;
  auto group = std::make_shared<GlooGroup>(GroupOptions{name, rank, size, global_ranks, timeout}, GlooOptions{interface, address}, std::move(store),
                                           std::move(monitor_store));
  watch_group(group);
  return group;
}

std::shared_ptr<ProcessGroup> make_nccl_group(const std::string& name, int rank, int size, const std::vector<int>& global_ranks, Millis timeout,
                                              const std::vector<std::string>& libraries, std::shared_ptr<Store> store,
                                              std::shared_ptr<Store> monitor_store) {
  WithoutGil released;
  auto group =
      std::make_shared<NcclGroup>(GroupOptions{name, rank, size, global_ranks, timeout}, libraries, std::move(store), std::move(monitor_store));
  watch_group(group);
  return group;
}

}  // namespace

void bind_groups(py::module_& m) {
  using namespace py::literals;
  py::enum_<ReduceOp>(m, "RedOpType")
      .value("SUM", ReduceOp::kSum)
      .value("AVG", ReduceOp::kAvg)
      .value("PRODUCT", ReduceOp::kProduct)
      .value("MIN", ReduceOp::kMin)
      .value("MAX", ReduceOp::kMax)
      .value("BAND", ReduceOp::kBand)
      .value("BOR", ReduceOp::kBor)
      .value("BXOR", ReduceOp::kBxor);
  bind_work(m);
  py::class_<ProcessGroup, std::shared_ptr<ProcessGroup>> group(m, "Backend");
  group.def_property_readonly("name", [](ProcessGroup& self) { return self.options().name; })
      .def_property_readonly("rank", [](ProcessGroup& self) { return self.options().rank; })
      .def_property_readonly("size", [](ProcessGroup& self) { return self.options().size; })
      .def_property_readonly("backend", &ProcessGroup::backend)
      .def("records",
           [](ProcessGroup& self) {
             py::list out;
             for (const Record& r : self.records()) out.append(to_dict(r));
             return out;
           })
      .def("record_only",
           [](ProcessGroup& self, int calls) {
             for (int i = 0; i < calls; i++) {
               Signature signature;
               signature.add_shape(&kAnySize, 1);
               self.record_only(signature, {call_site()});
             }
           })
      .def("is_dead", &ProcessGroup::is_dead)
      .def("last_seq", &ProcessGroup::last_seq)
      .def("give_up", &ProcessGroup::give_up, "why"_a, py::call_guard<WithoutGil>())
      .def("set_timeout", &ProcessGroup::set_timeout)
      .def("group_start", &ProcessGroup::group_start)
      .def("group_end", &ProcessGroup::group_end)
      .def("stop", &ProcessGroup::stop, py::call_guard<WithoutGil>());
  bind_collectives(group);
  m.def("gloo_group", &make_gloo_group);
  m.def("nccl_group", &make_nccl_group);
  m.def("register_group", &register_group);
  m.def("unregister_group", &unregister_group);
}

}  // namespace argand::distributed
