"""Practical checks as tools for any module: what it does is probed, not how it is written."""

from lnres_utils.auditing.placement import LABELS, norm_order, order_of_function

__all__ = ["LABELS", "norm_order", "order_of_function"]
