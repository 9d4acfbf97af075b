"""What a fit leaves behind, and all that is done with it."""
