"""The paper's experiments: definition (experiment), execution (runner), results (store), report and demonstration."""
