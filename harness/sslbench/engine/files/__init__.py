"""Files that are written atomically, and folders for what can be derived again."""
