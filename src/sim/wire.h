/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the worker's end of the socket pair: frames of four bytes of length (the highest first)
 * and that many bytes of JSON. docs/guide/adapters.md is the protocol. Not worker/frame.h, on
 * purpose: a referee that shares the code cannot judge it.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* The next frame's body; 1, 0 at the end of the stream, -1: an end inside a frame, too long. */
int wire_read(int fd, struct buf *body, struct err *e);
/* Bytes that are no frame. */
void wire_noise(int fd, struct str bytes);
/* -1: nobody reads any more. */
int wire_write(int fd, struct str body, struct err *e);
