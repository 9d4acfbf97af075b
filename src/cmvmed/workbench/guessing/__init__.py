"""Guessing a project from data: each module guesses one part of it."""

from cmvmed.workbench.guessing.first_project import init
from cmvmed.workbench.guessing.guesses import Guess, Guesses

__all__ = ["Guess", "Guesses", "init"]
