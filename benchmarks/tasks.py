"""The tasks of the benchmarks are those of the experiments."""

from cmvmed.experiments.tasks import TASKS, Split, Task, draw

__all__ = ["TASKS", "Split", "Task", "draw"]
