"""Cross-validation and scores for data whose rows are only partly labeled.

scikit-learn's splitters put unlabeled rows into the test folds, and its scores then count the marker -1 as a class.
Here a test fold holds labeled rows only, every unlabeled row stays in every training set (unless its group is tested),
and no class ever vanishes from a training set. scikit-learn's own stratified splitters and scorers do the work on the
labeled rows.
"""

from cmvmed.model_selection.hidden_labels import hide_labels
from cmvmed.model_selection.labeled_scores import labeled_scorer
from cmvmed.model_selection.splitters import SemiSupervisedKFold, SemiSupervisedShuffleSplit

__all__ = ["SemiSupervisedKFold", "SemiSupervisedShuffleSplit", "hide_labels", "labeled_scorer"]
