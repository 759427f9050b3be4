import type { Static } from '@sinclair/typebox'
import type { Page } from '../../schemas/api.ts'
import { errors } from '../../plugins/errors/list.ts'

/**
 * One page of a list whose items have names. The cursor is the last name of the page before, so that a page stays right when
 * other items come and go. @throws InvalidInput for a cursor that names nothing
 */
export function page<Item extends { name: string }> (
  items: Item[],
  { limit, cursor, fields }: Static<typeof Page>
): { data: Array<Partial<Item>>; nextCursor?: string } {
  let from = 0
  if (cursor !== undefined) {
    const name = Buffer.from(cursor, 'base64url').toString()
    from = items.findIndex((item) => item.name === name) + 1
    if (from === 0) throw new errors.InvalidInput('"cursor" is not (or no longer) one of this list: begin again without it')
  }
  const to = limit === undefined ? items.length : from + limit
  const data = items.slice(from, to)
  const last = data.at(-1)
  const nextCursor = last && to < items.length ? Buffer.from(last.name).toString('base64url') : undefined
  const wanted = fields?.split(',').map((field) => field.trim())
  return {
    data: wanted
      ? data.map((item) => Object.fromEntries(Object.entries(item).filter(([key]) => wanted.includes(key))) as Partial<Item>)
      : data,
    ...(nextCursor === undefined ? {} : { nextCursor })
  }
}
