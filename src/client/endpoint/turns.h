/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns.h - OpenAI chat as vLLM's multi-turn script sends it, streamed or not: model and messages,
 * then the sample's overrides in their own order, then the run's extra body. Not in the table of
 * --backend.
 */
#pragma once
#include "client/endpoint/endpoint.h"

extern const struct endpoint endpoint_turns, endpoint_whole_turns;
