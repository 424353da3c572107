"""Tokens and money: tokenizers, model names, prices, usage counters, bills."""
