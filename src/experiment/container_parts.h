/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/container_parts.h - what the files of a container share, and nobody else.
 *
 *   container.c       what it is: the object, the words
 *   container_life.c  what is asked of the runtime: begin, end, clean
 */
#pragma once

#define CONTAINER_OWNER "profllm.owner" /* label: HOST USER PID START BOOT NAMESPACE */
