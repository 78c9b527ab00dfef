"""Python rules: libraries, programs, pytest targets and generated files."""

load("@python_env//:config.bzl", "PYTHON_VERSION")
load("//tools/build:visibility.bzl", "default_visibility")

_PYTHON = "@bazel_tools//tools/python:toolchain_type"

def argand_py_library(name, srcs, imports = ["."], data = [], visibility = None, bytecode = True, **kwargs):
    """py_library whose folder is importable as it is (`import argand_c10` from packages/c10/argand_c10).

    Args:
      name: target name.
      srcs: Python files.
      imports: as py_library's.
      data: files that the library reads.
      visibility: as everywhere.
      bytecode: compile the files here, once, and not in every process that imports them. Of a file, one library alone can.
      **kwargs: passed on.
    """
    if bytecode:
        _argand_bytecode(name = name + "_bytecode", srcs = srcs, visibility = ["//visibility:private"])
    native.py_library(
        name = name,
        srcs = srcs,
        imports = imports,
        data = data + ["@python_env//:packages"] + ([":%s_bytecode" % name] if bytecode else []),
        srcs_version = "PY3",
        visibility = default_visibility(visibility),
        **kwargs
    )

def _argand_bytecode_impl(ctx):
    package = ctx.label.package + "/"
    lines = []
    outputs = []
    for file in ctx.files.srcs:
        path = file.short_path.split("/", 2)[2] if file.short_path.startswith("../") else file.short_path
        folder, _, module = path[len(package):].rpartition("/")
        output = ctx.actions.declare_file("%s__pycache__/%s.cpython-%s.pyc" % (
            folder + "/" if folder else "",
            module[:-len(".py")],
            PYTHON_VERSION.replace(".", ""),
        ))
        lines.append("\t".join([file.path, path, output.path]))
        outputs.append(output)
    manifest = ctx.actions.declare_file(ctx.label.name + ".manifest")
    ctx.actions.write(manifest, "\n".join(lines))
    ctx.actions.run(
        # The interpreter itself: a program's first line looks for it on PATH, which libraries of build tools are not given.
        executable = ctx.toolchains[_PYTHON].py3_runtime.interpreter_path,
        arguments = [ctx.file._compiler.path, manifest.path],
        inputs = ctx.files.srcs + [ctx.file._compiler, manifest],
        outputs = outputs,
        mnemonic = "ArgandBytecode",
        progress_message = "Compiling Python of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(files = outputs))]

_argand_bytecode = rule(
    implementation = _argand_bytecode_impl,
    attrs = {
        "srcs": attr.label_list(mandatory = True, allow_files = [".py"]),
        "_compiler": attr.label(default = "//tools/build:compile_bytecode.py", allow_single_file = True),
    },
    toolchains = [_PYTHON],
    doc = "The bytecode of Python files, where Python looks for it: in `__pycache__` beside them.",
)

def argand_py_binary(name, srcs, data = [], visibility = None, **kwargs):
    """py_binary that runs with the build's environment."""
    native.py_binary(
        name = name,
        srcs = srcs,
        data = data + ["@python_env//:packages"],
        python_version = "PY3",
        srcs_version = "PY3",
        visibility = default_visibility(visibility),
        **kwargs
    )

def argand_pytest(name, srcs, deps = [], data = [], args = [], support = [], environment = None, size = "small", tags = [], **kwargs):
    """py_test that runs pytest on `srcs`.

    Args:
      name: target name.
      srcs: test files.
      deps: Python libraries under test.
      data: files that the tests read.
      args: more pytest arguments.
      support: conftest.py and helper modules, importable by the tests beside them.
      environment: name of an extra environment ("peer", "opencl", "triton") whose packages the test also imports; the test is skipped with a
        message where that cannot be made. It is also a tag.
      size: Bazel's test size.
      tags: Bazel's tags.
      **kwargs: passed on (timeout, shard_count, env, flaky...).
    """
    runner = "//tools/build:pytest_main.py"
    native.py_test(
        name = name,
        srcs = [runner] + srcs + [file for file in support if file not in srcs],
        main = runner,
        deps = deps + (["//tools/build:%s_environment" % environment] if environment else []),
        data = data + ["@python_env//:packages"],
        args = (["--argand-environment=" + environment] if environment else []) + args + ["$(rootpath %s)" % src for src in srcs],
        python_version = "PY3",
        srcs_version = "PY3",
        size = size,
        tags = tags + ([environment] if environment else []),
        **kwargs
    )

def argand_pytest_files(srcs, **kwargs):
    """One argand_pytest a file, named as the file is (`tests/test_views.py` becomes `test_views`)."""
    for src in srcs:
        argand_pytest(
            name = src.split("/")[-1][:-len(".py")],
            srcs = [src],
            **kwargs
        )

def _argand_output_impl(ctx):
    ctx.actions.run(
        executable = ctx.executable.program,
        arguments = [ctx.outputs.out.path],
        outputs = [ctx.outputs.out],
        mnemonic = "ArgandOutput",
        progress_message = "Running %s" % ctx.label,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

argand_output = rule(
    implementation = _argand_output_impl,
    attrs = {
        "out": attr.output(mandatory = True, doc = "The program's only argument."),
        # Of the target configuration: a program that imports the extensions would otherwise build all of them twice.
        "program": attr.label(mandatory = True, executable = True, cfg = "target"),
    },
    doc = "What a program of the tree writes.",
)

def _argand_codegen_impl(ctx):
    out_dir = "/".join([part for part in [
        ctx.outputs.outs[0].root.path,
        ctx.label.workspace_root,
        ctx.label.package,
        ctx.attr.out_dir,
    ] if part])
    arguments = ctx.actions.args()
    for argument in ctx.attr.arguments:
        arguments.add(ctx.expand_location(argument.replace("{out_dir}", out_dir), ctx.attr.srcs))
    ctx.actions.run(
        executable = ctx.executable.tool,
        arguments = [arguments],
        inputs = ctx.files.srcs,
        outputs = ctx.outputs.outs,
        mnemonic = "ArgandCodegen",
        progress_message = "Generating %s" % ctx.label,
        use_default_shell_env = True,
    )
    files = depset(ctx.outputs.outs)
    return [DefaultInfo(files = files, runfiles = ctx.runfiles(files = ctx.outputs.outs))]

argand_codegen = rule(
    implementation = _argand_codegen_impl,
    attrs = {
        "arguments": attr.string_list(doc = "The program's arguments; {out_dir} is the folder of the outputs, $(location x) a source."),
        "out_dir": attr.string(doc = "Folder of the outputs below the package; empty: the package's own."),
        "outs": attr.output_list(mandatory = True),
        "srcs": attr.label_list(allow_files = True),
        "tool": attr.label(default = "//tools/codegen", executable = True, cfg = "exec"),
    },
    doc = "Runs the code generator; it must write every one of `outs`, and sees only `srcs`.",
)
