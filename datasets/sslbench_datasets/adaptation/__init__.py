"""Domain adaptation: questions and biology."""
