"""Taggers as models of CRFsuite, and text dumps of CRFsuite and CRF++ as taggers."""
