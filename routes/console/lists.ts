import { escapeInvisible } from '../../plugins/extensions/index.ts'

/** One page of a list. */
interface ListPage<Item> {
  readonly items: readonly Item[]
  readonly pages: { from: number, to: number, total: number, previous?: string, next?: string }
}

/** Number of rows on a page. */
export const pageSize = 50

/**
 * Returns the page of a list that a query selects.
 * @param path the path of the list, without query
 * @param query the filters, which the links to other pages keep, and `page`, from 1
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

/** Max length of a server-defined name in a table, in characters. */
const maxNameLength = 100

/** Returns a name that a server defines for display: truncated, with invisible characters as escapes. */
export const shortNameOf = (name: string): string =>
  escapeInvisible(name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

/** Returns a path with a query that contains the non-empty parameters. */
export function urlWithQuery (path: string, query: Readonly<Record<string, string | undefined>>): string {
  const set = Object.entries(query).filter((entry): entry is [string, string] => (entry[1] ?? '') !== '')
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set).toString()}`
}
