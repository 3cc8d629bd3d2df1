"""Oracles, toy problems and fakes that several tests share."""
