# SPDX-License-Identifier: Apache-2.0
"""Where vLLM has its hash functions."""
