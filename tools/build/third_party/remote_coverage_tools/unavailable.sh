#!/bin/sh
echo "coverage: Bazel's coverage tools cannot be downloaded with this Bazel; use the pinned version (.bazelversion)" >&2
exit 1
