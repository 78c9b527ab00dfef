"""The build rules of Argand; BUILD files load them from here."""

load(
    "//tools/build:cc.bzl",
    _argand_bundled_library = "argand_bundled_library",
    _argand_cc_library = "argand_cc_library",
    _argand_cc_test = "argand_cc_test",
    _argand_extension = "argand_extension",
    _argand_shared_library = "argand_shared_library",
    _argand_tiered_library = "argand_tiered_library",
    _sanitizer_settings = "sanitizer_settings",
)
load(
    "//tools/build:py.bzl",
    _argand_codegen = "argand_codegen",
    _argand_output = "argand_output",
    _argand_py_binary = "argand_py_binary",
    _argand_py_library = "argand_py_library",
    _argand_pytest = "argand_pytest",
    _argand_pytest_files = "argand_pytest_files",
)
load("//tools/build:generated.bzl", _argand_generated_files = "argand_generated_files")
load(
    "//tools/build:wheel.bzl",
    _argand_wheel = "argand_wheel",
    _argand_wheel_test = "argand_wheel_test",
)
load("//tools/build:visibility.bzl", _layer_visibility = "layer_visibility")

argand_bundled_library = _argand_bundled_library
argand_cc_library = _argand_cc_library
argand_cc_test = _argand_cc_test
argand_codegen = _argand_codegen
argand_extension = _argand_extension
argand_output = _argand_output
argand_generated_files = _argand_generated_files
argand_py_binary = _argand_py_binary
argand_py_library = _argand_py_library
argand_pytest = _argand_pytest
argand_pytest_files = _argand_pytest_files
argand_shared_library = _argand_shared_library
argand_tiered_library = _argand_tiered_library
argand_wheel = _argand_wheel
argand_wheel_test = _argand_wheel_test
layer_visibility = _layer_visibility
sanitizer_settings = _sanitizer_settings
