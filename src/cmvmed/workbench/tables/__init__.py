"""A user's files as rows: reading them, joining them, finding their labels, and giving their columns to views."""
