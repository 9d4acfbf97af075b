"""The labeling page: rows of a project shown sensor by sensor, labels kept on disk, a model that learns meanwhile."""

from cmvmed.labeling.exchange import LabeledRow, export_rows, import_rows
from cmvmed.labeling.session import LabelingSession
from cmvmed.labeling.widget import labeling_widget

__all__ = ["LabeledRow", "LabelingSession", "export_rows", "import_rows", "labeling_widget"]
