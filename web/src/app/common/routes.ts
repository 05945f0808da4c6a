// SPDX-License-Identifier: Apache-2.0
// routes.ts: the answer of an API route as React state; types are those of schema/api.json.
import { useContext, useEffect } from 'react';
import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { Routes } from '../../lib/api';
import { get, post } from '../api';
import { asked, type And, type Filter } from '../filter';
import { useIncludeInvalid } from '../state';
import { BlockContext } from './block';

type Named<M extends string> = Extract<keyof Routes, `${M} ${string}`>;
type PathOf<K extends string> = K extends `${string} ${infer P}` ? P : never;

/** The answer of a route to a body. In a frozen block it is the stored answer. */
export function useAnswer<T>(route: string, body: unknown, enabled = true): UseQueryResult<T> {
	const block = useContext(BlockContext), kept = block?.frozen?.[route] as T | undefined;
	const isFrozen = block?.frozen != null, onAnswer = block?.onAnswer;
	const query = useQuery<T>({
		queryKey: isFrozen ? ['frozen', block?.id, route] : [route, body],
		enabled: enabled && !isFrozen,
		...(isFrozen ? { initialData: kept as never }
			: { placeholderData: keepPreviousData as never }),
		queryFn: ({ signal }) => post<T>(route, body, signal),
	});
	const { data, isPlaceholderData } = query;
	useEffect(() => {
		if (data !== undefined && !isPlaceholderData)
			onAnswer?.(route, data);
	}, [route, data, isPlaceholderData, onAnswer]);
	return query;
}

/** An analysis. The previous answer is shown until the next one arrives. */
export function useRead<K extends Named<'POST'>>(
	route: K, question: Routes[K]['request'], enabled = true,
): UseQueryResult<Routes[K]['answer']> {
	const [isAll] = useIncludeInvalid();
	const path = route.slice('POST '.length) as PathOf<K>;
	const body = isAll ? { ...question as object, include_invalid: true } : question;
	return useAnswer<Routes[K]['answer']>(path, body, enabled);
}

/** A GET; path is the route's with its numbers filled in. */
export function useGet<K extends Named<'GET'>>(
	_route: K, path: string, enabled = true,
): UseQueryResult<Routes[K]['answer']> {
	return useQuery({
		queryKey: [path], enabled,
		queryFn: ({ signal }) => get<Routes[K]['answer']>(path, signal),
	});
}

/** Both filters combined; null for no filter. */
export function both(filter: And, more: Filter[]): And | null {
	const solid = more.filter((part) => !('and' in part) || part.and.length > 0);
	if (!solid.length)
		return asked(filter);
	return { and: [...filter.and, ...solid] };
}
