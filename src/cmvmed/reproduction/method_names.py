"""Names of the compared methods in result rows, in tables and on the command line."""

MAJORITY_CLASS = "majority class"  # a line of tables, not a method: the share of the largest class of the test rows
EACH_VIEW = "MED, each view"  # on the command line: one method per view
SINGLE_VIEW_PREFIX = "MED, view "  # followed by the name of the view
LATE_FUSION = "late fusion of MED"
SVM_2K = "SVM-2K"
MV_MED = "MV-MED"
CO_RLS = "CoRLS"
CMV_MED_PRINTED = "CMV-MED as printed"
CMV_MED_PAPER = "CMVMED.paper()"
CMV_MED_PAPER_SHARES = "CMVMED.paper() + shares, T = 1/V"
CMV_MED = "CMV-MED"
KERNELS = ("rbf", "linear+rbf")  # of the paper, and the default of CMV-MED


def with_kernel(method: str, kernel: str) -> str:
    """Name of a method with another kernel than its default."""
    return f"{method} ({kernel})"


def without_kernel(method: str) -> str:
    """Name of the method with its default kernel."""
    for kernel in KERNELS:
        method = method.removesuffix(f" ({kernel})")
    return method
