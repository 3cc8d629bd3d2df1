"""What a user asks for."""
