"""Repository rules that make Python environments: `python_env` (the build's) and `extra_env` (what some targets alone need).

The interpreter is `ARGAND_PYTHON` (a name as python3.12, or a path), by default the first of CPython 3.11, 3.12 and 3.13 that has
its headers; it is looked for on PATH and among pyenv's.
"""

_MAKE = Label("//tools/build:make_environment.py")
_VERSIONS = ["3.11", "3.12", "3.13"]
_ENVIRONMENT = ["ARGAND_PYTHON", "ARGAND_CACHE"]

_PROBE = """
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not (sys.implementation.name == "cpython" and "%d.%d" % sys.version_info[:2] == sys.argv[1] and os.path.exists(header)))
"""

def _works(rctx, path, version):
    return rctx.execute([path, "-c", _PROBE, version]).return_code == 0

def _pyenv_roots(rctx):
    roots = [rctx.os.environ.get("PYENV_ROOT", "")]
    roots.append(rctx.os.environ.get("HOME", "") + "/.pyenv")
    shim = rctx.which("pyenv")
    if shim:
        roots.append(str(shim.dirname.dirname))
    return [root for root in roots if root.startswith("/")]

def _candidates(rctx, version):
    name = "python" + version
    on_path = rctx.which(name)
    candidates = [str(on_path)] if on_path and "/shims/" not in str(on_path) else []
    for root in _pyenv_roots(rctx):
        found = rctx.execute(["sh", "-c", "ls -d %s/versions/%s.*/bin/%s 2>/dev/null | sort -V -r" % (root, version, name)])
        candidates += found.stdout.split("\n")
    return candidates + ["/usr/local/bin/" + name, "/usr/bin/" + name]

def find_python(rctx):
    """The path of the interpreter that everything is built for."""
    wanted = rctx.os.environ.get("ARGAND_PYTHON", "")
    if wanted.startswith("/"):
        if not rctx.path(wanted).exists:
            fail("python_env: ARGAND_PYTHON=%s does not exist; give a CPython 3.11, 3.12 or 3.13" % wanted)
        return wanted
    versions = [wanted[len("python"):]] if wanted else _VERSIONS
    if versions[0] not in _VERSIONS:
        fail("python_env: ARGAND_PYTHON=%s; expected python3.11, python3.12, python3.13 or a path" % wanted)
    for version in versions:
        for candidate in _candidates(rctx, version):
            if candidate and rctx.path(candidate).exists and _works(rctx, candidate, version):
                return candidate
    fail("python_env: found no CPython %s with its headers, venv and ensurepip, on PATH or in pyenv; install one (on Debian: python3-dev, python3-venv), or set ARGAND_PYTHON to a path" % " or ".join(versions))

def cache_folder(rctx, name):
    """A folder of the cache that all clones share."""
    cache = rctx.os.environ.get("ARGAND_CACHE", "").split(":")[0]
    return (cache or rctx.os.environ.get("HOME", "/tmp") + "/.cache/argand-bazel") + "/" + name

def _make(rctx, arguments, timeout):
    python = find_python(rctx)
    command = [python, str(rctx.path(_MAKE)), "--cache", cache_folder(rctx, "python"), "--requirements", str(rctx.path(rctx.attr.requirements))]
    return rctx.execute(command + arguments, timeout = timeout)

def _python_env_impl(rctx):
    rctx.report_progress("making the Python environment")
    result = _make(rctx, ["--name", "env", "--require-hashes", "--keep-wheels"], 3600)
    if result.return_code:
        fail("python_env: the environment could not be made from requirements.lock:\n" + result.stderr)
    env = _parse(result.stdout)
    rctx.symlink(env["venv"], "venv")
    rctx.symlink(env["wheels"], "wheels")
    rctx.symlink(env["include"], "include/python")
    rctx.symlink(env["site"] + "/pybind11/include", "include/pybind11")
    rctx.symlink(env["site"] + "/scipy_openblas64/include", "include/openblas")
    rctx.file("environment.txt", env["key"] + "\n")
    rctx.file("config.bzl", "".join([
        '"""What the chosen interpreter decides; written by python_env.bzl."""\n\n',
        "PYTHON_VERSION = \"%s\"\n" % env["version"],
        "PYTHON_TAG = \"cp%s\"\n" % env["version"].replace(".", ""),
        "EXT_SUFFIX = \"%s\"\n" % env["ext_suffix"],
    ]))
    rctx.template("BUILD.bazel", Label("//tools/build:python_env.BUILD.tpl"), substitutions = {
        "{PYTHON}": env["python"],
        "{OPENBLAS_LIB}": env["site"] + "/scipy_openblas64/lib",
    })

def _parse(stdout):
    # repository_ctx has no JSON reader on Bazel 4; the description is one flat object of strings.
    env = {}
    line = stdout.strip().split("\n")[-1].strip("{}")
    for pair in line.split(", "):
        key, _, value = pair.partition(": ")
        env[key.strip('"')] = value.strip('"')
    return env

python_env = repository_rule(
    implementation = _python_env_impl,
    attrs = {"requirements": attr.label(mandatory = True, allow_single_file = True)},
    environ = _ENVIRONMENT,
    doc = "The virtual environment of requirements.lock: Python toolchain, headers and libraries of its packages.",
)

def _extra_env_impl(rctx):
    name = rctx.attr.environment
    rctx.report_progress("making the environment '%s'" % name)

    # One that takes longer than this (a build for accelerators is gigabytes) is as good as none.
    result = _make(rctx, ["--name", name] + (["--require-hashes"] if rctx.attr.hashes else []), 600)
    site = ""
    reason = ""
    if result.return_code:
        lines = [line for line in result.stderr.strip().split("\n") if line]
        reason = "the environment '%s' (%s) could not be made: %s; retry with bazel sync --only=%s" % (
            name,
            rctx.attr.requirements.name,
            lines[-1] if lines else "no output",
            rctx.name,
        )
    else:
        site = _parse(result.stdout)["site"]
    rctx.file("site.txt", site + "\n")
    rctx.file("reason.txt", reason + "\n")
    rctx.file("BUILD.bazel", """
filegroup(
    name = "environment",
    srcs = ["reason.txt", "site.txt"],
    visibility = ["//visibility:public"],
)
""")

extra_env = repository_rule(
    implementation = _extra_env_impl,
    attrs = {
        "environment": attr.string(mandatory = True, doc = "Its name."),
        "hashes": attr.bool(doc = "The requirements have hashes, which are checked."),
        "requirements": attr.label(mandatory = True, allow_single_file = True),
    },
    environ = _ENVIRONMENT,
    doc = "site.txt: a site-packages folder beside the build's own; empty where it could not be made, and reason.txt says why.",
)
