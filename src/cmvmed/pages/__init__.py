"""What the HTML reports share: charts, formats of numbers, styles, and how pages are rendered and written."""
