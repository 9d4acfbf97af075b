"""Names of the compared methods in result rows, in tables and on the command line."""

MAJORITY_CLASS = "majority class"  # as a line of a table: its share of the test rows
EACH_VIEW = "MED, each view"  # on the command line: one method per view
SINGLE_VIEW_PREFIX = "MED, view "  # followed by the name of the view
SVM_2K = "SVM-2K"
MV_MED = "MV-MED"
CMV_MED_PRINTED = "CMV-MED as printed"
CMV_MED = "CMV-MED"
