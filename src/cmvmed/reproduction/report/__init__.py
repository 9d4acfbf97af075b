"""The page that shows the results: tables, figures, tests and which of the paper's claims hold, from result rows alone."""

from cmvmed.reproduction.report.page import report_page, write_page

__all__ = ["report_page", "write_page"]
