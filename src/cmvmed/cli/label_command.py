"""``cmvmed label``: the labeling page in the browser."""

from __future__ import annotations

import socket
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmvmed._optional import import_optional
from cmvmed.cli.project_options import check_output, force_option, project_changes, project_option, random_share_option
from cmvmed.pages.atomic_file import atomic_file
from cmvmed.pages.formatting import plural

if TYPE_CHECKING:
    from cmvmed.labeling import LabelingSession


@click.command()
@project_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the page; by default a free one.")
@click.option("--open/--no-open", "open_page", default=True, help="Open the page in the browser.")
@click.option(
    "--import",
    "import_from",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Import the labels of a file first.",
)
@click.option(
    "--export",
    "export_to",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Export the labels to a file and exit.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "labelstudio", "audacity", "raven"]),
    default="csv",
    show_default=True,
    help="Format of --export.",
)
@random_share_option
@force_option
def command(
    project: Path,
    port: int,
    open_page: bool,
    import_from: Path | None,
    export_to: Path | None,
    form: str,
    random_share: float,
    force: bool,
) -> None:
    """Label rows in the browser, while a model learns and proposes what to label next.

    The page is served to this machine only. Each label is on disk, in a file beside the project file, before the next
    row is shown; `cmvmed train` uses these labels. Ctrl-C ends the page.

    \b
    Examples:
      cmvmed label
      cmvmed label --project swimming.toml --no-open --port 8765
      cmvmed label --export labels.csv
      cmvmed label --import labels.json --export labels.raven.txt --format raven
    """  # noqa: D301 (\b keeps click from wrapping the lines)
    project_changes(project, (), ())
    if export_to is not None:
        check_output(export_to, force=force)
    from cmvmed.labeling import LabelingSession, import_rows
    from cmvmed.workbench.label_store import LabelStore, labels_path

    store = LabelStore(labels_path(project))
    session = LabelingSession(project, store, learn=export_to is None, random_share=random_share)
    try:
        if import_from is not None:
            rows = import_rows(import_from.read_bytes(), import_from.name, session.ids)
            n = session.add_rows(rows)
            click.echo(f"{plural(n, 'label')} of {import_from} {'was' if n == 1 else 'were'} added or changed.")
        if export_to is not None:
            _export(session, export_to, form)
        else:
            _serve(session, port, open_page)
    finally:
        session.close()


def _export(session: LabelingSession, path: Path, form: str) -> None:
    from cmvmed.labeling import export_rows

    rows = session.labeled_rows()
    content = export_rows(rows, form)
    with atomic_file(path) as part:
        part.write_bytes(content)
    click.echo(f"{plural(len(rows), 'label was', 'labels were')} written to {path}.")


def _listener(port: int) -> socket.socket:
    """A socket on this machine at a port, 0 for a free one."""
    # asyncio sends at once (TCP_NODELAY) only if the protocol is given; else the body of an answer waits up to 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise click.ClickException(
            f"Port {port} cannot be used ({error.strerror}); leave --port out for a free one."
        ) from error
    listener.listen()  # so that a browser that is faster than the server waits
    return listener


def _serve(session: LabelingSession, port: int, open_page: bool) -> None:
    uvicorn = import_optional("uvicorn", "label", "The labeling page")
    from cmvmed.labeling.server import build_app, new_token, opening_page

    with _listener(port) as listener, ExitStack() as at_end:
        port = listener.getsockname()[1]
        token = new_token()
        hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        address = f"http://127.0.0.1:{port}/?token={token}"
        click.echo(
            f"{plural(len(session.ids), 'row')}. Label at\n\n  {address}\n\nEnd with Ctrl-C; labels are in {session.store.path}."
        )
        remove = at_end.callback(lambda: None)
        if open_page:  # beside the labels, because some browsers cannot read the folder of temporary files
            file = opening_page(session.store.path.resolve().parent, address)
            remove = at_end.callback(lambda: file.unlink(missing_ok=True))
            webbrowser.open(file.as_uri())
        app = build_app(session, token, hosts, when_opened=remove)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, ws="none")
        uvicorn.Server(config).run(sockets=[listener])
