"""Light registrations of the corpus families: files, licences, protocols; no reader."""
