"""Processor time, memory and accuracy of CMVMED beside other methods, from a thousand to a million rows."""
