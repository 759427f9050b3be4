import type { Static } from '@sinclair/typebox'
import { errors } from '../../plugins/errors/list.ts'
import type { Page } from '../../schemas/api.ts'

/**
 * One page of a list of named items, with the members that `fields` asks for. The cursor is the base64url of the last name of the
 * page before, so that a page stays right when other items come and go.
 * @param keyOf the name of an item, unique in the list
 * @throws InvalidInput for a cursor whose item is not in the list
 */
export function page<Item extends { name: string }> (
  items: readonly Item[],
  { limit = items.length, cursor, fields }: Static<typeof Page>,
  keyOf = ({ name }: Item): string => name
): { data: Array<Partial<Item>>, nextCursor?: string } {
  const from = cursor === undefined ? 0 : positionAfter(items.map(keyOf), cursor)
  const data = items.slice(from, from + limit)
  const last = data.at(-1)
  const hasMore = last !== undefined && from + limit < items.length
  return {
    data: fields === undefined ? data : data.map(picker(fields)),
    ...(hasMore ? { nextCursor: Buffer.from(keyOf(last)).toString('base64url') } : {})
  }
}

function positionAfter (names: readonly string[], cursor: string): number {
  const name = Buffer.from(cursor, 'base64url').toString()
  const at = names.indexOf(name)
  if (at < 0) throw new errors.InvalidInput('"cursor" is not (or no longer) one of this list: begin again without it')
  return at + 1
}

/** @param fields names of members, comma-separated */
function picker (fields: string): <Item extends object>(item: Item) => Partial<Item> {
  const wanted = new Set(fields.split(',').map((field) => field.trim()))
  return <Item extends object>(item: Item) =>
    Object.fromEntries(Object.entries(item).filter(([key]) => wanted.has(key))) as Partial<Item>
}
