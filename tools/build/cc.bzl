"""C++ rules: libraries, tests, kernels in three instruction tiers, shared libraries and CPython extensions."""

load("@python_env//:config.bzl", "EXT_SUFFIX")
load("//tools/build:visibility.bzl", "default_visibility")

# -g0 keeps objects small; contraction off, so that every tier and every compiler rounds alike.
COPTS = [
    "-std=c++20",
    "-O2",
    "-g0",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-fvisibility=hidden",
    "-ffp-contract=off",
]

# The tiers that c10 selects from at start, and what each may use.
TIERS = {
    "baseline": ["-msse4.2"],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mprefer-vector-width=512",
    ],
}

def argand_cc_library(name, copts = [], visibility = None, **kwargs):
    """cc_library with the project's flags and its layer's visibility."""
    native.cc_library(
        name = name,
        copts = COPTS + copts,
        visibility = default_visibility(visibility),
        **kwargs
    )

def argand_cc_test(name, copts = [], size = "small", **kwargs):
    """cc_test with the project's flags; links the libraries' objects, so that it sees what a shared library hides."""
    native.cc_test(
        name = name,
        copts = COPTS + copts,
        linkstatic = True,
        size = size,
        **kwargs
    )

def argand_tiered_library(name, srcs, hdrs = [], deps = [], copts = [], visibility = None, **kwargs):
    """Compiles `srcs` once a tier, with ARGAND_TIER defined as baseline, avx2 and avx512.

    Whatever a tiered source defines must be in a namespace or have a name made from ARGAND_TIER, inline functions of its
    own headers too: the linker keeps one copy of a name, and it might be the one that the processor cannot run.
    """
    for tier, flags in TIERS.items():
        native.cc_library(
            name = name + "_" + tier,
            srcs = srcs,
            hdrs = hdrs,
            copts = COPTS + flags + copts,
            local_defines = ["ARGAND_TIER=" + tier, "ARGAND_TIER_" + tier.upper() + "=1"],
            deps = deps,
            alwayslink = True,
            visibility = ["//visibility:private"],
            **kwargs
        )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        deps = [name + "_" + tier for tier in TIERS],
        visibility = default_visibility(visibility),
    )

def _shared_library_import_impl(ctx):
    library = ctx.file.library
    owner = ctx.label
    linker_input = cc_common.create_linker_input(
        owner = owner,
        user_link_flags = depset([library.path]),
        additional_inputs = depset([library]),
    )
    linking = cc_common.create_linking_context(linker_inputs = depset([linker_input]))
    own = CcInfo(
        compilation_context = cc_common.merge_compilation_contexts(
            compilation_contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.headers],
        ) if hasattr(cc_common, "merge_compilation_contexts") else cc_common.merge_cc_infos(
            cc_infos = [dep[CcInfo] for dep in ctx.attr.headers],
        ).compilation_context,
        linking_context = linking,
    )
    runfiles = ctx.runfiles(files = [library])
    return [own, DefaultInfo(files = depset([library]), runfiles = runfiles)]

_shared_library_import = rule(
    implementation = _shared_library_import_impl,
    attrs = {
        "headers": attr.label_list(providers = [CcInfo]),
        "library": attr.label(mandatory = True, allow_single_file = True),
    },
    doc = "The shared library as a C++ dependency: its headers, and the file itself on the link line (no _solib RUNPATH).",
)

def argand_shared_library(name, abi, package, deps, headers = [], linkopts = [], visibility = None):
    """Links `deps` into `<package>/lib<name>.so.<abi>`, whose SONAME carries the ABI number.

    Args:
      name: the library's name, and the target that dependents name (headers, and the library to link with).
      abi: the ABI number.
      package: the folder of the Python package that holds it, as `argand_c10`.
      deps: C++ libraries that go into it whole (make them alwayslink where nothing names their symbols).
      headers: header-only C++ libraries that dependents compile against.
      linkopts: more linker options.
      visibility: as everywhere; by default the layer's.
    """
    soname = "lib%s.so.%d" % (name, abi)
    output = package + "/" + soname
    native.cc_binary(
        name = output,
        deps = deps,
        linkshared = True,
        linkopts = ["-Wl,-soname," + soname, "-Wl,--no-undefined", "-Wl,-rpath,$$ORIGIN"] + linkopts,
        visibility = ["//visibility:private"],
    )
    _shared_library_import(
        name = name,
        library = output,
        headers = headers,
        visibility = default_visibility(visibility),
    )

def argand_extension(name, package, srcs, deps = [], module = "_C", hdrs = [], copts = [], linkopts = [], visibility = None):
    """A CPython extension `<package>/<module>.<suffix>.so`, to be listed as `data` of the package's Python library.

    Args:
      name: a filegroup with the extension.
      package: the folder of the Python package, as `argand_c10`.
      srcs: sources; each defines what it exports itself (PyMODINIT_FUNC is visible, all else hidden).
      deps: C++ libraries; a shared library of the same package is found beside the extension.
      module: the module's name.
      hdrs: private headers.
      copts: more compiler options.
      linkopts: more linker options.
      visibility: as everywhere; by default the layer's.
    """
    output = package + "/" + module + EXT_SUFFIX
    native.cc_library(
        name = name + "_objects",
        srcs = srcs + hdrs,
        copts = COPTS + copts,
        deps = deps + ["@python_env//:python_headers"],
        alwayslink = True,
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = output,
        deps = [name + "_objects"],
        linkshared = True,
        linkopts = ["-Wl,-rpath,$$ORIGIN"] + linkopts,
        visibility = ["//visibility:private"],
    )
    native.filegroup(
        name = name,
        srcs = [output],
        visibility = default_visibility(visibility),
    )
