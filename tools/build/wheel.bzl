"""Wheels, and the test that a wheel stands on its own."""

load("@python_env//:config.bzl", "PYTHON_TAG")
load("//tools:layers.bzl", "allowed_layers", "import_name")
load("//tools/build:visibility.bzl", "current_layer", "default_visibility")

def _argand_wheel_impl(ctx):
    tag = "py3-none-any" if ctx.attr.pure else "{tag}-{tag}-linux_x86_64".format(tag = ctx.attr.python_tag)
    wheel = ctx.actions.declare_file("dist/%s-%s-%s.whl" % (ctx.attr.distribution.replace("-", "_"), ctx.attr.version, tag))
    root = ctx.label.package + "/"
    files = []
    for dep in ctx.attr.deps:
        files.append(dep[DefaultInfo].files)
        files.append(dep[DefaultInfo].default_runfiles.files)
        if PyInfo in dep:
            files.append(dep[PyInfo].transitive_sources)
    prefix = root + ctx.attr.package + "/"
    members = {
        file.short_path[len(root):]: file
        for file in depset(transitive = files).to_list()
        if (_within(file, prefix) or _is_stub(file, root)) and file.extension != "pyc"
    }
    for target, folder in ctx.attr.headers.items():
        for file in _headers(target):
            members["%s/%s/%s" % (ctx.attr.package, folder, _header_path(file))] = file
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "".join(["%s\t%s\n" % (name, members[name].path) for name in sorted(members)]))
    arguments = ctx.actions.args()
    arguments.add("--manifest", manifest)
    arguments.add("--pyproject", ctx.file.pyproject)
    arguments.add("--readme", ctx.file.readme)
    arguments.add("--output", wheel)
    arguments.add("--runpath", ctx.attr.runpath)
    arguments.add_all(ctx.attr.allowed_imports, before_each = "--allow-import")
    ctx.actions.run(
        executable = ctx.executable._tool,
        arguments = [arguments],
        inputs = members.values() + [manifest, ctx.file.pyproject, ctx.file.readme],
        outputs = [wheel],
        mnemonic = "ArgandWheel",
        progress_message = "Building wheel %s" % wheel.basename,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([wheel]), runfiles = ctx.runfiles(files = [wheel]))]

def _headers(target):
    if CcInfo in target:
        return target[CcInfo].compilation_context.direct_public_headers
    return target.files.to_list()

def _within(file, prefix):
    path = file.short_path
    return path.startswith(prefix) or (path.startswith("../") and path.split("/", 2)[2].startswith(prefix))

def _is_stub(file, root):
    """Whether a file belongs to a stub-only package (PEP 561) of this layer's."""
    path = file.short_path
    return path.startswith(root) and path[len(root):].split("/")[0].endswith("-stubs")

def _header_path(file):
    path = file.short_path
    return path.split("/", 2)[2] if path.startswith("../") else path

_argand_wheel = rule(
    implementation = _argand_wheel_impl,
    attrs = {
        "allowed_imports": attr.string_list(),
        "deps": attr.label_list(mandatory = True),
        "distribution": attr.string(mandatory = True),
        "headers": attr.label_keyed_string_dict(allow_files = True),
        "package": attr.string(mandatory = True),
        "pure": attr.bool(),
        "pyproject": attr.label(mandatory = True, allow_single_file = [".toml"]),
        "python_tag": attr.string(),
        "readme": attr.label(mandatory = True, allow_single_file = [".md"]),
        "runpath": attr.string(),
        "version": attr.string(mandatory = True),
        "_tool": attr.label(default = "//tools/build:wheel_tool", executable = True, cfg = "exec"),
    },
)

def argand_wheel(
        name,
        version,
        package,
        deps,
        distribution = None,
        pure = False,
        headers = {},
        allowed_imports = None,
        runpath = "$ORIGIN",
        visibility = None):
    """A wheel of the files of `deps` below `<package>/`, as dist/<distribution>-<version>-<tag>.whl.

    The build refuses a wheel whose Python files import a layer that the layer may not use, one whose pyproject.toml has
    another name or version, and one that lacks `<package>/__init__.py`.

    Args:
      name: target name.
      version: must be the one in pyproject.toml; it is part of the file's name.
      package: the import name; the wheel's files are those below that folder of the Bazel package.
      deps: Python libraries, extensions, shared libraries.
      distribution: the wheel's name; `package` with dashes by default.
      pure: no compiled code: tag py3-none-any.
      headers: targets of header files and the folder of the package to install them in, under their path from the root.
      allowed_imports: import names of Argand packages that the files may import; by default the layer's.
      runpath: RUNPATH of compiled files.
      visibility: as everywhere; by default the layer's.
    """
    layer = current_layer()
    if allowed_imports == None:
        allowed_imports = [import_name(low) for low in allowed_layers(layer)] if layer else []
    _argand_wheel(
        name = name,
        version = version,
        package = package,
        deps = deps,
        distribution = distribution or package.replace("_", "-"),
        pure = pure,
        python_tag = PYTHON_TAG,
        headers = headers,
        allowed_imports = allowed_imports,
        runpath = runpath,
        pyproject = "pyproject.toml",
        readme = "README.md",
        visibility = default_visibility(visibility),
    )

def argand_wheel_test(name, wheel, package, siblings = [], readme = "README.md", size = "medium", tags = []):
    """Installs the wheel with its declared dependencies only, into a fresh virtual environment, and tries it there.

    It must import, load none of the other Argand packages that are not among its dependencies, and run the first Python
    example of its README. Third-party dependencies come from the environment's wheels, so that no network is needed.

    Args:
      name: target name.
      wheel: the wheel.
      package: the import name.
      siblings: wheels of the layers it depends on, also indirectly.
      readme: the README.
      size: Bazel's test size.
      tags: Bazel's tags.
    """
    main = "//tools/build:wheel_test_main.py"
    native.py_test(
        name = name,
        srcs = [main],
        main = main,
        data = [wheel, readme, "@python_env//:packages"] + siblings,
        args = ["--package", package, "--readme", "$(rootpath %s)" % readme, "--wheel", "$(rootpath %s)" % wheel] +
               ["--sibling=$(rootpath %s)" % sibling for sibling in siblings],
        python_version = "PY3",
        srcs_version = "PY3",
        size = size,
        tags = tags + ["uninstrumented"],
    )
