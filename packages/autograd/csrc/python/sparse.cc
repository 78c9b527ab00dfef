// What sparse tensors need of C++.
#include "packages/autograd/csrc/python/binding.h"

namespace argand::autograd::binding {

// _merge_places(a, b) -> (places of a's keys, places of b's keys, how many places): of two lists of int64 the smaller head is taken next, equal ones
// together, whether or not the lists are in order.
PyObject* merge_places(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    if (nargs != 2) fail(ARGAND_TYPE_ERROR, "_merge_places: got %zd arguments, expected 2", nargs);
    const Tensor lists[2] = {unwrap(args[0]), unwrap(args[1])};
    for (const Tensor& list : lists) {
      if (list.dtype() != ARGAND_INT64 || list.sizes().n != 1 || !list.is_contiguous() || ARGAND_DEVICE_TYPE(list.device()) != ARGAND_CPU)
        fail(ARGAND_VALUE_ERROR, "_merge_places: expected contiguous int64 tensors of one dimension on the CPU");
    }
    Tensor places[2] = {empty(lists[0].sizes(), ARGAND_INT64, lists[0].device()), empty(lists[1].sizes(), ARGAND_INT64, lists[1].device())};
    const int64_t *a = lists[0].data<int64_t>(), *b = lists[1].data<int64_t>();
    int64_t *at_a = places[0].data<int64_t>(), *at_b = places[1].data<int64_t>();
    const int64_t n = lists[0].numel(), m = lists[1].numel();
    int64_t i = 0, j = 0, count = 0;
    for (; i < n || j < m; count++) {
      const bool take_a = i < n && (j == m || a[i] <= b[j]), take_b = j < m && (i == n || b[j] <= a[i]);
      if (take_a) at_a[i++] = count;
      if (take_b) at_b[j++] = count;
    }
    return checked(Py_BuildValue("(NNL)", wrap(places[0]).take(), wrap(places[1]).take(), static_cast<long long>(count))).take();
  });
}

}  // namespace argand::autograd::binding
