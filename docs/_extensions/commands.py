"""The directive ``command-help``: what ``cmvmed COMMAND --help`` prints, for every command."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cmvmed.cli.main import COMMANDS, main

WIDTH = 100


def help_text(name: str) -> str:
    """The help of a command."""
    with main.make_context(
        "cmvmed", [], resilient_parsing=True, max_content_width=WIDTH, terminal_width=WIDTH
    ) as parent:
        command = main.get_command(parent, name)
        if command is None:
            raise ValueError(f"cmvmed has no command {name!r}")
        with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
            return command.get_help(context)


class CommandHelp(SphinxDirective):
    """A section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [
            nodes.section(
                "",
                nodes.title(text=f"cmvmed {name}"),
                nodes.literal_block(text=help_text(name), language="text"),
                ids=[f"cmvmed-{name}"],
                names=[f"cmvmed {name}"],
            )
            for name in COMMANDS
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
