"""What was found, as tables, JSON, text, Markdown and HTML; comparisons of two requests."""
