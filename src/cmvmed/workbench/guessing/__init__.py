"""Guessing a project from data: each module guesses one part of it."""

from cmvmed.workbench.guessing.column_guesses import Guess, Guesses
from cmvmed.workbench.guessing.first_project import init

__all__ = ["Guess", "Guesses", "init"]
