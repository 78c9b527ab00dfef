"""Files that a program of the tree writes."""

def _argand_generated_files_impl(ctx):
    arguments = ctx.actions.args()
    arguments.add("/".join([ctx.bin_dir.path, ctx.label.package]))
    arguments.add_all(ctx.outputs.outs)
    ctx.actions.run(
        executable = ctx.attr.generator[DefaultInfo].files_to_run,
        arguments = [arguments],
        outputs = ctx.outputs.outs,
        mnemonic = "ArgandGenerate",
        progress_message = "Generating %s" % ctx.label,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset(ctx.outputs.outs), runfiles = ctx.runfiles(files = ctx.outputs.outs))]

# Runs `generator FOLDER FILE...`, which writes all of `outs` below its package's FOLDER. The generator is built for the target, not as a tool: one that
# imports the packages would have them compiled a second time.
argand_generated_files = rule(
    implementation = _argand_generated_files_impl,
    attrs = {
        "generator": attr.label(mandatory = True, executable = True, cfg = "target"),
        "outs": attr.output_list(mandatory = True),
    },
)
