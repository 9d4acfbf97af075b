"""The report of a user's model: can it be used, what was learned from what, and what to do next."""

from cmvmed.workbench.report.model_page import model_page, write_report

__all__ = ["model_page", "write_report"]
