load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

# Changes whenever a pinned package or the interpreter does; everything that runs Python depends on it.
filegroup(
    name = "packages",
    srcs = ["environment.txt"],
)

# The wheels the environment was made from: wheel tests install from here, offline.
exports_files(["environment.txt"])

py_runtime(
    name = "runtime",
    interpreter_path = "{PYTHON}",
    python_version = "PY3",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "python_toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)

cc_library(
    name = "python_headers",
    hdrs = glob(["include/python/**/*.h"]),
    includes = ["include/python"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["include/pybind11/**/*.h"]),
    includes = ["include/pybind11"],
    deps = [":python_headers"],
)

# The library is found through RUNPATH: here in the environment, in a wheel beside the package (see argand_wheel).
cc_library(
    name = "openblas",
    hdrs = glob(["include/openblas/*.h"]),
    includes = ["include/openblas"],
    linkopts = [
        "-L{OPENBLAS_LIB}",
        "-lscipy_openblas64_",
        "-Wl,-rpath,{OPENBLAS_LIB}",
    ],
)
