"""The paper's experiments as data: what to run (specs), how (runner), and one row per result (store)."""
