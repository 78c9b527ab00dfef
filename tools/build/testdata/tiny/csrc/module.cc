#include <cblas.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "tools/build/testdata/tiny/csrc/tiny.h"

PYBIND11_MODULE(_C, module) {
  module.def("twice", &tiny_twice);
  module.def("tiers", &tiny_tiers);
  module.def("dot", [](pybind11::array_t<double> a, pybind11::array_t<double> b) { return scipy_cblas_ddot64_(a.size(), a.data(), 1, b.data(), 1); });
}
