"""SIGHAN bakeoff segmentation."""
