"""``cmvmed export``: a model for programs without Python."""

from __future__ import annotations

from pathlib import Path

import click

from cmvmed.cli.project_options import check_output, force_option, model_option, open_model


@click.command()
@click.argument("output", type=click.Path(path_type=Path))
@model_option
@force_option
def command(output: Path, model: Path, force: bool) -> None:
    """Write a model as the ONNX file OUTPUT, for devices and programs without Python.

    Its inputs are the features of each view, whose names are shown, and a view of NaN is absent. What makes features of
    texts, categories, dates and signals is not part of it. Needs the extra onnx.

    \b
    Examples:
      cmvmed export model.onnx
      cmvmed export other.onnx -m other.cmvmed --force
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    if output.suffix.lower() != ".onnx":
        raise click.UsageError(f"The name of an ONNX file ends in .onnx, but {str(output)!r} does not.")
    check_output(output, force=force)
    trained = open_model(model)
    trained.model.to_onnx(output, overwrite=force)
    click.echo(f"{output}: inputs")
    for encoder in trained.project.encoders or ():
        names = encoder.feature_names
        shown = ", ".join(names[:6]) + (f", ... ({len(names)} in all)" if len(names) > 6 else "")
        click.echo(f"  {encoder.name}: {shown}")
