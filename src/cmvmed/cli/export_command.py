"""``cmvmed export``: a model for programs without Python."""

from __future__ import annotations

from pathlib import Path

import click

from cmvmed.cli.project_options import check_output, force_option, model_option, open_model, output_option


@click.command()
@model_option
@output_option("model.onnx", "ONNX file to write.")
@force_option
def command(model: Path, output: Path, force: bool) -> None:
    """Write a model as an ONNX file, for devices and programs without Python.

    Its inputs are the features of each view, and their names are printed. A view of NaN counts as absent. The file does
    not make features from texts, categories, dates or signals. Needs the extra onnx.

    \b
    Examples:
      cmvmed export
      cmvmed export -m other.cmvmed -o other.onnx --force
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
