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
    # What the optimizer alone finds out differs from compiler to compiler: reported, never fatal.
    "-Wno-error=maybe-uninitialized",
    "-Wno-error=array-bounds",
    "-Wno-error=stringop-overflow",
    "-Wno-error=stringop-overread",
    "-Wno-error=dangling-pointer",
    "-fvisibility=hidden",
    "-ffp-contract=off",
]

# What `--config=asan` and `--config=tsan` add. Calls to the runtime instead of checks in place compile as fast as without. Null pointers need no check of
# their own: the page that they hit is not there.
_SANITIZERS = {
    "address": [
        "-fsanitize=address",
        "-fsanitize=undefined",
        "-fno-sanitize=null,vptr",
        "-fno-sanitize-recover=undefined",
        "--param=asan-instrumentation-with-call-threshold=0",
    ],
    "thread": ["-fsanitize=thread"],
}
_SANITIZED = ["-O1", "-g1", "-fno-omit-frame-pointer", "-U_FORTIFY_SOURCE", "-UNDEBUG", "-Wno-error"]

def _sanitizer_copts(suffix = ""):
    return select(dict(
        [("//tools/build:sanitize_" + name + suffix, _SANITIZED + flags) for name, flags in _SANITIZERS.items()],
        **{"//conditions:default": []}
    ))

def sanitizer_settings():
    """The conditions that `--config=asan` and `--config=tsan` meet; tiered sources are instrumented in one tier."""
    for name in _SANITIZERS:
        native.config_setting(name = "sanitize_" + name, define_values = {"sanitize": name})
        for tier in TIERS:
            native.config_setting(
                name = "sanitize_%s_%s" % (name, tier),
                define_values = {"sanitize": name, "sanitized_tier": tier},
            )

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
        copts = COPTS + copts + _sanitizer_copts(),
        visibility = default_visibility(visibility),
        **kwargs
    )

def argand_cc_test(name, copts = [], size = "small", **kwargs):
    """cc_test with the project's flags; links the libraries' objects, so that it sees what a shared library hides."""
    native.cc_test(
        name = name,
        # What is tested is in the libraries; the test's own code takes longer to compile than to run.
        copts = COPTS + ["-O1"] + copts + _sanitizer_copts(),
        linkstatic = True,
        size = size,
        **kwargs
    )

def argand_tiered_library(name, srcs, hdrs = [], deps = [], copts = [], visibility = None, **kwargs):
    """Compiles `srcs` once a tier, with ARGAND_TIER defined as baseline, avx2 and avx512, ARGAND_TIER_NAMESPACE as tier_baseline and so on.

    Whatever a tiered source defines must be in a namespace or have a name made from ARGAND_TIER, inline functions of its
    own headers too: the linker keeps one copy of a name, and it might be the one that the processor cannot run.
    """
    for tier, flags in TIERS.items():
        native.cc_library(
            name = name + "_" + tier,
            srcs = srcs,
            hdrs = hdrs,
            # Integers of kernels wrap around, as NumPy's and PyTorch's do.
            copts = COPTS + ["-fwrapv"] + flags + copts + _sanitizer_copts("_" + tier),
            local_defines = [
                "ARGAND_TIER=" + tier,
                "ARGAND_TIER_" + tier.upper() + "=1",
                "ARGAND_TIER_NAMESPACE=tier_" + tier,
            ],
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
    toolchain = ctx.attr._cc_toolchain[cc_common.CcToolchainInfo]
    if ctx.attr.sibling:
        linker_input = cc_common.create_linker_input(
            owner = ctx.label,
            user_link_flags = depset([library.path]),
            additional_inputs = depset([library]),
        )
    else:
        features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
        linker_input = cc_common.create_linker_input(
            owner = ctx.label,
            libraries = depset([cc_common.create_library_to_link(
                actions = ctx.actions,
                feature_configuration = features,
                cc_toolchain = toolchain,
                dynamic_library = library,
            )]),
        )
    headers = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.headers])
    info = CcInfo(
        compilation_context = headers.compilation_context,
        linking_context = cc_common.create_linking_context(linker_inputs = depset([linker_input])),
    )
    return [info, DefaultInfo(files = depset([library]), runfiles = ctx.runfiles(files = [library]))]

_shared_library_import = rule(
    implementation = _shared_library_import_impl,
    attrs = {
        "headers": attr.label_list(providers = [CcInfo]),
        "library": attr.label(mandatory = True, allow_single_file = True),
        "sibling": attr.bool(doc = "Linked by path, without the RUNPATH that Bazel adds: it will lie beside what links it."),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    doc = "The shared library as a C++ dependency.",
)

def argand_shared_library(name, abi, package, deps, headers = [], linkopts = [], visibility = None):
    """Links `deps` into `<package>/lib<name>.so.<abi>`, whose SONAME carries the ABI number.

    Args:
      name: the library's name, and the target that programs and other packages depend on (headers, and the library to
        link with); extensions of the same package name it as their `shared_library`.
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
    _shared_library_import(
        name = name + "_sibling",
        library = output,
        headers = headers,
        sibling = True,
        visibility = ["//visibility:private"],
    )

def argand_bundled_library(name, src, package, headers = []):
    """A shared library of another project, copied to `<package>/<file name>`, to be linked with by the package's extension.

    Args:
      name: the target that the extension depends on.
      src: the library; its run path must be $ORIGIN, its SONAME its file's name.
      package: the folder of the Python package that holds it.
      headers: header-only C++ libraries that dependents compile against.
    """
    output = package + "/" + src.split(":")[-1]
    native.genrule(
        name = name + "_copy",
        srcs = [src],
        outs = [output],
        cmd = "cp -f $< $@",
        visibility = ["//visibility:private"],
    )
    _shared_library_import(
        name = name,
        library = output,
        headers = headers,
        sibling = True,
        visibility = ["//visibility:private"],
    )

def argand_extension(
        name,
        package,
        srcs,
        deps = [],
        shared_library = None,
        module = "_C",
        hdrs = [],
        copts = [],
        linkopts = [],
        visibility = None):
    """A CPython extension `<package>/<module>.<suffix>.so`, to be listed as `data` of the package's Python library.

    Args:
      name: a filegroup with the extension.
      package: the folder of the Python package, as `argand_c10`.
      srcs: sources; each defines what it exports itself (PyMODINIT_FUNC is visible, all else hidden).
      deps: C++ libraries.
      shared_library: the shared library of the same package, which the extension finds beside itself.
      module: the module's name.
      hdrs: private headers.
      copts: more compiler options.
      linkopts: more linker options.
      visibility: as everywhere; by default the layer's.
    """
    output = package + "/" + module + EXT_SUFFIX
    siblings = [shared_library + "_sibling"] if shared_library else []
    native.cc_library(
        name = name + "_objects",
        srcs = srcs + hdrs,
        copts = COPTS + copts + _sanitizer_copts(),
        deps = deps + siblings + ["@python_env//:python_headers"],
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
