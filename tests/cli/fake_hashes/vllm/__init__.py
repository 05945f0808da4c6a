# SPDX-License-Identifier: Apache-2.0
"""Stands in for vLLM where the tests drive workers/hash_worker.py."""
__version__ = "0.32.0-fake"
