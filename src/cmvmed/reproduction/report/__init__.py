"""HTML report of result rows: tables, figures, statistical tests and which of the paper's claims hold."""

from cmvmed.reproduction.report.page import report_page, write_page

__all__ = ["report_page", "write_page"]
