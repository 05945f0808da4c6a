/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - stands in for Open MPI's library where a test has several ranks: each is a thread of one
 * program, which says its rank by fake_mpi_be before it calls anything else. Messages wait in one
 * list. With FAKE_MPI_FAILS in the environment MPI_Init fails.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct message {
	struct message *next;
	int from, to, tag, n;
	char data[];
};

char ompi_mpi_comm_world[8], ompi_mpi_byte[8], ompi_mpi_errors_return[8];

static struct message *first;
static int n_finalized;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static _Thread_local int own_rank, own_size;

void fake_mpi_be(int rank, int size)
{
	own_rank = rank;
	own_size = size;
}

/* Ranks that have called MPI_Finalize. */
int fake_mpi_finalized(void)
{
	return n_finalized;
}

static struct message **find(int from, int tag)
{
	struct message **at = &first;

	while (*at && ((*at)->from != from || (*at)->to != own_rank || (*at)->tag != tag))
		at = &(*at)->next;
	return at;
}

int MPI_Init(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return getenv("FAKE_MPI_FAILS") != NULL;
}

int MPI_Finalize(void)
{
	pthread_mutex_lock(&mutex);
	n_finalized++;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int MPI_Comm_rank(void *comm, int *rank)
{
	(void)comm;
	*rank = own_rank;
	return 0;
}

int MPI_Comm_size(void *comm, int *size)
{
	(void)comm;
	*size = own_size;
	return 0;
}

int MPI_Comm_set_errhandler(void *comm, void *handler)
{
	(void)comm;
	(void)handler;
	return 0;
}

int MPI_Iprobe(int from, int tag, void *comm, int *is_there, void *status)
{
	(void)comm;
	(void)status;
	pthread_mutex_lock(&mutex);
	*is_there = *find(from, tag) != NULL;
	pthread_mutex_unlock(&mutex);
	return 0;
}

int MPI_Send(const void *data, int n, void *type, int to, int tag, void *comm)
{
	struct message *m = malloc(sizeof(*m) + (size_t)n), **at = &first;

	(void)type;
	(void)comm;
	if (!m)
		abort();
	*m = (struct message){ .from = own_rank, .to = to, .tag = tag, .n = n };
	memcpy(m->data, data, (size_t)n);
	pthread_mutex_lock(&mutex);
	while (*at)
		at = &(*at)->next;
	*at = m;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&mutex);
	return 0;
}

int MPI_Recv(void *data, int n, void *type, int from, int tag, void *comm, void *status)
{
	struct message **at, *m;

	(void)type;
	(void)comm;
	(void)status;
	pthread_mutex_lock(&mutex);
	while (at = find(from, tag), !*at)
		pthread_cond_wait(&news, &mutex);
	m = *at;
	*at = m->next;
	pthread_mutex_unlock(&mutex);
	memcpy(data, m->data, (size_t)(m->n < n ? m->n : n));
	free(m);
	return 0;
}
