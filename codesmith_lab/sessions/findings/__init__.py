"""What broke, where and why: differences, their classes, and what counters prove."""
