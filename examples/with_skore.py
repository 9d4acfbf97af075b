"""Look at a table with skrub and judge a model with skore, whose reports take the estimators as they are."""

try:
    from skore import CrossValidationReport, EstimatorReport
    from skrub import TableReport
except ImportError:
    print("This example needs skore, which brings skrub: pip install skore")
    raise SystemExit from None

from cmvmed import CMVMED
from cmvmed.datasets import load_room
from cmvmed.model_selection import SemiSupervisedKFold, hide_labels

room, new = load_room(as_frame=True), load_room("new", as_frame=True)
y = hide_labels(room.target, 60, random_state=0)  # 60 labels, -1 for the other rows

TableReport(room.data, title="Sensors of a room", verbose=0).write_html("table.html")
print("table.html shows the columns of the table")

model = CMVMED(views=room.views).fit(room.data, y)
report = EstimatorReport(model, X_test=new.data, y_test=new.target)
print(f"accuracy on new rows: {report.metrics.accuracy():.3f}")

folds = CrossValidationReport(CMVMED(views=room.views), room.data, y, splitter=SemiSupervisedKFold(3))
print(folds.metrics.summarize().frame().loc[["accuracy", "log_loss"]].round(3).to_string())
