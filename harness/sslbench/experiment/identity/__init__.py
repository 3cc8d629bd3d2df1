"""What a result depends on: data, features, code; replays of records."""
