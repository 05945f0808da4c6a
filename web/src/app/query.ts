// SPDX-License-Identifier: Apache-2.0
// query.ts: the API's answers as React state. Answers belong to a data version: when that grows
// (after an upload), what is on the screen is requested again.
import { useEffect, useRef } from 'react';
import {
	keepPreviousData, QueryClient, useInfiniteQuery, useQuery, type UseQueryResult,
} from '@tanstack/react-query';
import type {
	Apply, ApplyRequest, Bin, Facet, Health, Option, Options, Row, Statistic,
} from '../lib/api';
import { ApiError, get, NO_ANSWER, post } from './api';
import { asked, type And } from './filter';
import type { Shown } from './state';

export type ColumnOption = Option;
export type Item = Row;
export type Applied = Apply;
export type { Bin, Facet, Statistic };
/** As in the API, but the direction is always given. */
export interface Sort { column: string; descending: boolean }
export type ApplyBody = ApplyRequest;

const HEALTH_MS = 10_000;

export const client = new QueryClient({
	defaultOptions: { queries: {
		staleTime: 60_000,
		refetchOnWindowFocus: false,
		retry: (times, why) => times < 2 && why instanceof ApiError && why.status === 0,
	} },
});

/** Something on the server has changed: requests everything on the screen again. */
export function refresh(): void {
	void client.invalidateQueries();
}

const PAGES_ASKED_AGAIN = 5;

/** A list that the user has scrolled far down stays as it is: reloading would disturb it. */
function isKept(key: readonly unknown[], data: unknown): boolean {
	return key[0] === 'health' || (key[0] === 'rows'
		&& ((data as { pages?: unknown[] } | undefined)?.pages?.length ?? 0) > PAGES_ASKED_AGAIN);
}

/** The dashboard's health, requested regularly; it also shows that data has changed. */
export function useHealth(): UseQueryResult<Health> {
	const health = useQuery({
		queryKey: ['health'], queryFn: ({ signal }) => get<Health>('/api/health', signal),
		refetchInterval: HEALTH_MS, staleTime: 0,
	});
	const { refetch } = health;
	useEffect(() => {
		const again = (): void => void refetch();
		addEventListener(NO_ANSWER, again);
		return () => removeEventListener(NO_ANSWER, again);
	}, [refetch]);
	const seen = useRef<string | undefined>(undefined);
	/* After a restore, what is on the screen is of runs that the store no longer has. */
	const version = health.data?.status === 'store was replaced' ? 'replaced'
		: health.data?.data_version.toString();
	useEffect(() => {
		if (version !== undefined && seen.current !== undefined && version !== seen.current)
			void client.invalidateQueries({
				predicate: (q) => !isKept(q.queryKey, q.state.data) });
		if (version !== undefined)
			seen.current = version;
	}, [version]);
	return health;
}

/** Whether this visitor may upload, mark and save; false until it is known. */
export const useCanChange = (): boolean => useHealth().data?.can_change ?? false;

export function useOptions(): UseQueryResult<Options> {
	return useQuery({
		queryKey: ['options'],
		queryFn: ({ signal }) => get<Options>('/api/filters/options?facet_values=20', signal),
		placeholderData: keepPreviousData,
	});
}

/** Any question that only reads; the body is the key. The previous answer is shown meanwhile. */
export function useAsked<T>(path: string, body: unknown, enabled = true): UseQueryResult<T> {
	return useQuery({
		queryKey: [path, body], enabled,
		queryFn: ({ signal }) => post<T>(path, body, signal),
		placeholderData: keepPreviousData,
	});
}

/** Resolves once no rows are being fetched. */
async function afterRows(signal: AbortSignal): Promise<void> {
	const cache = client.getQueryCache();
	await new Promise((then) => setTimeout(then, 0)); // the rows of the same change begin first
	while (client.isFetching({ queryKey: ['rows'] }) > 0 && !signal.aborted)
		await new Promise<void>((then) => {
			const stop = cache.subscribe(() => {
				stop();
				then();
			});
		});
}

/**
 * Counts and facets: requested after the rows, which a reader waits for and which need the same
 * processors.
 */
export function useApply(body: ApplyBody, enabled = true): UseQueryResult<Applied> {
	const path = '/api/filters/apply';
	return useQuery({
		queryKey: [path, body], enabled,
		queryFn: async ({ signal }) => {
			await afterRows(signal);
			return post<Applied>(path, body, signal);
		},
		placeholderData: keepPreviousData,
	});
}

/** Rows while scrolling, page after page by cursor. */
export function useRows(
	filter: And, shown: Shown, sort: Sort[], columns: string[] | null, limit: number,
	isFolded: boolean,
) {
	const body: ApplyBody = { filter: asked(filter), shown, sort, columns, limit,
		group: isFolded ? 'configuration' : null };
	return useInfiniteQuery({
		queryKey: ['rows', body],
		queryFn: ({ pageParam, signal }) => post<Applied>('/api/filters/apply',
			{ ...body, cursor: pageParam }, signal),
		initialPageParam: null as string | null,
		getNextPageParam: (last) => last.next,
		placeholderData: keepPreviousData,
	});
}
