"""HTML report of result rows: tables, figures, statistical tests and which of the paper's claims hold."""

from cmvmed.pages.rendering import write_page
from experiments.report.page import report_page

__all__ = ["report_page", "write_page"]
