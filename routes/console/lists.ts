import type { FastifyRequest } from 'fastify'
import { escapeInvisible } from '../../plugins/extensions/index.ts'

/**
 * One page of a list. `pages`: the positions, from 1, of its first and last item, the length of the list, and the URLs
 * of the adjacent pages.
 */
interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly pages: { from: number, to: number, total: number, previous?: string, next?: string }
}

/** The number of rows on one page of a list. */
export const pageSize = 50

/**
 * Returns the requested page of a list, or the nearest page if there is no page with the requested number.
 * @param path the path of the list, without a query
 * @param query the requested `page`, from 1; and the filters, which the links to the adjacent pages repeat
 */
export function paginate<Item> (
  all: readonly Item[], path: string, { page: requested = '1', ...filters }: Readonly<Record<string, string>>
): ListPage<Item> {
  const last = Math.max(1, Math.ceil(all.length / pageSize))
  const page = Math.min(last, Math.max(1, Math.trunc(Number(requested)) || 1))
  const start = (page - 1) * pageSize
  const items = all.slice(start, start + pageSize)
  const at = (number: number): string => urlWithQuery(path, { ...filters, page: String(number) })
  return {
    items,
    pages: {
      from: all.length === 0 ? 0 : start + 1,
      to: start + items.length,
      total: all.length,
      ...page > 1 && { previous: at(page - 1) },
      ...page < last && { next: at(page + 1) }
    }
  }
}

/** The max length of a server-defined name in a table, in UTF-16 code units. */
const maxNameLength = 100

/** Returns a server-defined name in the form that tables show: truncated, and with invisible characters escaped. */
export const shownNameOf = (name: string): string =>
  escapeInvisible(name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

/** Appends a query to a path. Parameters that are empty or undefined are left out. */
export function urlWithQuery (path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '')
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`
}

/** Returns the query parameters of a request, each with its first value if it occurs several times. */
export const firstQueryValues = ({ query }: FastifyRequest): Record<string, string> =>
  Object.fromEntries(Object.entries(query as Record<string, string | string[]>)
    .map(([name, value]) => [name, [value].flat()[0] ?? '']))
